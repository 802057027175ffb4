//! The help texts after the options: examples and exit codes.

pub(crate) const MAIN: &str = "\
Examples:
  cosched-columnsort generate in --bytes 8GB               8 GB of records of 100 bytes
  cosched-columnsort sort in -o out --memory 1G            sort them in 1 GiB
  cosched-columnsort check out --against in                in order, and still the same records
  mpirun -n 2 cosched-columnsort sort in -o out            on two processes

Exit codes:
  0 success   1 failure, or records out of order   2 wrong usage, or no such matrix   130 ended by ^C

docs/columnsort.md describes the algorithm, the files and the limits.";

pub(crate) const SORT: &str = "\
The output appears under its name when it is complete; until then it and the working files have no name, so that nothing is \
left of them whatever ends the program (with several machines the output has a name ending in .part). Room on the disk is \
reserved before the work. Records with equal keys come in no certain order; make the key the whole record if that matters.

Sizes: 4096, 512M (x 1024 x 1024), 8GB (x 1000^3).

Examples:
  cosched-columnsort sort in -o out
  cosched-columnsort sort in -o out --memory 512M --temp /scratch
  cosched-columnsort sort words -o sorted --record-size 64 --key-offset 8 --key-size 16
  cosched-columnsort sort in -o out --columns 16 --passes 4 --version compute --incarnations 2
  mpirun -n 2 cosched-columnsort sort in -o out --memory 512M

Exit codes:
  0 sorted   1 failed   2 wrong usage, or no such matrix   130 ended by ^C";

pub(crate) const PLAN: &str = "\
Examples:
  cosched-columnsort plan in --memory 1G
  cosched-columnsort plan --records 80000000 --memory 512M --processes 4 --json

Exit codes:
  0 it can be done   1 the input cannot be read   2 wrong usage, or no such matrix";

pub(crate) const SHAPE: &str = "\
A matrix sorts if the columns divide the rows, rows >= 2 (columns - 1)^2, and the processes divide the columns. It holds \
at most rows x columns records; places without one cost nothing.

Examples:
  cosched-columnsort shape --records 1000000 --rows 10000 --columns 100

Exit codes:
  0 it sorts   2 it does not";

pub(crate) const GENERATE: &str = "\
The same seed makes the same bytes everywhere. KIND: random, sorted (in order already), reversed, few (16 different keys). \
Prints the checksum that `check` prints.

Examples:
  cosched-columnsort generate in --records 10000000
  cosched-columnsort generate lines --bytes 1GB --lines --keys few --seed 7

Exit codes:
  0 made   1 failed   2 wrong usage   130 ended by ^C";

pub(crate) const CHECK: &str = "\
As valsort does: the checksum is the sum of the records' CRC-32, so it does not depend on their order.

Examples:
  cosched-columnsort check out
  cosched-columnsort check out --against in
  cosched-columnsort check out --checksum 1312b01bd8b47

Exit codes:
  0 in order (and the same records)   1 out of order, other records, or not to be read   2 wrong usage";

pub(crate) const RATE: &str = "\
Every pass of a sort reads and writes all bytes once, by the same two stages. What the sort takes beyond that is not the disk.

Examples:
  cosched-columnsort rate in
  cosched-columnsort rate in --temp /scratch --io buffered

Exit codes:
  0 measured   1 failed   2 wrong usage";
