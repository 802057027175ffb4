"""The report in Markdown, made of results.json's content."""

from figures import NAMES, title_by_jobs, title_by_processes

QUESTIONS = {
    "poll": ("How long sysv polls (p = 2)", "The paper says \"a certain interval\"; a single job hardly shows it, several do."),
    "scheduler": ("The node's scheduler (p = 32)", "Linux 2.4 chose by what is left of a time slice of 60 ms; it is not simulated, but two that differ more from each other are."),
    "packets": ("LAM's packets (p = 32)", "Longer messages than 64 KiB go in packets, each after the acknowledgement of the one before."),
    "skew": ("How much computations vary (p = 32)", "At 0 all jobs do the same at the same time."),
    "nodes": ("Two processes a node, or one (p = 32)", "Single nodes have a link for each process, and no shared memory."),
    "quantum": ("The gangs' quantum (p = 32, strict gangs)", "The paper does not give SCore's. A gang's messages that are under way at a switch delay the next gang's; SCore flushes the network instead."),
    "gangs": ("Other gangs (p = 32; not in the paper)", "Gangs that lend CPUs that their processes leave idle, as cosched's do: to the next row (paired) or to any (soft)."),
    "level2": ("The cost of LU's panel (p = 32)", "The paper gives no rate for BLAS level 2; bunyip.toml's is fitted to Table 3's 56.2 s."),
    "smaller": ("Smaller matrices (p = 32)", "Section 5.3: %CPU \"5 %\" [sic] and 15 %, s_8 6.44 and 3.69."),
    "faster": ("The faster cluster of section 5.3 (p = 32)", "The paper's model: 45 % CPU, s_8 = 5.4."),
}


