"""Tables 1, 3 and 4 as charts, of results.json's content and the paper's numbers: published lines are solid, ours dashed."""

import page
import plan


def all_figures(tables, paper):
    """Keys of `tables` are words where they come from a file."""
    for table in plan.TABLES:
        for number, arms in tables.items():
            if int(number) == table.number:
                yield from figures_of(table, {arm: {int(threads): cell for threads, cell in cells.items()} for arm, cells in arms.items()}, paper[table.number])


def has_spread(table):
    """The paper gives no deviation in Table 1."""
    return table.number != 1


def title_rate(table):
    return f"Table {table.number}: {table.title}, rate against one thread"


def title_spread(table):
    return f"Table {table.number}: {table.title}, deviation"


def figures_of(table, measured, paper):
    threads = page.axis("threads")
    rates = [line(arm, "published", {count: published_rate(cells, count) for count in cells}) for arm, cells in paper.items()]
    rates += [line(arm, "measured", {count: cell["speedup"] for count, cell in cells.items()}, 3) for arm, cells in measured.items()]
    caption = "The rate in MFLOPS against that of one thread under the same scheduling. Twelve CPUs in 1997, those of the report here."
    yield page.chart(title_rate(table), caption, threads, page.axis("speedup"), *rates)
    if not has_spread(table):
        return
    spreads = [line(arm, "published", {count: cell["deviation"] / cell["mflops"] for count, cell in cells.items()}) for arm, cells in paper.items()]
    spreads += [line(arm, "measured", {count: cell["deviation"] / cell["mean"] for count, cell in cells.items()}, 3) for arm, cells in measured.items()]
    caption = "Standard deviation of the rate over the runs, against its mean: gang scheduling is to be the consistent one."
    yield page.chart(title_spread(table), caption, threads, page.axis("deviation / mean"), *spreads)


def published_rate(cells, count):
    """The paper's speedup, or what its rates give where it has none."""
    said = cells[count]["speedup"]
    return cells[count]["mflops"] / cells[1]["mflops"] if said is None else said


def line(arm, whose, points, later=0):
    return page.series(f"{arm}, {whose}", plan.ARMS.index(arm) + later, "line", sorted(points.items()))
