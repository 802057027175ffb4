"""Slowdowns over the number of jobs, the simulator's beside them, and the table."""

import json
import statistics
import subprocess

import runner

NAMES = {"nosv": "nOS-V", "futex": "futex, Linux", "linux": "spin, Linux", "cosched": "spin, cosched"}
SKEW = 0.02  # of the simulated tasks; without it they would always meet at the same instant, and never wait
NETWORK_US = 0.1  # a message of the simulated barrier


def spread(values):
    return {"n": len(values), "median": statistics.median(values), "low": min(values), "high": max(values)}


def predicted(program, grain_us, switch_us):
    """Time of COOP in the simulator over that of one spinning job alone and over the number of jobs: one node of two CPUs, no spinning before a process blocks."""
    text = f"repeat {int(runner.WORK_S * 1e6 / grain_us)} {{ compute {grain_us}us skew; barrier }}\n"
    options = ["--tasks", 2, "--nodes", 1, "--cpus-per-node", 2, "--copies", "1,2,4", "--strategies", "GS,COOP", "--skew", SKEW, "--cs-us", f"{switch_us:.3f}",
               "--intr-us", 0, "--qmove-us", 0, "--check-us", 0, "--spin-us", 0.001, "--network", f"{NETWORK_US},0", "--shared-memory", f"{NETWORK_US},0"]
    done = subprocess.run([program, "sim", "program", "--json", "--quiet", *map(str, options), "/dev/stdin"], input=text, capture_output=True, text=True)
    if done.returncode:
        raise runner.Failed(f"cosched sim program: {done.stderr.strip()}")
    took = {(row["strategy"], row["copies"]): row["makespan_s"] for row in json.loads(done.stdout)}
    return {str(jobs): took["COOP", jobs] / took["GS", 1] / jobs for jobs in [1, *runner.JOBS]}


def collect(entries, program):
    """Of each case the spread over the repetitions; None if there is no repetition that has one job alone."""
    runs = {(entry["grain_us"], entry["jobs"], entry["way"], entry["repetition"]): entry["seconds"] for entry in entries.values() if "way" in entry}
    rows = []
    for grain in runner.GRAINS_US:
        alone = {repetition: seconds for (grain_us, jobs, way, repetition), seconds in runs.items() if (grain_us, jobs, way) == (grain, 1, "linux") and seconds}
        for jobs, way in [*[(1, way) for way in runner.ALONE[1:]], *[(jobs, way) for jobs in runner.JOBS for way in runner.WAYS]]:
            found = [(runs[grain, jobs, way, repetition], yard) for repetition, yard in alone.items() if (grain, jobs, way, repetition) in runs]
            # A run that was ended counts as long as it was allowed.
            ratios = [(took or runner.LIMIT * jobs * runner.WORK_S) / yard / jobs for took, yard in found]
            if ratios:
                rows.append({"grain_us": grain, "jobs": jobs, "way": way, "ended": sum(took is None for took, _ in found), **spread(ratios)})
    switches = [seconds * 1e6 / (2 * runner.SWITCHES) for (grain, _, _, _), seconds in runs.items() if grain == 0 and seconds]
    if not rows or not switches:
        return None
    switch = spread(switches)
    coop = {str(grain): predicted(program, grain, switch["median"]) for grain in runner.GRAINS_US}
    return {"machine": entries["calibration"], "switch_us": switch, "slowdowns": rows, "coop": coop}


def cell(row):
    mark = "> " if row["ended"] >= row["n"] / 2 else ""
    return f"{mark}{row['median']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def text(whole):
    """The report in Markdown."""
    found = {(row["grain_us"], row["jobs"], row["way"]): row for row in whole["slowdowns"]}
    lines = ["# nOS-V beside cosched: what was measured", "", f"{whole['made']['date']}, commit {whole['made']['commit']}; {whole['machine']['cpus']} CPUs, Linux {whole['machine']['kernel']}.",
             "Time of all jobs over that of one spinning job alone and over their number: median (range); 1 is ideal.", "",
             "| grain | jobs | n | " + " | ".join(NAMES.values()) + " | COOP, simulated |", "|---" * (4 + len(NAMES)) + "|"]
    for grain in runner.GRAINS_US:
        for jobs in [1, *runner.JOBS]:
            rows = [found.get((grain, jobs, way)) for way in NAMES]
            if any(rows):
                coop = whole["coop"][str(grain)][str(jobs)]
                counts = sorted({row["n"] for row in rows if row})
                cells = [cell(row) if row else "" for row in rows]
                lines.append(f"| {grain} µs | {jobs} | {', '.join(map(str, counts))} | " + " | ".join(cells) + f" | {coop:.3f} |")
    switch = whole["switch_us"]
    lines += ["", f"A pause and a switch of nOS-V, from two jobs without work: {switch['median']:.2f} µs ({switch['low']:.2f} to {switch['high']:.2f}, n = {switch['n']}); the simulator has this as its context switch."]
    return "\n".join(lines) + "\n"
