"""Plots of simulations, with Altair or Matplotlib. Each returns Altair's chart, or Matplotlib's axes; it draws into axes that are given as `ax`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from cosched.sim import Comparison, Result

#: Parts of the CPU time, from work to waste, in colours that the colour-blind tell apart (Okabe and Ito 2008).
COLOURS = {
    "compute": "#009E73", "spin": "#D55E00", "switch": "#E69F00", "interrupt": "#CC79A7", "sched": "#56B4E9", "idle": "#DDDDDD",
}
#: What draws.
Library = Literal["altair", "matplotlib"]
LIBRARIES: tuple[Library, ...] = ("matplotlib", "altair")


@dataclass(frozen=True)
class Bar:
    """A bar from `low` to `high` at a place of the other axis."""

    at: str | int
    low: float
    high: float
    part: str
    width: float = 0.8


@dataclass(frozen=True)
class Picture:
    """What a picture shows, whatever draws it."""

    title: str
    x: str
    y: str
    bars: list[Bar] = field(default_factory=list)
    is_lying: bool = False
    #: By the place of a bar: half of its 95 % interval.
    errors: dict[str | int, float] = field(default_factory=dict)
    has_legend: bool = False
    #: Of a picture of steps: its name, and where they rise.
    name: str | None = None
    steps: list[tuple[float, float]] = field(default_factory=list)

    def draw(self, ax: Any, using: Library | None) -> Any:
        """Draws it with the library that is asked for, or whichever is there."""
        if using is None and ax is not None:
            using = "matplotlib"
        using = using or next((name for name in LIBRARIES if find_spec(name)), None)
        if using is None:
            raise ModuleNotFoundError("no pictures\n  why: neither Matplotlib nor Altair is installed\n  hint: pip install matplotlib, or altair")
        if using not in LIBRARIES:
            raise ValueError(f"nothing draws pictures with {using!r}\n  why: there are {' and '.join(LIBRARIES)}\n  hint: leave `using` out")
        if using == "altair" and ax is not None:
            raise ValueError("Altair cannot draw into `ax`\n  why: those are axes of Matplotlib\n  hint: leave `ax` or `using` out")
        return _altair(self) if using == "altair" else _matplotlib(self, ax)


def _matplotlib(picture: Picture, ax: Any) -> Any:
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(layout="constrained")[1]
    ax.set(title=picture.title, xlabel=picture.x, ylabel=picture.y)
    draw, side, base = (ax.barh, "height", "left") if picture.is_lying else (ax.bar, "width", "bottom")
    named = set()
    for bar in picture.bars:
        label = bar.part if picture.has_legend and bar.part not in named else None
        named.add(bar.part)
        draw(bar.at, bar.high - bar.low, color=COLOURS[bar.part], label=label, **{side: bar.width, base: bar.low})
    for at, half in picture.errors.items():
        ax.errorbar(at, next(bar.high for bar in picture.bars if bar.at == at), half, fmt="none", ecolor="black", capsize=3)
    if picture.name is not None:
        ax.step([x for x, _ in picture.steps], [y for _, y in picture.steps], where="post", label=picture.name)
        ax.set_ylim(0, 1)
    if picture.is_lying:
        ax.invert_yaxis()
    elif any(len(str(bar.at)) > 10 for bar in picture.bars) or len({bar.at for bar in picture.bars}) > 6:
        ax.tick_params(axis="x", rotation=45)
    if picture.has_legend:
        ax.legend()
    return ax


def _altair(picture: Picture) -> Any:
    altair: Any = import_module("altair")
    if picture.name is not None:
        rows = [{"x": x, "y": y, "name": picture.name} for x, y in picture.steps]
        x, y = altair.X("x:Q", title=picture.x), altair.Y("y:Q", title=picture.y, scale=altair.Scale(domain=[0, 1]))
        chart = altair.Chart(altair.Data(values=rows), title=picture.title).mark_line(interpolate="step-after")
        return chart.encode(x=x, y=y, color=altair.Color("name:N", title=None))
    rows = [{"at": bar.at, "low": bar.low, "high": bar.high, "part": bar.part, "width": bar.width, "error": picture.errors.get(bar.at)} for bar in picture.bars]
    base = altair.Chart(altair.Data(values=rows), title=picture.title)
    colour = altair.Color("part:N", title=None, scale=altair.Scale(domain=[*COLOURS], range=[*COLOURS.values()]),
                          legend=altair.Legend() if picture.has_legend else None)
    if picture.is_lying:
        low, high = altair.X("low:Q", title=picture.x), altair.X2("high:Q")
        # A bar's size is in pixels, of the 12 that a job has.
        return base.transform_calculate(size="datum.width * 12").mark_bar().encode(
            x=low, x2=high, y=altair.Y("at:O", title=picture.y), color=colour, size=altair.Size("size:Q", scale=None)).properties(height=altair.Step(12))
    x = altair.X("at:N", title=picture.x or None, sort=None)
    chart = base.mark_bar().encode(x=x, y=altair.Y("low:Q", title=picture.y), y2=altair.Y2("high:Q"), color=colour)
    if not picture.errors:
        return chart
    whiskers = base.transform_calculate(below="datum.high - datum.error", above="datum.high + datum.error").mark_rule()
    return chart + whiskers.encode(x=x, y=altair.Y("below:Q", title=picture.y), y2=altair.Y2("above:Q"))


class ResultPlot:
    """Plots of a run. `using` says which library draws: "matplotlib" or "altair"; unless told, Matplotlib if it is installed."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def gantt(self, ax: Any = None, *, using: Library | None = None) -> Any:
        """Each job as a bar, in the order of the list: grey while it waits for its nodes, green while it runs. The height of a bar is in
        proportion to the job's tasks."""
        tasks_max, bars = max(self._result.column("tasks"), default=1), []
        for row in self._result:
            if row["start_ns"] is None:
                continue
            arrival, start = row["arrival_ns"] / 1e9, row["start_ns"] / 1e9
            end = (row["finish_ns"] or self._result.metrics["sim_end_s"] * 1e9) / 1e9
            height = 0.2 + 0.7 * row["tasks"] / tasks_max
            bars += [Bar(row["id"], arrival, start, "idle", height), Bar(row["id"], start, end, "compute", height)]
        return Picture(f"{self._result.strategy}: jobs", "simulated time (s)", "job", bars, is_lying=True).draw(ax, using)

    def response(self, ax: Any = None, *, using: Library | None = None) -> Any:
        """The cumulative distribution of the response times."""
        times = sorted(time for time in self._result.column("response_s") if time is not None)
        steps = [(time, (place + 1) / len(times)) for place, time in enumerate(times)]
        name = self._result.strategy
        return Picture(f"{name}: response times", "response time (s)", "part of the jobs", steps=steps, name=name).draw(ax, using)

    def utilisation(self, ax: Any = None, *, using: Library | None = None) -> Any:
        """How the CPU time was spent."""
        bars = [Bar(name, 0.0, part, name) for name, part in self._result.cpu.items()]
        return Picture(f"{self._result.strategy}: CPU time", "", "part of the CPU time", bars).draw(ax, using)


