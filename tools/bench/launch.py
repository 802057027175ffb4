"""launch: from the start of `cosched run true` to its end, compared with `true` alone.

Interleaved, one process start each; then while two other jobs of spinning processes run. At the end no job's cgroup
and no process of one may be left.
"""

import subprocess
import time

import live
from figures import median, quantile, table as make_table, text


def add_arguments(parser):
    parser.add_argument("--repeat", type=int, metavar="N", help="launches of each [default: 200; --quick: 100]")


def time_ms(words):
    begin = time.monotonic()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    took_ms = (time.monotonic() - begin) * 1000
    if done.returncode:
        raise live.Failure(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.decode().strip()}")
    return took_ms


def measure(daemon, arguments):
    repeat = arguments.repeat or (100 if arguments.quick else 200)
    plain, job = ["true"], daemon.run_words(["true"])
    time_ms(plain), time_ms(job)
    times_ms = {"true": [], "cosched run true": [], "cosched run true, two gangs running": []}
    for _ in range(repeat):
        times_ms["true"].append(time_ms(plain))
        times_ms["cosched run true"].append(time_ms(job))
    spin = [daemon.programs / "barrier-omp", "--threads", 2, "--seconds", 1000]
    busy = [daemon.start(daemon.run_words(spin, "--name", f"busy{i}")) for i in range(2)]
    time.sleep(0.5)
    for _ in range(max(20, repeat // 4)):
        times_ms["cosched run true, two gangs running"].append(time_ms(job))
    for i, process in enumerate(busy):
        daemon.cli("kill", "-9", f"busy{i}")
        process.communicate(timeout=30)
    return {"times_ms": times_ms, "left_behind": wait_for_nothing(daemon)}


def wait_for_nothing(daemon):
    """Checks after a grace period that nothing is left; otherwise an error."""
    for _ in range(50):
        left = daemon.left_behind()
        if not left:
            return left
        time.sleep(0.1)
    raise live.Failure(f"left behind by the launches: {'; '.join(left)}")


def table(result):
    rows = []
    for name, times_ms in result["times_ms"].items():
        rows.append([name, len(times_ms), text(median(times_ms), 2), text(quantile(times_ms, 0.99), 2)])
    launches = sum(len(times) for name, times in result["times_ms"].items() if name != "true")
    lines = make_table("launch: start to end, ms", ["command", "runs", "median", "p99"], rows)
    return lines + [f"    after {launches} launches: {len(result['left_behind'])} cgroups or processes left"]
