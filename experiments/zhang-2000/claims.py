"""Values of the simulated exhibits, and the paper's statements checked against them.

A value has a mean over seeds and a bound: `exact`, `lower` (jobs did not end, the true value is greater) or `unknown`."""

import dataclasses

import plan
import stats

# Figure 3: a load is too high when the mean response of the last quarter of the jobs passes this many mean execution times.
SATURATION_STRETCH = 5.0


class Missing(Exception):
    """No seed has this value."""


@dataclasses.dataclass
class Value:
    by_seed: dict
    bound: str = "exact"

    @property
    def mean(self):
        return stats.mean(list(self.by_seed.values()))

    @property
    def half_width(self):
        return stats.half_width(list(self.by_seed.values()))


class Simulated:
    """Looks values up for one reading and load, over some seeds."""

    def __init__(self, runner, size, reading, load, seeds):
        self.runner, self.size, self.reading, self.load, self.seeds = runner, size, reading, load, seeds

    def result(self, strategy, seed, at):
        names = {name: at[name] for name in ("mpl", "skew", "costs", "mean_exec_s", "jobs") if name in at}
        load = at.get("load", self.load)
        return self.runner.result(plan.cell(self.size, strategy, at["workload"], load, seed, self.reading, **names))

    def value(self, metric, strategy, at):
        """The metric of a strategy, e.g. at {"workload": "WL4", "mpl": 2}."""
        if metric == "limit":
            return self.limit(strategy)
        results = {seed: self.result(strategy, seed, at) for seed in self.seeds}
        results = {seed: result for seed, result in results.items() if result}
        if not results:
            raise Missing(f"{metric} of {strategy} at {at}")
        unfinished = any(result["unfinished"] for result in results.values())
        bound = "exact" if not unfinished or metric.endswith("_share") else "lower"
        return Value({seed: result[metric] for seed, result in results.items()}, bound)

    def curve(self, strategy, seed):
        """Figure 3: (useful utilisation offered, stretch of late jobs, response, unfinished) by rising load."""
        results = [self.result(strategy, seed, {"workload": "WL7", "load": load, "jobs": self.size["figure3_jobs"]}) for load in self.size["figure3"]]
        return [(result["offered"], result["late_stretch"], result["response"], result["unfinished"]) for result in results if result]

    def limit(self, strategy):
        """Figure 3: the useful utilisation at which late jobs' response passes SATURATION_STRETCH mean execution times."""
        by_seed, bound = {}, "exact"
        for seed in self.seeds:
            points = [point[:2] for point in self.curve(strategy, seed)]
            if not points:
                continue
            by_seed[seed] = stats.crossing(points, SATURATION_STRETCH)
            if by_seed[seed] is None:
                by_seed[seed], bound = points[-1][0], "lower"
        if not by_seed:
            raise Missing(f"Figure 3 of {strategy}")
        return Value(by_seed, bound)

    def capacity(self, strategy):
        """Useful utilisation while all jobs are queued from the start."""
        results = {seed: self.result(strategy, seed, {"workload": "WL7", "load": None}) for seed in self.seeds}
        results = {seed: result for seed, result in results.items() if result}
        if not results:
            raise Missing(f"capacity of {strategy}")
        emptied = any(result["unstarted"] == 0 for result in results.values())
        return Value({seed: result["useful"] for seed, result in results.items()}, "lower" if emptied else "exact")

    def change(self, metric, strategy, before, after, how="relative"):
        """after / before - 1 (or after - before), seed by seed."""
        left, right = self.value(metric, strategy, before), self.value(metric, strategy, after)
        seeds = [seed for seed in left.by_seed if seed in right.by_seed]
        if not seeds:
            raise Missing(f"change of {metric} of {strategy}")
        by_seed = {}
        for seed in seeds:
            a, b = left.by_seed[seed], right.by_seed[seed]
            by_seed[seed] = b - a if how == "difference" else b / a - 1.0
        bound = "unknown" if left.bound != "exact" else right.bound
        return Value(by_seed, bound)


def is_greater(left, right, factor=1.0):
    """Whether left > right * factor; None where a bound leaves it open."""
    if left.bound == "unknown" or right.bound == "unknown":
        return None
    greater = left.mean > right.mean * factor
    if right.bound == "lower":
        return False if not greater and left.bound == "exact" else None
    return True if greater else (None if left.bound == "lower" else False)


@dataclasses.dataclass
class Atom:
    """One comparison of a statement."""

    text: str
    holds: object
    values: list