class ComparisonPlot:
    """Plots of a comparison or sweep. `using` is as of a run's plots."""

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

    def response(self, ax: Any = None, *, using: Library | None = None) -> Any:
        """The mean response time of each setting that has one, with its 95 % interval."""
        rows = [row for row in self._table if row["mean_response_s"] is not None]
        labels = self._labels(lambda row: row["mean_response_s"] is not None)
        bars = [Bar(label, 0.0, row["mean_response_s"], "compute") for label, row in zip(labels, rows)]
        errors: dict[str | int, float] = {label: row["mean_response_s_ci95"] for label, row in zip(labels, rows) if row["mean_response_s_ci95"]}
        return Picture("mean response time (95 % intervals)", "", "s", bars, errors=errors).draw(ax, using)

    def utilisation(self, ax: Any = None, *, using: Library | None = None) -> Any:
        """How each setting's CPU time was spent."""
        labels, bars = self._labels(), []
        below = [0.0] * len(labels)
        for name in COLOURS:
            above = [low + (part or 0.0) for low, part in zip(below, self._table.column(f"cpu_{name}"))]
            bars += [Bar(label, low, high, name) for label, low, high in zip(labels, below, above)]
            below = above
        return Picture("CPU time", "", "part of the CPU time", bars, has_legend=True).draw(ax, using)
