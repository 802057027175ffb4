"""The report in Markdown, made of results.json's content and published.toml."""

import pathlib

import figures
import plan

SIGN = {"exact": "", "lower": "≥ ", "unknown": "? "}


def show(entry, digits=2, signed=False):
    """mean ± half of the 95 % interval; ≥ where jobs did not end, ? where a ratio has such a denominator."""
    if entry is None:
        return "–"
    if entry["bound"] == "unknown":
        return "saturated"
    text = f"{entry['mean']:+.{digits}f}" if signed else f"{entry['mean']:.{digits}f}"
    half = entry["half_width_95"]
    return SIGN[entry["bound"]] + text + (f" ± {half:.{digits}f}" if half is not None and entry["bound"] == "exact" else "")


def plain(value, digits=2):
    return "–" if value is None else f"{value:.{digits}f}"


def rows(head, lines):
    text = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(text + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def text(found, published):
    """The whole report."""
    parts = [opening(found), summary(found)]
    for reading in found["figure3"]:
        parts.append(figure3(found["figure3"][reading], reading))
    for reading, load in found["best_load"].items():
        parts.append(exhibits(found["exhibits"][f"{reading}/{load}"], reading, load))
    parts += [(pathlib.Path(__file__).parent / "conjecture.md").read_text(), other_loads(found), sweep(found), statements(found, published), length_check(found)]
    return "\n".join(parts)


def opening(found):
    made, size = found["made"], found["size"]
    seeds = ", ".join(map(str, found["seeds"]))
    return f"""# Zhang et al. 2000, simulated again

Written by `experiments/zhang-2000/reproduce --{made['size']}`; README.md says in words what agrees and what does not.

- Made on {made['date']}, commit {made['commit']}, simulator sha256 {made['program_sha256']}…
- {size['jobs']} jobs a list ({size['figure3_jobs']} for Figure 3), mean execution time {size['mean_exec_s']:g} s (the paper: about 10^4 s), 32 nodes; seeds {seeds}, each with the same
  job list and the same draws for all strategies. {made['simulations']:,} simulations of {made['simulated_node_s']:,} node-seconds, {made['simulation_s']:.0f} s in the event loop.
- "a ± b": mean over seeds and half of its 95 % confidence interval. "≥": jobs had not ended when the run was cut (at
  the last arrival + 6 times the time that the nominal work needs on all nodes); "saturated": a ratio to such a value.
- Grain k: message latency and spin time times k, and with them the iterations; 1 is the paper's Table 3 read literally. Cd-scale k:
  computation and I/O of an iteration times k at that literal latency (D10 of docs/simulator.md), so the part of communication is smaller.
"""


def summary(found):
    lines = []
    for key, exhibit in found["exhibits"].items():
        reading, load = key.split("/")
        decided = sum(entry["decided"] for entry in exhibit["statements"])
        holding = sum(entry["holding"] for entry in exhibit["statements"])
        whole = sum(entry["verdict"] == "holds" for entry in exhibit["statements"])
        lines.append([
            reading, load, *taus(exhibit["table4"]), *taus(exhibit["table5"]), f"{whole} of {len(exhibit['statements'])}",
            f"{holding} of {decided} ({100 * holding / decided:.0f} %)" if decided else "–",
        ])
    head = ["reading", "load", "Table 4 error", "same direction", "Kendall's τ", "Table 5 error", "same direction", "Kendall's τ", "statements hold", "comparisons hold"]
    best = ", ".join(f"{reading}: {load:g}" for reading, load in found["best_load"].items())
    return f"""## In short

The paper does not tell the load of Figures 4, 5 and Tables 4, 5. All loads are shown here; the details below are for the one under
which Table 4 comes out closest ({best}). Error: mean absolute difference of entries of at most 1 in size, of those that are not
saturated here. Same direction: entries that rise or fall in both. τ: rank agreement of the strategies, mean over the columns. Statements: those of section 4 in published.toml
(Figure 3's are the same for all loads); each consists of comparisons between strategies.

""" + rows(head, lines)


def taus(columns):
    """Mean error, same sign and mean tau of a table's columns."""
    ordered = [column["kendall_tau"] for column in columns if column["kendall_tau"] is not None]
    compared = sum(column["compared"] for column in columns)
    errors = sum(column["errors"] for column in columns)
    error = sum(column["mean_error"] * column["errors"] for column in columns if column["mean_error"] is not None) / errors if errors else None
    return [plain(error), f"{sum(column['same_sign'] for column in columns)} of {compared}", plain(sum(ordered) / len(ordered) if ordered else None)]


def figure3(figure, reading):
    lines = []
    for strategy, row in figure["strategies"].items():
        paper = plain(row["published"]) if row["published"] is not None else f"< {row['published_below']:.2f}" if row["published_below"] else "0.57 to 0.77"
        lines.append([strategy, paper, show(row["limit"]), show(row["capacity"])])
    agreement = figure["kendall_tau"]
    lines.append(["Kendall's τ with the paper's order (of how many)", "", *(f"{plain(agreement[metric]['tau'])} ({agreement[metric]['compared']})" for metric in ("limit", "capacity"))])
    return f"""## Figure 3, {reading}: highest useful utilisation (WL7, MPL 5, s = 20 %)

{link(figures.title3(reading))}Limit: the useful utilisation (computation + ideal communication) offered at which the mean response of the last quarter of the jobs
passes 5 mean execution times, interpolated between the loads that were run. Capacity: what is reached with all jobs queued from the
start, while the queue is not empty. The paper says neither how long its job lists are nor what it calls saturation.

""" + rows(["strategy", "paper", "limit", "capacity"], lines)


def exhibits(exhibit, reading, load):
    return f"## Figures 4, 5 and Tables 4, 5: {reading}, load {load:g}\n\n" + "\n".join([
        figure4(exhibit["figure4"], reading), figure5(exhibit["figure5"], reading),
        table4(exhibit["table4"], reading), table5(exhibit["table5"], reading),
    ])


def figure4(workloads, reading):
    head = ["strategy", *(f"{workload} {part}" for workload in workloads for part in ("response", "wait"))]
    lines = []
    for strategy in plan.STRATEGIES:
        cells = [show(workloads[workload][strategy][part]) for workload in workloads for part in ("response", "wait")]
        lines.append([strategy, *cells])
    links = "".join(link(figures.title4(workload, reading)) for workload in workloads)
    return f"### Figure 4: response and wait in it, s\n\n{links}" + rows(head, lines)


def figure5(strategies, reading):
    lines = []
    for strategy, by_skew in strategies.items():
        cells = [show(by_skew[skew][part]) for skew in ("0.2", "1.5") for part in ("response", "execution")]
        lines.append([strategy, *cells, *(show(by_skew[skew]["spin_share"], 3) for skew in ("0.2", "1.5"))])
    head = ["strategy", "20 % response", "execution", "150 % response", "execution", "spin share 20 %", "150 %"]
    return f"### Figure 5: skewness, WL4, s\n\n{link(figures.title5(reading))}" + rows(head, lines)


def table4(columns, reading):
    head = ["strategy", *(f"{column['column']['workload']} MPL {column['column']['mpl']}" for column in columns)]
    return "### Table 4: change of the response with respect to MPL 2, paper / simulated\n\n" + link(figures.title_table4(reading)) + side_by_side(head, columns, True)


def table5(columns, reading):
    return "### Table 5: response relative to the base costs (WL5), paper / simulated\n\n" + link(figures.title_table5(reading)) + side_by_side(
        ["strategy", *(column["column"] for column in columns)], columns, False)


def link(title):
    return f"[{title}](page.html)\n\n"


def side_by_side(head, columns, signed):
    lines = []
    for strategy in columns[0]["entries"]:
        entries = [column["entries"][strategy] for column in columns]
        sign = "+" if signed else ""
        lines.append([strategy, *(
            f"{'–' if entry['published'] is None else format(entry['published'], sign + '.2f')} / {show(entry['simulated'], signed=signed)}" for entry in entries)])
    lines.append(["Kendall's τ (of how many)", *(f"{plain(column['kendall_tau'])} ({column['compared']})" for column in columns)])
    lines.append(["mean error", *(plain(column["mean_error"]) for column in columns)])
    return rows(head, lines)


def other_loads(found):
    """Responses of Figure 4 under every reading and load, relative to PB."""
    lines = []
    for key, exhibit in found["exhibits"].items():
        reading, load = key.split("/")
        for workload, strategies in exhibit["figure4"].items():
            pb = strategies["PB"]["response"]
            cells = []
            for strategy in plan.STRATEGIES:
                entry = strategies[strategy]["response"]
                usable = entry and pb and pb["bound"] == "exact"
                cells.append(SIGN[entry["bound"]] + f"{entry['mean'] / pb['mean']:.2f}" if usable else "–")
            lines.append([reading, load, workload, *cells])
    return "## Figure 4 under all readings and loads: response relative to PB\n\n" + rows(["reading", "load", "workload", *plan.STRATEGIES], lines)


def sweep(found):
    """How the reading moves what the paper fixes by numbers."""
    if not found["sweep"]:
        return ""
    load = found["size"]["loads"][-1]
    head = ["reading", *(f"{strategy} {what}" for what in ("capacity", "WL5") for strategy in plan.SWEPT), "GS / SB", "GS / PB-SB", "GS / PB-SY"]
    lines = []
    for reading, strategies in found["sweep"].items():
        response = {strategy: strategies[strategy]["response"] for strategy in plan.SWEPT}
        ratios = [f"{response['GS']['mean'] / response[other]['mean']:.2f}" for other in ("SB", "PB-SB", "PB-SY")]
        lines.append([reading, *(show(strategies[s]["capacity"]) for s in plan.SWEPT), *(show(response[s], 1) for s in plan.SWEPT), *ratios])
    lead = f"Capacity as in Figure 3 (paper: GS 0.57; SB, PB, PB-SB 0.77; DCS below 0.5), response in s for WL5 at load {load:g} (paper: GS, SB, PB-SB, PB-SY alike, PB best)."
    return f"## By reading\n\n{lead}\n\n" + rows(head, lines)


def statements(found, published):
    """A line for each statement: its verdict under each reading and load, and what fails at the chosen one."""
    keys = list(found["exhibits"])
    by_key = {key: {entry["id"]: entry for entry in exhibit["statements"]} for key, exhibit in found["exhibits"].items()}
    lines = []
    for statement in published["statement"]:
        cells = [word(by_key[key][statement["id"]], len(found["seeds"])) for key in keys]
        lines.append([statement["id"], statement["exhibit"], statement["words"], statement["reading"], *cells])
    head = ["id", "exhibit", "the paper (section 4)", "read as", *(key.replace("/", ", load ") for key in keys)]
    return """## The paper's statements

"k/n": of n comparisons that can be decided, k hold; in brackets the number of seeds for each of which the statement holds.

""" + rows(head, lines) + "\n" + by_reading(found) + "\n" + failing(found)


def by_reading(found):
    """The loads at which each statement holds, and what holds under one reading alone."""
    holding = {}
    for key, exhibit in found["exhibits"].items():
        reading, load = key.split("/")
        for entry in exhibit["statements"]:
            loads = holding.setdefault(entry["id"], {each: [] for each in found["best_load"]})[reading]
            loads += [load] if entry["verdict"] == "holds" else []
    only = {reading: [] for reading in found["best_load"]}
    for statement, loads in holding.items():
        under = [reading for reading in loads if loads[reading]]
        if len(under) == 1:
            only[under[0]].append(statement)
    alone = "".join(f"- Under {reading} alone: {', '.join(names) or 'none'}.\n" for reading, names in only.items())
    lines = [[statement, *(", ".join(under) or "–" for under in loads.values())] for statement, loads in holding.items()]
    return "### The loads at which a statement holds\n\n" + rows(["id", *only], lines) + "\n" + alone


def word(entry, seeds):
    if entry["decided"] == 0:
        return "open"
    return f"{entry['verdict']} {entry['holding']}/{entry['decided']} ({entry['seeds_holding']} of {seeds})"


def failing(found):
    """The comparisons that fail at the chosen load of each reading."""
    parts = ["### What does not hold\n"]
    for reading, load in found["best_load"].items():
        parts.append(f"{reading.capitalize()}, load {load:g} (values in s, or as the statement says):\n")
        for entry in found["exhibits"][f"{reading}/{load}"]["statements"]:
            if entry["failing"]:
                shown = "; ".join(entry["failing"][:6]) + (f"; and {len(entry['failing']) - 6} more" if len(entry["failing"]) > 6 else "")
                parts.append(f"- {entry['id']}: not {shown}")
        parts.append("")
    return "\n".join(parts)


def length_check(found):
    """Whether the length of jobs changes the ranking."""
    parts = ["## Does the length of jobs matter?\n"]
    for workload, check in found["lengths"].items():
        lengths = found["size"]["lengths"]
        lines = [[strategy, *(show(row[str(length)]) for length in lengths)] for strategy, row in check["stretch"].items()]
        parts.append(f"{workload}, {next(iter(found['figure3']))}, load {check['load']:g}: response / mean execution time.\n")
        parts.append(rows(["strategy", *(f"{length:g} s" for length in lengths)], lines))
        for length, against in check["against_first"].items():
            largest = "–" if against["largest_change"] is None else f"{100 * against['largest_change']:.0f} %"
            parts.append(
                f"{lengths[0]:g} s against {float(length):g} s: τ = {plain(against['kendall_tau'])} over {against['compared']} strategies, largest change {largest}, "
                f"pairs more than 15 % apart that swap: {against['swapped_over_15_percent']}.\n")
    if not found["lengths"]:
        parts.append("Not looked at in this size.\n")
    return "\n".join(parts)
