"""The published collapses: what was reported where, the program that shows it here, and what its thread recommends.

In words, {python} is the museum's Python (tools/setup museum), {cosched} the command, {programs} the folder beside this file, {source} mpi4py's source and {mpich} a
folder in which Debian's MPICH has the name that mpi4py's wheel looks for. All copies of a case start at once, each in a folder of its own."""

import dataclasses

OPENMPI = ("mpirun.openmpi", "--bind-to", "none", "--oversubscribe")
MPICH = ("mpiexec.mpich", "-bind-to", "none")
MPI4PY = {"openmpi": {"MPI4PY_MPIABI": "openmpi"}, "mpich": {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": "{mpich}"}}
SUITE = ("{python}", "{source}/test/main.py", "-q", "-i", "test_cco_obj", "-i", "test_p2p_obj", "-i", "test_comm", "-i", "test_cco_buf")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclasses.dataclass(frozen=True)
class Case:
    """One row. ideal: what does the same work without a collapse (words, environment); None: no program does, so the best
    arm is the yardstick and limit_s ends a run. remedy: what the thread recommends (name, words, environment). each: the same
    with each of its parts as a job of cosched (words, environment)."""

    name: str
    title: str
    cites: str
    reported: str
    words: tuple
    copies: int = 1
    environment: dict = dataclasses.field(default_factory=dict)
    ideal: tuple | None = ((), {})
    remedy: tuple | None = None
    each: tuple | None = None
    quota_cpus: float | None = None
    limit_s: float = 60
    needs: tuple = ()
    files: dict = dataclasses.field(default_factory=dict)  # name in a copy's folder: (template, old text, new text, …)

    def words_of(self, change):
        """The words and environment of a remedy or an ideal: its own words or the case's, its environment on top."""
        words, environment = change
        return (words or self.words), {**self.environment, **environment}


def numpy_case(copies):
    return Case(f"numpy-{copies}", f"NumPy on OpenBLAS, 2 threads, {copies} processes", "scipy/scipy#14441", "30 s instead of 5 s",
                ("{python}", "{programs}/blas.py", "300"), copies, remedy=("one thread each", (), ONE_THREAD), needs=("numpy",))


def gloo_case(copies):
    return Case(f"gloo-{copies}", f"PyTorch DDP over Gloo, 2 processes, {copies} jobs", "pytorch#3021", "1850 ms instead of 220 ms a step with 4 jobs",
                ("/usr/bin/python3", "{programs}/ddp.py", "80"), copies, needs=("file:/usr/lib/python3/dist-packages/torch",))


def hpl_case(copies):
    return Case(f"hpl-{copies}", f"HPC Challenge (hpcc: HPL, random access, FFT …), 2 ranks, {copies} jobs", "Strazdins & Uhlmann 2004, table 2", "jobs that share nodes: 7 times slower and more",
                (*OPENMPI, "-n", "2", "hpcc"), copies, ONE_THREAD, remedy=("yield when idle", (*OPENMPI, "--mca", "mpi_yield_when_idle", "1", "-n", "2", "hpcc"), {}),
                needs=("cmd:hpcc", "cmd:mpirun.openmpi"), files={"hpccinf.txt": ("/usr/share/doc/hpcc/examples/_hpccinf.txt", "2            Ps", "1            Ps", "1000         Ns", "3000         Ns")})


CASES = [
    Case("mpi4py-openmpi", "mpi4py's tests, Open MPI, 5 ranks", "open-mpi/ompi#10426", "80 min instead of 4.5",
         (*OPENMPI, "-n", "5", *SUITE), 1, MPI4PY["openmpi"], None,
         ("yield when idle", (*OPENMPI, "--mca", "mpi_yield_when_idle", "1", "-n", "5", *SUITE), {}), needs=("mpi4py", "cmd:mpirun.openmpi")),
    Case("mpi4py-mpich", "mpi4py's tests, MPICH, 5 ranks", "pmodels/mpich#6037, #7894", "77 min with MPICH, 15 with Open MPI",
         (*MPICH, "-n", "5", *SUITE), 1, MPI4PY["mpich"], ((*OPENMPI, "-n", "5", *SUITE), MPI4PY["openmpi"]), limit_s=60, needs=("mpi4py", "cmd:mpiexec.mpich")),
    Case("mpich-ring", "A ring of 4 ranks, MPICH", "pmodels/mpich#7894", "CI runners of 2 CPUs: tests do not end",
         (*MPICH, "-n", "4", "{python}", "-m", "mpi4py.bench", "ringtest", "-n", "100", "-l", "2000"), 1, MPI4PY["mpich"], None, limit_s=30, needs=("mpi4py", "cmd:mpiexec.mpich")),
    gloo_case(2),
    gloo_case(4),
    numpy_case(4),
    Case("boosting", "scikit-learn, gradient boosting, 2 processes", "scikit-learn#15078", "56 s instead of 0.85 s",
         ("{python}", "{programs}/boosting.py", "400"), 2, remedy=("one thread each", (), ONE_THREAD), needs=("sklearn",)),
    Case("joblib", "joblib, 2 processes of 2 OpenMP threads", "joblib/loky#224", "2 n threads on n CPUs: 10 times slower",
         ("{python}", "{programs}/boosting.py", "400", "2"), 1, ideal=((), ONE_THREAD), remedy=("one thread each", (), ONE_THREAD), needs=("sklearn",)),
    Case("xgboost-quota", "XGBoost, 8 threads, quota of 1 CPU", "dmlc/xgboost#7653", "28 s instead of 0.3 s; 3.x knows its quota",
         ("{python}", "{programs}/xgb.py", "60", "8"), 1, ideal=(("{python}", "{programs}/xgb.py", "60", "1"), {}),
         remedy=("threads = quota", ("{python}", "{programs}/xgb.py", "60", "1"), {}), quota_cpus=1, needs=("xgboost",)),
    Case("xgboost-2", "XGBoost, 2 threads, 2 jobs", "dmlc/xgboost#7653", "threads of several jobs that spin",
         ("{python}", "{programs}/xgb.py", "400", "2"), 2, remedy=("passive waiting", (), {"OMP_WAIT_POLICY": "passive"}), needs=("xgboost",)),
    Case("magick", "GraphicsMagick (libgomp), 4 at once", "tenstorrent/tt-metal#50525", "libgomp's spinning took 84 % of all CPU time",
         ("gm", "convert", "-size", "1500x1500", "plasma:red-blue", *["-blur", "0x5"] * 10, "null:"), 4, remedy=("one thread each", (), ONE_THREAD), needs=("cmd:gm",)),
    Case("lammps-2", "LAMMPS, 2 ranks, 2 jobs", "firemodels/fds#8445", "MPI jobs that share CPUs: 4 to 6 times slower",
         (*OPENMPI, "-n", "2", "lmp", "-in", "{programs}/melt.lmp", "-log", "none", "-var", "steps", "1200"), 2, ONE_THREAD,
         remedy=("yield when idle", (*OPENMPI, "--mca", "mpi_yield_when_idle", "1", "-n", "2", "lmp", "-in", "{programs}/melt.lmp", "-log", "none", "-var", "steps", "1200"), {}),
         needs=("cmd:lmp", "cmd:mpirun.openmpi")),
    hpl_case(2),
    hpl_case(4),
    Case("xdist", "pytest-xdist, 2 workers of 2 BLAS threads", "pytest-xdist#1012, petrobras/ross#1389", "721 s instead of 38 s",
         ("{python}", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "{programs}/test_blas.py"), 1, ideal=((), ONE_THREAD),
         remedy=("one thread each", (), ONE_THREAD), needs=("xdist", "numpy"),
         each=(("{python}", "-m", "pytest", "-q", "--dist", "load", "--tx", "2*popen//python={cosched} run -- {python}", "-p", "no:cacheprovider", "{programs}/test_blas.py"), {})),
    Case("onnx-2", "ONNX Runtime, 2 threads, 2 processes", "microsoft/onnxruntime#3099", "two processes stall each other",
         ("{python}", "{programs}/ort.py", "3000"), 2, remedy=("one thread each", ("{python}", "{programs}/ort.py", "3000", "1"), {}), needs=("onnxruntime", "onnx")),
    Case("onnx-8", "ONNX Runtime, 8 threads", "ollama/ollama#17916 (of ggml)", "0.27 instead of 12.07 tokens/s",
         ("{python}", "{programs}/ort.py", "3000", "8"), 1, ideal=(("{python}", "{programs}/ort.py", "3000", "2"), {}),
         remedy=("no spinning", ("{python}", "{programs}/ort.py", "3000", "8", "no-spinning"), {}), needs=("onnxruntime", "onnx")),
    Case("onnx-quota", "ONNX Runtime, 8 threads, quota of 1 CPU", "ollama/ollama#17916 (of ggml)", "0.27 instead of 12.07 tokens/s",
         ("{python}", "{programs}/ort.py", "1500", "8"), 1, ideal=(("{python}", "{programs}/ort.py", "1500", "1"), {}),
         remedy=("threads = quota", ("{python}", "{programs}/ort.py", "1500", "1"), {}), quota_cpus=1, needs=("onnxruntime", "onnx")),
    Case("ctest", "ctest -j2, 6 tests of 2 MPICH ranks", "pmodels/mpich#6037, easybuild-easyconfigs#22719", "tests of 200 s: time-outs at 1500 s",
         ("ctest", "-j2"), 1, MPI4PY["mpich"], (("ctest", "-j1"), {}), ("one test at a time", ("ctest", "-j1"), {}), needs=("cmd:ctest", "mpi4py", "cmd:mpiexec.mpich"),
         files={"CTestTestfile.cmake": ("{programs}/CTestTestfile.cmake", "@python@", "{python}")}),
]
