"""All numbers of the reproduction as one dictionary: what results.json holds and the report and figures are made of."""

import claims
import plan
import stats

MISSING = None


def number(value):
    """A claims.Value for JSON."""
    return {"mean": value.mean, "half_width_95": value.half_width, "bound": value.bound, "seeds": len(value.by_seed)}


def attempt(function, *arguments):
    try:
        return number(function(*arguments))
    except claims.Missing:
        return MISSING


def complete_seeds(runner, size):
    """The seeds whose chains are all done."""
    whole = []
    for seed in range(1, size["seeds"] + 1):
        own = [chain for chain in plan.chains(size) if chain[0]["seed"] == seed]
        if all(runner.settled(chain) for chain in own):
            whole.append(seed)
    return whole


def collect(runner, size, published):
    """Everything, for the seeds that are complete."""
    seeds = complete_seeds(runner, size)
    results = {"seeds": seeds, "size": size, "figure3": {}, "exhibits": {}, "lengths": lengths(runner, size, seeds)}
    results["sweep"] = sweep(runner, size, seeds) if seeds else {}
    if not seeds:
        return results
    for reading in size["readings"]:
        results["figure3"][str(reading)] = figure3(claims.Simulated(runner, size, reading, None, seeds), published["figure3"])
        for load in size["loads"]:
            results["exhibits"][f"{reading}/{load}"] = exhibits(runner, size, published, reading, load, seeds)
    results["best_load"] = {str(reading): best_load(results, size, reading) for reading in size["readings"]}
    return results


def figure3(simulated, published):
    """Limits, capacities and curves."""
    rows = {}
    for strategy in plan.STRATEGIES:
        curves = [simulated.curve(strategy, seed) for seed in simulated.seeds]
        points = []
        for step, load in enumerate(simulated.size["figure3"]):
            there = [curve[step] for curve in curves if step < len(curve)]
            # A point needs all seeds, else its mean would change with who gave up.
            if len(there) == len(curves):
                means = [stats.mean([point[part] for point in there]) for part in range(3)]
                half_width = stats.half_width([point[2] for point in there])
                unfinished = any(point[3] for point in there)
                points.append({
                    "load": load, "offered": means[0], "late_stretch": means[1], "response": means[2], "half_width_95": half_width,
                    "bound": "lower" if unfinished else "exact",
                })
        rows[strategy] = {
            "published": published["limits"].get(strategy),
            "published_below": published["below"]["limit"] if strategy in published["below"]["strategies"] else None,
            "limit": attempt(simulated.limit, strategy), "capacity": attempt(simulated.capacity, strategy), "curve": points,
        }
    return {"strategies": rows, "kendall_tau": {metric: order_agreement(rows, metric, published["order"]) for metric in ("limit", "capacity")}}


def order_agreement(rows, metric, order):
    """Kendall's tau of the published order and a metric, over the strategies that have it."""
    pairs = [(order[strategy], row[metric]["mean"]) for strategy, row in rows.items() if exact(row[metric])]
    return {"tau": stats.kendall_tau(*zip(*pairs)) if len(pairs) > 1 else None, "compared": len(pairs)}


def exhibits(runner, size, published, reading, load, seeds):
    simulated = claims.Simulated(runner, size, reading, load, seeds)
    each_seed = [claims.Simulated(runner, size, reading, load, [seed]) for seed in seeds]
    return {
        "figure4": {
            workload: {strategy: bar(simulated, strategy, {"workload": workload}) for strategy in plan.STRATEGIES}
            for workload in plan.WORKLOADS
        },
        "figure5": {
            strategy: {str(skew): bar(simulated, strategy, {"workload": "WL4", "skew": skew}) for skew in (0.2, 1.5)}
            for strategy in plan.STRATEGIES
        },
        "table4": table(published["table4"], lambda strategy, column: simulated.change(
            "response", strategy, {"workload": column["workload"], "mpl": 2}, column)),
        "table5": table(published["table5"], lambda strategy, column: ratio(simulated, strategy, column)),
        "statements": [judge(statement, simulated, each_seed) for statement in published["statement"]],
    }


def bar(simulated, strategy, at):
    metrics = ("response", "wait", "execution", "compute_share", "spin_share", "switch_share", "interrupt_share", "idle_share")
    return {metric: attempt(simulated.value, metric, strategy, at) for metric in metrics}


def ratio(simulated, strategy, costs):
    """Response over that at base costs."""
    at = {"workload": "WL5"}
    change = simulated.change("response", strategy, {**at, "costs": "base"}, {**at, "costs": costs})
    return claims.Value({seed: value + 1.0 for seed, value in change.by_seed.items()}, change.bound)