def check(statement, simulated):
    """The atoms of a statement: each a comparison that holds, does not, or (None) is open."""
    atoms = []
    for place in statement.get("each", [{}]):
        for place_b in statement.get("each_b", [{}]):
            atoms.extend(KINDS[statement["kind"]](statement, Lookup(statement, simulated, place, place_b)))
    return atoms


class Lookup:
    """Values of the strategies in a statement, at its place."""

    def __init__(self, statement, simulated, place, place_b):
        self.statement, self.simulated = statement, simulated
        common = {**statement.get("at", {}), **place}
        self.at = {"": common, "a": {**common, **statement.get("a_at", {})}, "b": {**common, **statement.get("b_at", {}), **place_b}}

    def value(self, strategy, side="", metric=None):
        metric, at = metric or self.statement["metric"], self.at[side]
        if "from" not in self.statement:
            return self.simulated.value(metric, strategy, at)
        before, after = {**at, **self.statement["from"]}, {**at, **self.statement["to"]}
        return self.simulated.change(metric, strategy, before, after, self.statement.get("how", "relative"))

    def name(self, strategy, side=""):
        return " ".join([strategy, *(str(part) for part in self.at[side].values())])


def _greater(statement, lookup):
    a, b = statement["a"], statement["b"]
    pairs = zip(a, b) if statement.get("pairs") else [(left, right) for left in a for right in b]
    factor = 1.0 + statement.get("by", 0.0)
    for left, right in pairs:
        values = lookup.value(left, "a"), lookup.value(right, "b")
        yield Atom(f"{lookup.name(left, 'a')} > {lookup.name(right, 'b')}", is_greater(*values, factor), list(values))


def _below(statement, lookup):
    limit = Value({0: statement["limit"]})
    for strategy in statement["set"]:
        value = lookup.value(strategy)
        yield Atom(f"{lookup.name(strategy)} < {statement['limit']:g}", is_greater(limit, value), [value])


def _above(statement, lookup):
    limit = Value({0: statement["limit"]})
    for strategy in statement["set"]:
        value = lookup.value(strategy)
        yield Atom(f"{lookup.name(strategy)} > {statement['limit']:g}", is_greater(value, limit), [value])


def _spread(statement, lookup, side):
    values = sorted((lookup.value(strategy, side) for strategy in statement["set"]), key=lambda value: value.mean)
    bound = "unknown" if values[0].bound != "exact" else "exact" if all(value.bound == "exact" for value in values) else "lower"
    return Value({0: values[-1].mean / values[0].mean}, bound)


def _similar(statement, lookup):
    values = {strategy: lookup.value(strategy) for strategy in statement["set"]}
    least = min(values, key=lambda strategy: values[strategy].mean)
    for strategy, value in values.items():
        if strategy != least:
            apart = is_greater(value, values[least], 1.0 + statement["within"])
            text = f"{lookup.name(strategy)} at most {1.0 + statement['within']:g} x {least}"
            yield Atom(text, None if apart is None else not apart, [value, values[least]])


def _spread_greater(statement, lookup):
    a, b = _spread(statement, lookup, "a"), _spread(statement, lookup, "b")
    yield Atom(f"spread {a.mean:.2f} > {b.mean:.2f}", is_greater(a, b), [a, b])


def _mainly_wait(statement, lookup):
    for left in statement["a"]:
        for right in statement["b"]:
            values = {metric: (lookup.value(left, "a", metric), lookup.value(right, "b", metric)) for metric in ("response", "wait")}
            longer = {metric: pair[0].mean - pair[1].mean for metric, pair in values.items()}
            exact = all(value.bound == "exact" for pair in values.values() for value in pair)
            holds = longer["response"] > 0 and longer["wait"] >= 0.5 * longer["response"] if exact else None
            text = f"wait is {longer['wait']:.2f} s of {longer['response']:.2f} s between {lookup.name(left)} and {right}"
            yield Atom(text, holds, list(values["wait"]))


KINDS = {
    "greater": _greater, "below": _below, "above": _above, "similar": _similar,
    "spread_greater": _spread_greater, "mainly_wait": _mainly_wait,
}


def verdict(atoms):
    """(holding, decided, all) comparisons of a statement."""
    decided = [atom for atom in atoms if atom.holds is not None]
    return sum(atom.holds for atom in decided), len(decided), len(atoms)


def in_a_word(holding, decided, _):
    """Of a verdict."""
    return "open" if decided == 0 else "holds" if holding == decided else "does not hold" if holding == 0 else "partly"
