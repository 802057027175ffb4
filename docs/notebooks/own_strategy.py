# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # A strategy of your own
#
# A strategy is a class with up to three hooks: which job starts where when jobs wait, which row is next, how a process waits for a message. What it
# does not decide is decided as by its `base`. It runs in the engine that has all the details, so it is slow but right:
# GS and SB written this way give the same numbers to the nanosecond, and a test checks it.

# %%
import os

from matplotlib import pyplot

from cosched import sim

NODES, COUNT = 8, int(os.environ.get("JOBS", 40))
jobs = sim.workload("WL7", count=COUNT, nodes=NODES, mean_exec_s=float(os.environ.get("MEAN_S", 0.5)), load=0.9, seed=3)

# %% [markdown]
# ## Short jobs first, and rows by what is left to do
#
# Gang scheduling, but short jobs leave the queue first, and the row with the shortest job has two turns where others have one.


# %%
class ShortFirst(sim.Policy):
    base = "GS"

    def __init__(self):
        self.turn = 0

    def on_arrival(self, moment):
        for job in sorted(moment.waiting, key=lambda job: moment.jobs[job]["exec_ns"]):
            tasks = moment.jobs[job]["tasks"]
            for number, row in enumerate(moment.rows):
                free = [cpu for cpu, other in enumerate(row) if other is None]
                if len(free) >= tasks:
                    return sim.Start(job, free[:tasks], number)
        return None

    def on_row_change(self, moment):
        used = [number for number, row in enumerate(moment.rows) if any(job is not None for job in row)]
        shortest = min(used, key=lambda number: min(moment.jobs[job]["exec_ns"] for job in moment.rows[number] if job is not None))
        self.turn += 1
        after = [number for number in used if number > moment.row] or used
        return shortest if self.turn % 2 else after[0]


# %% [markdown]
# ## Spin as long as no other process is ready on the node
#
# Spin block gives the CPU away after 200 µs even if no other process wants it, and pays for the wake-up. This one asks first.


# %%
class SpinIfAlone(sim.Policy):
    base = "Local"

    def on_wait(self, waiting):
        return sim.Wait("block", after_us=200) if waiting.ready else sim.Wait("block", after_us=2000)


# %%
results = [sim.simulate(jobs, strategy=strategy, nodes=NODES) for strategy in ("GS", ShortFirst(), "Local", "SB", SpinIfAlone())]
for result in results:
    print(f"{result.strategy:12} response {result.mean_response_s:6.3f} s, waiting for CPUs {result.mean_wait_s:6.3f} s, spinning {result.cpu['spin']:.1%}")

# %%
ax = pyplot.subplots(layout="constrained")[1]
for result in results:
    result.plot.response(ax)
ax.set_title("response times")
ax.legend()
ax.figure.savefig(os.environ.get("FIGURE", "own_strategy.svg"))
