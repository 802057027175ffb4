"""Tables 1 to 3 as charts, of results.json's content: published lines are solid, ours dashed."""

import page

NAMES = {"matmul": "matrix multiply", "lu": "Linpack (LU)", "local": "LAM – local scheduling", "gang": "SCore – gang scheduling"}
SYSTEMS = ("local", "gang")
WHOSE = ("published", "simulated")


def all_figures(found):
    for number, program in ((1, "matmul"), (2, "lu")):
        cells = [cell for cell in found["cells"] if cell["program"] == program]
        yield by_processes(cells, number, program)
        yield by_jobs(found, cells, program)


def title_by_processes(number, program):
    return f"Table {number}: {NAMES[program]}, slowdown of eight jobs by processes"


def title_by_jobs(program):
    return f"Table 3: {NAMES[program]}, slowdown by jobs on the most processes"


def by_processes(cells, number, program):
    sizes = sorted({cell["p"] for cell in cells})
    lines = [
        line(system, whose, [(sizes.index(cell["p"]) + 0.5, *slowdown(cell[whose], "8")) for cell in cells if cell["system"] == system and "8" in cell[whose]["slowdowns"]])
        for system in SYSTEMS for whose in WHOSE
    ]
    caption = "Eight jobs at the same time against one alone; simulated ± standard error."
    return page.chart(title_by_processes(number, program), caption, page.axis("processes p of a job", names=[str(size) for size in sizes]), page.axis("slowdown s_8"), *lines)


def by_jobs(found, cells, program):
    most = max(cell["p"] for cell in cells)
    shown = [cell for cell in cells if cell["p"] == most]
    lines = [line(cell["system"], whose, [(int(jobs), *slowdown(cell[whose], jobs)) for jobs in cell[whose]["slowdowns"]]) for cell in shown for whose in WHOSE]
    for row in found["table3"]:
        if row["program"] == program and row["row"].startswith("model") and row["p"] == most:
            lines.append(page.series("local, the paper's model", 2, "line", [(jobs, row[f"s{jobs}"]) for jobs in (2, 4, 6, 8)]))
    ours = (found["model"] or {}).get(f"{program} bunyip")
    if ours and most == 32:
        lines.append(page.series("local, cosched model", 5, "line", [(int(jobs), value) for jobs, value in ours["slowdowns"].items()]))
    caption = f"p = {most}, N = {shown[0]['n']}; simulated ± standard error."
    return page.chart(title_by_jobs(program), caption, page.axis("jobs j"), page.axis("slowdown s_j"), *lines)


def line(system, whose, points):
    return page.series(f"{system}, {whose}", SYSTEMS.index(system) + 3 * WHOSE.index(whose), "line", points)


def slowdown(measures, jobs):
    """The value, and its standard error where there is one."""
    return measures["slowdowns"][jobs], measures.get("stderr", {}).get(jobs)
