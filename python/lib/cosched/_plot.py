"""Plots of simulations with matplotlib. Each function returns its axes, and draws into `ax` if given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosched.sim import Comparison, Result

#: Parts of the CPU time, from work to waste, in colours that the colour-blind tell apart (Okabe and Ito 2008).
COLOURS = {
    "compute": "#009E73", "spin": "#D55E00", "switch": "#E69F00", "interrupt": "#CC79A7", "sched": "#56B4E9", "idle": "#DDDDDD",
}


def _axes(ax: Any, title: str, x: str, y: str) -> Any:
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(layout="constrained")[1]
    ax.set(title=title, xlabel=x, ylabel=y)
    return ax


class ResultPlot:
    """Plots of a run."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def gantt(self, ax: Any = None) -> Any:
        """Each job as a bar, in the order of the list: grey while it waits for its nodes, green while it runs. The height of a bar is in
        proportion to the job's tasks."""
        ax = _axes(ax, f"{self._result.strategy}: jobs", "simulated time (s)", "job")
        tasks_max = max(self._result.column("tasks"), default=1)
        for row in self._result:
            if row["start_ns"] is None:
                continue
            arrival, start = row["arrival_ns"] / 1e9, row["start_ns"] / 1e9
            end = (row["finish_ns"] or self._result.metrics["sim_end_s"] * 1e9) / 1e9
            height = 0.2 + 0.7 * row["tasks"] / tasks_max
            ax.barh(row["id"], start - arrival, left=arrival, height=height, color=COLOURS["idle"])
            ax.barh(row["id"], end - start, left=start, height=height, color=COLOURS["compute"])
        ax.invert_yaxis()
        return ax

    def response(self, ax: Any = None) -> Any:
        """The cumulative distribution of the response times."""
        ax = _axes(ax, f"{self._result.strategy}: response times", "response time (s)", "part of the jobs")
        times = sorted(time for time in self._result.column("response_s") if time is not None)
        ax.step(times, [(place + 1) / len(times) for place in range(len(times))], where="post", label=self._result.strategy)
        ax.set_ylim(0, 1)
        return ax

    def utilisation(self, ax: Any = None) -> Any:
        """How the CPU time was spent."""
        ax = _axes(ax, f"{self._result.strategy}: CPU time", "", "part of the CPU time")
        parts = self._result.cpu
        ax.bar(list(parts), list(parts.values()), color=[COLOURS[name] for name in parts])
        return ax


class ComparisonPlot:
    """Plots of a comparison or sweep."""

    def __init__(self, table: Comparison) -> None:
        self._table = table

    def _labels(self, shown: Callable[[dict[str, Any]], bool] = lambda row: True) -> list[str]:
        """Labels with the parameters in which the rows differ, of those that are shown."""
        names = ["strategy", "workload", "load", "nodes", "mpl", "skew", "grain", "cs_us", "intr_us", "quantum_ms"]
        rows = list(self._table)
        # Costs always differ between kinds of strategies.
        said = [name for name in names if name == "strategy" or len({row[name] for row in rows if row[name] is not None}) > 1]
        if len({row["strategy"] for row in rows}) == len(rows):
            said = ["strategy"]
        return [" ".join(str(row[name]) for name in said if row[name] is not None) for row in rows if shown(row)]

    def response(self, ax: Any = None) -> Any:
        """The mean response time of each setting that has one, with its 95 % interval."""
        ax = _axes(ax, "mean response time (95 % intervals)", "", "s")
        rows = [row for row in self._table if row["mean_response_s"] is not None]
        means = [row["mean_response_s"] for row in rows]
        errors = [row["mean_response_s_ci95"] or 0.0 for row in rows]
        ax.bar(self._labels(lambda row: row["mean_response_s"] is not None), means, yerr=errors, capsize=3, color=COLOURS["compute"])
        ax.tick_params(axis="x", rotation=45)
        return ax

    def utilisation(self, ax: Any = None) -> Any:
        """How each setting's CPU time was spent."""
        ax = _axes(ax, "CPU time", "", "part of the CPU time")
        labels, below = self._labels(), [0.0] * len(self._table)
        for name, colour in COLOURS.items():
            parts = [part or 0.0 for part in self._table.column(f"cpu_{name}")]
            ax.bar(labels, parts, bottom=below, color=colour, label=name)
            below = [sum(pair) for pair in zip(below, parts)]
        ax.tick_params(axis="x", rotation=45)
        ax.legend()
        return ax