def table(published, simulate):
    """Published and simulated entries; direction, error and rank agreement of each column over its entries that are exact."""
    columns, origin = [], 1.0 if "base" in published["columns"] else 0.0
    for index, column in enumerate(published["columns"]):
        if column == "base":
            continue  # 1 by definition
        entries = {}
        for strategy, row in published["rows"].items():
            entries[strategy] = {"published": None if row[index] == "none" else row[index], "simulated": attempt(simulate, strategy, column)}
        both = [
            (entry["published"], entry["simulated"]["mean"]) for entry in entries.values()
            if entry["published"] is not None and entry["simulated"] and entry["simulated"]["bound"] == "exact"
        ]
        columns.append({
            "column": column, "entries": entries, "compared": len(both),
            "kendall_tau": stats.kendall_tau(*zip(*both)) if len(both) > 1 else None,
            "same_sign": sum((a < origin) == (b < origin) for a, b in both),
            "mean_error": stats.mean([abs(a - b) for a, b in both if abs(a) <= 1]) if any(abs(a) <= 1 for a, _ in both) else None,
            "errors": sum(abs(a) <= 1 for a, _ in both),
        })
    return columns


def judge(statement, simulated, each_seed):
    try:
        atoms = claims.check(statement, simulated)
    except claims.Missing:
        return {"id": statement["id"], "holding": 0, "decided": 0, "all": 0, "seeds_holding": 0, "verdict": "open", "failing": []}
    counts = claims.verdict(atoms)
    seeds_holding = 0
    for one in each_seed:
        holding, decided, _ = claims.verdict(claims.check(statement, one))
        seeds_holding += decided > 0 and holding == decided
    return {
        "id": statement["id"], "holding": counts[0], "decided": counts[1], "all": counts[2], "seeds_holding": seeds_holding,
        "verdict": claims.in_a_word(*counts), "failing": [describe(atom) for atom in atoms if atom.holds is False],
    }


def describe(atom):
    return f"{atom.text} ({' : '.join(f'{value.mean:.3g}' for value in atom.values)})"


def table_error(columns):
    """The mean absolute difference of entries of at most 1 in size."""
    weights = [(column["mean_error"], column["errors"]) for column in columns if column["mean_error"] is not None]
    count = sum(errors for _, errors in weights)
    return sum(error * errors for error, errors in weights) / count if count else None


def best_load(results, size, reading):
    """The load, which the paper does not tell, under which Table 4 comes out closest."""
    errors = {load: table_error(results["exhibits"][f"{reading}/{load}"]["table4"]) for load in size["loads"]}
    known = {load: error for load, error in errors.items() if error is not None}
    return min(known, key=known.get) if known else size["loads"][0]


def lengths(runner, size, seeds):
    """Stretch by mean execution time under the first reading, and how well the rankings agree with that of the first."""
    load = size["loads"][0]
    seeds = [seed for seed in seeds if seed <= 3]
    simulated = claims.Simulated(runner, size, size["readings"][0], load, seeds)
    found = {}
    for workload in ("WL4", "WL5") if size["lengths"] and seeds else ():
        rows = {
            strategy: {str(length): attempt(simulated.value, "stretch", strategy, {"workload": workload, "mean_exec_s": length}) for length in size["lengths"]}
            for strategy in plan.STRATEGIES
        }
        first = str(size["lengths"][0])
        agreement = {}
        for length in map(str, size["lengths"][1:]):
            pairs = [(row[first]["mean"], row[length]["mean"]) for row in rows.values() if exact(row[first]) and exact(row[length])]
            agreement[length] = {
                "kendall_tau": stats.kendall_tau(*zip(*pairs)) if len(pairs) > 1 else None, "compared": len(pairs),
                "largest_change": max((abs(b / a - 1.0) for a, b in pairs), default=None),
                "swapped_over_15_percent": swapped(pairs),
            }
        found[workload] = {"load": load, "stretch": rows, "against_first": agreement}
    return found


def sweep(runner, size, seeds):
    """Capacity (WL7) and response for WL5 by reading, for some strategies."""
    found = {}
    for reading in size["sweep"]:
        simulated = claims.Simulated(runner, size, reading, size["loads"][-1], seeds)
        found[str(reading)] = {
            strategy: {
                "capacity": attempt(simulated.capacity, strategy),
                "response": attempt(simulated.value, "response", strategy, {"workload": "WL5"}),
            }
            for strategy in plan.SWEPT
        }
    return found


def exact(entry):
    return entry is not None and entry["bound"] == "exact"


def swapped(pairs):
    """Pairs of strategies that are more than 15 % apart for the one length and in the other order for the other."""
    count = 0
    for i, (a, b) in enumerate(pairs):
        for c, d in pairs[:i]:
            count += (a - c) * (b - d) < 0 and max(a, c) > 1.15 * min(a, c)
    return count
