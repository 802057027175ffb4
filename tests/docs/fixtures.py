"""What the examples of the help name: programs, files, jobs and processes, as small as can be."""

import re
import shutil
import subprocess
import time

from lab import ROOT, blocks

# An ordinary user, and what jobs may ask for, whatever the machine has.
OTHER, OTHER_ID = "nobody", 65534
BUSY = ["sh", "-c", "while :; do :; done"]
CONFIG = 'memory = "64G"\n[[queue]]\nname = "day"\n[[queue]]\nname = "night"\n'
PROGRAMS = {
    "a.out": "exec {programs}/barrier-mpi --seconds 0.1",
    "lu": "exec {programs}/lu --n 100",
    "solver": "exec {programs}/lu --n 100",
    "train": "exec {programs}/barrier-threads --threads 2 --seconds 0.1",
    "long.sh": "exec sleep 600",
    "night.sh": "true",
    "sweep.sh": "true",
    "worker": "true",
    "solve": 'test "$COSCHED_ARRAY_INDEX" -ge 1',
    # What is done on another host is done here.
    "bin/ssh": 'while [ "$1" != cosched ]; do shift; done\nexec "$@"',
}
PIECES = "repeat 3 { compute 1ms; exchange 1d 1MB }\n"
FILES = {
    "cosched.toml": CONFIG,
    "train.py": "print('trained')\n",
    "Makefile": "all test:\n\tmpiexec -n 1 true\n",
    "CTestTestfile.cmake": "add_test(one mpiexec -n 1 true)\n",
    "evening.toml": '[[job]]\nname = "lu"\ncommand = ["mpirun", "-n", "2", "./lu"]\n[[job]]\nname = "short"\ncommand = ["./a.out"]\n',
    "load.toml": 'strategies = ["GS", "PB"]\nworkloads = ["WL3"]\nnodes = [8]\njobs = 4\nmean_exec_s = 0.5\nseeds = 2\n',
    "halo.prog": PIECES,
    "stencil.prog": PIECES,
    "rl.csv": "name,arrival_s,iterations,first_nodes,first_s,second_nodes,second_s,memory_gb,slowdown_max\na,0,50,2,100,1,90,400,1.5\nb,60,50,2,80,1,100,400,1.5\n",
    "tree.toml": '[[cluster]]\nname = "c"\nspeed = "1Gf"\ncores = 2\nbandwidth = "125MBps"\nlatency = "50us"\nfat-tree = [[4, 1, 1], [4, 2, 1]]\n',
}
FOLDERS = (".zfunc", ".config/fish/completions", ".local/share/bash-completion/completions", "usr/local/share/man", "run/cosched-web", "shared", "other")
# Files that other commands make.
MADE = r"""
cosched workload generate --model lublin --nodes 64 --jobs 300 --estimates-max-s 64800 -o trace.swf
gzip trace.swf
for name in trace KTH-SP2-1996-2.1-cln.swf CTC-SP2-1996-3.1-cln.swf KTH-SP2.swf; do cp trace.swf.gz $name.gz; done
cosched workload generate --model WL3 --jobs 4 --mean-exec-s 0.5 --nodes 32 > jobs.csv
cp jobs.csv year.csv
cosched workload convert jobs.csv workload.json --nodes 64
cosched model machines --show bunyip > here.toml
printf '[cache]\nsize_bytes = 262144\nrefill_us_per_kib = 0.1\n' >> here.toml
cosched record -o lu.profile.json -- mpirun -n 2 ./lu
cp lu.profile.json a.profile.json
cosched profile program lu.profile.json > lu.prog
cosched bench slowdown --jobs 1,2 --policies local --repeat 1 --out result -- ./a.out
cp result/slowdown.json .
cosched sim sweep load.toml
cosched-columnsort generate in --bytes 1MB
cosched-columnsort sort in -o out --report run.json
"""


