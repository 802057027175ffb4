"""From reports of runs to the tables' numbers, and the paper's statements as questions to them."""

import csv
import statistics

import plan


def cell(reports):
    """Mean, deviation and extremes of the MFLOPS of one program, thread count and arm; by the CPU time of a thread."""
    values = [report["mflops_cpu"] for report in reports]
    return {
        "runs": len(values),
        "mean": statistics.mean(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else 0.0,
        "median": statistics.median(values),
        "least": min(values),
        "most": max(values),
        "elapsed_s": statistics.median(report["main_phase_s"] for report in reports),
    }


def collect(runs, report_of):
    """{table: {arm: {threads: cell}}} with the speedup of each cell against one thread of the same arm."""
    grouped = {}
    for run in runs:
        grouped.setdefault((run.table, run.arm, run.threads), []).append(report_of(run))
    found = {}
    for (table, arm, threads), reports in sorted(grouped.items()):
        found.setdefault(table, {}).setdefault(arm, {})[threads] = cell(reports)
    for arms in found.values():
        for cells in arms.values():
            for one in cells.values():
                one["speedup"] = one["mean"] / cells[1]["mean"]
    return found


def published(path):
    """{table: {arm: {threads: {mflops, deviation, speedup}}}} of the paper; what a table does not say is None."""
    found = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            numbers = {name: float(row[name]) if row[name] else None for name in ("mflops", "deviation", "speedup")}
            found.setdefault(int(row["table"]), {}).setdefault(row["arm"], {})[int(row["threads"])] = numbers
    return found


def statements(found):
    """[(what the paper says, how it is read here, the numbers, whether it holds)] at the most threads that were run."""
    asked = []
    for table in found:
        gang, unix = found[table]["gang"], found[table]["unix"]
        most = max(gang)
        if table == 1:
            efficiency = gang[most]["speedup"] / most
            asked.append(("Table 1: near perfect efficiency at low levels of parallelism on a busy computer",
                          f"efficiency at {most} threads at least 0.95 (published at 2: 0.99)", f"{efficiency:.3f}", efficiency >= 0.95))
            continue
        ratio = gang[most]["mean"] / unix[most]["mean"]
        asked.append((f"Table {table}: gang scheduling is not slower", f"gang / UNIX in the mean, {most} threads, at least 0.98",
                      f"{ratio:.3f}", ratio >= 0.98))
        spread = [cells[most]["deviation"] / cells[most]["mean"] for cells in (gang, unix)]
        asked.append((f"Table {table}: gang scheduling is consistent, UNIX scheduling varies",
                      f"deviation / mean at {most} threads: UNIX at least twice gang",
                      f"{spread[0]:.3f} gang, {spread[1]:.3f} UNIX", spread[1] > 0 and spread[1] >= 2 * spread[0]))
        if table == 3:
            asked.append(("Table 3: speedup under gang scheduling is superlinear (caches grow with the CPUs)",
                          f"speedup at {most} threads above {most}", f"{gang[most]['speedup']:.2f}", gang[most]["speedup"] > most))
        if table == 4:
            worst = unix[most]["least"] / unix[most]["median"]
            asked.append(("Table 4: on occasion UNIX scheduling is dramatically worse (110 against 615 MFLOPS)",
                          f"its worst run of all at {most} threads below half of its median", f"{worst:.2f}", worst < 0.5))
    return asked


def tables_of(numbers):
    """The tables with these numbers."""
    return [table for table in plan.TABLES if table.number in numbers]