def rows(head, lines):
    text = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(text + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def pair(published, simulated, digits=2, stderr=None):
    """published / simulated ± standard error (difference in per cent of the published one)."""
    if simulated is None:
        return f"{published:.{digits}f} / –"
    error = f" ± {stderr:.{digits}f}" if stderr is not None else ""
    return f"{published:.{digits}f} / {simulated:.{digits}f}{error} ({100 * (simulated / published - 1):+.0f} %)"


def text(found):
    """The whole report."""
    parts = [opening(found), findings(found)]
    for number, program in ((1, "matmul"), (2, "lu")):
        parts.append(table(found, number, program))
    parts += [utilisation(found), table3(found), startup(found), extras(found), live(found)]
    return "\n".join(part for part in parts if part)


def opening(found):
    made = found["made"]
    return f"""# Strazdins & Uhlmann 2004, simulated again

Written by `experiments/strazdins-2004/reproduce --{made['size']}`; README.md says in words what agrees, what does not, and why.

- Made on {made['date']}, commit {made['commit']}, simulator sha256 {made['program_sha256']}…; {made['simulations']} simulations, {made['simulation_s']:.0f} s.
- "published / simulated ± standard error (difference)": means over {found['size']['seeds']} seeds, in which each computation takes
  its time times 1 ± {found['size']['skew'] / 2:.0%}, so that equal jobs are not in lock step. t_j is the time until the last of j jobs has ended, s_j = t_j / t_1; %CPU is the share of
  the p CPUs' time that the single job's processes use: computation, messages and polling.
- The simulator knows the Bunyip's constants only (`experiments/machines/bunyip.toml`, `score.toml`): flops, α, β, CPU part of
  messages, context switch. Nothing was fitted to Tables 1 and 2 but the cost of a level 2 operation, by the model to Table 3.
"""


def findings(found):
    word = {True: "yes", False: "**no**", None: "–"}
    lines = [
        [entry["statement"], *(f"{word[entry[which]['holds']]}: {entry[which]['numbers']}" for which in ("published", "simulated"))]
        for entry in found["claims"]
    ]
    return "## Findings\n\n" + rows(["finding", "published numbers", "simulated"], lines)


def table(found, number, program):
    out = f"## Table {number}: {NAMES[program]}\n\n[{title_by_processes(number, program)}](page.html)\n"
    for system in ("local", "gang"):
        lines = []
        for cell in found["cells"]:
            if (cell["program"], cell["system"]) == (program, system):
                published, simulated = cell["published"], cell["simulated"]
                slowdowns = [pair(published["slowdowns"][j], simulated["slowdowns"].get(j), stderr=simulated["stderr"].get(j)) for j in ("2", "4", "6", "8")]
                lines.append([
                    str(cell["p"]), str(cell["n"]), f"{published['cpu']:.0%} / {simulated['cpu']:.0%}",
                    pair(published["t1_s"], simulated["t1_s"], 1), *slowdowns,
                ])
        out += f"\n### {NAMES[system]}\n\n" + rows(["p", "N", "%CPU", "t_1, s", "s_2", "s_4", "s_6", "s_8"], lines)
    return out


def utilisation(found):
    """Where the CPUs' time goes in the simulation, alone and with eight jobs."""
    lines = []
    for cell in found["cells"]:
        if cell["system"] == "local" and "8" in cell["jobs"]:
            parts = [f"{100 * cell['jobs'][j][part]:.0f}" for j in ("1", "8") for part in ("compute", "messages", "spin")]
            lines.append([NAMES[cell["program"]], str(cell["p"]), *parts, f"{cell['jobs']['8']['switches']:,.0f}"])
    head = ["local", "p", "1 job: computing %", "messages %", "polling %", "8 jobs: computing %", "messages %", "polling %", "switches"]
    return "## Where the time goes\n\n" + rows(head, lines)


def table3(found):
    out = "## Table 3 (p = 32)\n\nThe error of assumption 1 is the model's total error less that of assumption 2; the simulator has no caches, so its error of assumption 2 is 0.\n\n"
    out += "".join(f"[{title_by_jobs(program)}](page.html)\n\n" for program in ("matmul", "lu"))
    lines = []
    for program in ("matmul", "lu"):
        for row in found["table3"]:
            if row["program"] == program:
                lines.append([NAMES[program], row["row"], *(number(row[name]) for name in ("t1_s", "s2", "s4", "s6", "s8"))])
        simulated = next((cell["simulated"] for cell in found["cells"] if (cell["program"], cell["system"], cell["p"]) == (program, "local", 32)), None)
        model = (found["model"] or {}).get(f"{program} bunyip")
        if model:
            lines.append([NAMES[program], "`cosched model`", *values(model)])
        if simulated:
            lines.append([NAMES[program], "**`cosched sim`**", *values(simulated)])
        if simulated and model:
            both = [(simulated["slowdowns"].get(j), model["slowdowns"].get(j)) for j in ("2", "4", "6", "8")]
            lines.append([NAMES[program], "error of `cosched model` against `cosched sim`, %", "", *(f"{100 * abs(1 - m / s):.0f}" if s and m else "–" for s, m in both)])
    out += rows(["program", "row", "t_1, s", "s_2", "s_4", "s_6", "s_8"], lines)
    if not found["model"]:
        out += "\nThis cosched has no `cosched model`; its rows are missing.\n"
    return out


def number(value):
    return "" if value is None else f"{value:g}"


def values(of):
    return [f"{of['t1_s']:.1f}", *(f"{of['slowdowns'][j]:.2f}" if j in of["slowdowns"] else "–" for j in ("2", "4", "6", "8"))]


def startup(found):
    """What part of t_1 would have to be no CPU time at all for the published gangs' s_8."""
    lines = []
    for cell in found["cells"]:
        if cell["system"] == "gang":
            published = cell["published"]
            lost_s = published["t1_s"] * (8 - published["slowdowns"]["8"]) / 7
            lines.append([NAMES[cell["program"]], str(cell["p"]), f"{published['t1_s']:.1f}", f"{published['slowdowns']['8']:.2f}", f"{lost_s:.2f}"])
    return ("## What the published gangs share\n\nIf t_j = o + j (t_1 − o), with a part o of each job (its start, its file access) that jobs "
            "do at the same time, the published s_8 of strict gangs say how long o is. The simulated programs have no such part.\n\n"
            + rows(["gang", "p", "t_1, s", "s_8", "o, s"], lines))


def extras(found):
    if not found["extras"]:
        return ""
    out = "## What open points and single assumptions matter\n\nOne and eight jobs; local scheduling unless said otherwise.\n"
    for question, (title, note) in QUESTIONS.items():
        lines = [
            [entry["name"], NAMES[entry["program"]], f"{entry['t1_s']:.1f}", f"{entry['cpu']:.0%}", f"{entry['slowdowns']['8']:.2f} ± {entry['stderr']['8']:.2f}",
             f"{entry['t8_s']:.0f}", f"{entry['cpu8']:.0%}"]
            for entry in found["extras"].get(question, [])
        ]
        if lines:
            lines.sort(key=lambda line: line[1])
            out += f"\n### {title}\n\n{note}\n\n" + rows(["", "program", "t_1, s", "%CPU of one", "s_8", "t_8, s", "%CPU of eight"], lines)
    return out


def live(found):
    title = "## Live: two processes on a machine of today\n\n"
    if not found["live"]:
        return title + "Nothing measured yet: `experiments/strazdins-2004/measure` does it and keeps the results in `live/`.\n"
    out = title
    for name, run in found["live"].items():
        single = run["single"] or {}
        out += f"### {name}\n\n`{' '.join(run['command'])}`, {run['cpus']} CPUs, {run['started']}; "
        out += f"alone {number(single.get('time_s'))} s, CPU share {number(single.get('cpu_share'))}.\n\n"
        lines = []
        # A single run says nothing of its error, and the base's is part of each slowdown's.
        base_runs = next((row["runs"] for row in run["results"] if row["policy"] == "linux" and row["jobs"] == 1), 2)
        for row in run["results"]:
            has_error = row["slowdown_stderr"] is not None and min(row["runs"], base_runs) > 1
            error = "" if not has_error else f" ± {row['slowdown_stderr']:.2f}"
            shown = "–" if row["slowdown"] is None else f"{row['slowdown']:.2f}{error}"
            lines.append([row["policy"], str(row["jobs"]), str(row["runs"]), number(row["time_s"]), shown, number(row["cpu_share"]), number(row["jain"]), str(row["not_done"] or "")])
        out += rows(["policy", "j", "runs", "t_j, s", "s_j", "CPU share", "Jain", "not done"], lines)
        program = "lu" if "lu" in name else "matmul"
        for cell in found["cells"]:
            if cell["program"] == program and cell["p"] == 2:
                published = " ".join(f"{value:.2f}" for value in cell["published"]["slowdowns"].values())
                out += f"\nPublished, p = 2, {NAMES[cell['system']]}: t_1 {cell['published']['t1_s']} s, {cell['published']['cpu']:.0%} CPU, s_j {published}.\n"
        out += "\n"
    return out