def make(cast, other):
    """What examples name, in the homes of both."""
    home = cast.home
    (home / "bin").mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (home / name).write_text(f"#!/bin/sh\n{text.format(programs=ROOT / 'build/programs')}\n")
        (home / name).chmod(0o755)
    for path in (ROOT / "examples").iterdir():
        shutil.copy(path, home)
    for name, text in FILES.items():
        (home / name).write_text(text)
    (home / "grid.xml").write_text(next(iter(blocks((ROOT / "docs/platforms.md").read_text(), "xml").values())))
    for folder in FOLDERS:
        (home / folder).mkdir(parents=True)
    shutil.chown(home / "other", OTHER_ID, OTHER_ID)
    done = subprocess.run(["bash", "-ec", MADE], cwd=home, env=cast.lab.environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    shutil.copytree(home, other.home)


class Cast:
    """The jobs and processes that examples name: they are made when one names them, and again where an example may have ended or changed them."""

    ENDED = r"cosched (wait|attach|log|kill|release)|--name night|queues set|whatif"
    OF_JOBS = r"cosched (join|show|log|attach|wait|suspend|resume|kill|class|share|resources|policy|release|run -d --after)\b"
    NAMES = r"(?<=[\s'])(?:night|first|second|render|llama@1|sweep-)(?=[\s'*]|$)"

    def __init__(self, lab):
        self.lab, self.home = lab, lab.folder / "home"
        lab.environment |= {"HOME": str(self.home), "PATH": f"{self.home}/bin:{lab.environment['PATH']}", "COSCHED_PIPELINE_DIR": str(self.home / "pipelines")}
        self.jobs, self.processes, self.pipeline, self.ended = {}, [], None, False

    def named(self, example):
        """The example, with what it names by the numbers that it has."""
        ends = bool(re.search(self.ENDED, example))
        if ends or self.ended:
            self.end_jobs()
        self.ended = ends
        (self.home / "jobs.csv").write_bytes((self.home / "year.csv").read_bytes())
        for folder in re.findall(r"slowdown .*--out (\w+)", example):
            shutil.rmtree(self.home / folder, ignore_errors=True)
        if re.search(self.OF_JOBS, example):
            example = re.sub(r"(?<=\s)(?:[78](?=[\s:]|$)|\$COSCHED_JOB)", lambda found: self.job(example, found[0]), example)
            for name in [] if "--name night" in example else re.findall(self.NAMES, example):
                self.job(example, name)
            if "--all" in example:
                self.job(example, "8")
        if "--user ann" in example:
            self.job(example, OTHER, HOME=str(self.home / "other"), user=OTHER_ID, group=OTHER_ID, extra_groups=[])
        if "whatif" in example:
            self.job(example, "busy")
        if "pipeline show" in example:
            self.start_pipeline()
            return re.sub(r"\b4711\b", str(self.pipeline.pid), example)
        return re.sub(r"\b4711\b", lambda found: self.process(), example)

    def job(self, example, name, **how):
        """A job's number, by what stands for it in the examples. Those that are waited for end by themselves."""
        title = f"job-{name}" if name in "78$COSCHED_JOB" else name + "1" if name.endswith("-") else name
        if name not in self.jobs:
            if "release" in example:
                words = ["adopt", "--pid", self.process(), "--name", title]
            else:
                pause = "1" if "attach" in example else "0.3" if re.search(r"cosched (wait|log)", example) else "600"
                words = ["run", "-d", "--name", title, *(["--begin", "23:59:59"] if "--state waiting" in example else []), "--", *(BUSY if name == "busy" else ["sleep", pause])]
            done = self.lab.cosched(*words, **how)
            if done.returncode:
                raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
            self.jobs[name] = done.stdout.split()[0]
        return self.jobs[name]

    def process(self):
        self.processes.append(subprocess.Popen(["sleep", "600"]))
        return str(self.processes[-1].pid)

    def start_pipeline(self):
        if self.pipeline and self.pipeline.poll() is None:
            return
        command = "[ -e zeros ] || head -c 300000000 /dev/zero >zeros; exec cosched-columnsort sort zeros -f -o sorted --memory 16MB --serve --quiet"
        self.pipeline = subprocess.Popen(["bash", "-c", command], cwd=self.home, env=self.lab.environment, stdout=subprocess.DEVNULL)
        self.processes.append(self.pipeline)
        while self.pipeline.poll() is None and self.lab.cosched("pipeline", "show").returncode:
            time.sleep(0.02)

    def end_jobs(self):
        """Also those that an example has made; the queues are again as they were."""
        self.lab.end_jobs()
        self.lab.cosched("queues", "set", str(self.home / "cosched.toml"))
        self.jobs.clear()

    def end(self):
        self.end_jobs()
        for process in self.processes:
            process.kill()
            process.wait()
