//! The texts after the options of `cosched model`.

pub(crate) const MODEL: &str = "\
The model of Strazdins & Uhlmann 2004, section 5: t_j = max(t_1, j x CPU time of one job). A process that waits for a \
message gives its CPU to another job, so up to 1 / (CPU share) jobs cause no slowdown. docs/model.md derives every term.

Examples:
  cosched model predict --machine bunyip --program lu --n 6000 --grid 8x4 --jobs 2,4,6,8
  cosched model predict --t1 60s --cpu-share 0.26 --jobs 2,4,8
  cosched model calibrate -o here.toml
  cosched model table3";

pub(crate) const PREDICT: &str = "\
A job that fits into one node communicates through shared memory, a larger one over the network. `gang` is j t_1: under gang \
scheduling no other job uses the CPU of a waiting process. With --cache, each wait also costs reloading that much of the cache.

Examples:
  cosched model predict --machine bunyip --program lu --n 6000 --grid 8x4 --jobs 2,4,6,8
  cosched model predict --machine here.toml --program matmul --n 2000 --grid 2x1 --jobs 2,4 --cache 256K
  cosched model predict --machine bunyip --program lu --n 6000 --grid 8x4 --json | jq .terms
  cosched model predict --t1 60s --cpu-share 0.26 --jobs 2,4,8     any program

Exit codes:
  0 success   1 the machine file cannot be read   2 wrong usage   6 the machine file is not valid";

pub(crate) const ERRORS: &str = "\
As in Table 3 of the paper. `job` is the measured slowdown, `CPU` the one derived from CPU utilisation (it includes all overlap, \
but no cold caches), `phase` that of the program's main phase. A.2 (cold caches are neglected) = (job - CPU) / job, at \
least 0; total = (phase - model) / phase; A.1 (a process is always ready) = total - A.2.

--measured is a file that `cosched bench slowdown` writes. Without a program or --t1, the model uses the measured \
time and CPU share of the single job.

Examples:
  cosched model errors --measured slowdown.json
  cosched model errors --measured slowdown.json --policy local --machine here.toml --program lu --n 2000 --grid 2x1
  cosched model errors --measured slowdown.json --t1 10.5s --cpu-share 0.6 --json

Exit codes:
  0 success   1 a file cannot be read   2 wrong usage   6 the measurement or the machine file is not valid";

pub(crate) const CALIBRATE: &str = "\
Runs pingpong (two ranks, through shared memory and over TCP on the loopback device), yield and matmul (one rank), in \
turn, and writes the medians with their spread as a machine file. The machine should be otherwise idle.

MPI libraries spin while they wait, so that all time is CPU time. With --wait spin-block, the CPU time of messages is \
measured with both ranks on one CPU and the wait library, which makes them yield at once: that CPU then only handles \
messages. `auto` does so if the library is found; the file says which was used.

Examples:
  cosched model calibrate -o here.toml
  cosched model calibrate --repeat 9 --wait busy > here.toml
  cosched model predict --machine here.toml --program lu --n 2000 --grid 2x1

Environment:
  COSCHED_PROGRAMS   the directory of pingpong, yield and matmul
  COSCHED_MPIRUN     the mpirun of the MPI that they were built with, as --mpirun
  COSCHED_WAIT_LIBRARY   the wait library

Exit codes:
  0 success   1 a program fails or is missing, or the file cannot be written   2 wrong usage
  125 the wait library was asked for and is not installed   128+N ended by signal N";

pub(crate) const MACHINES: &str = "\
Examples:
  cosched model machines
  cosched model machines --show bunyip > my.toml      a machine file to start from";
