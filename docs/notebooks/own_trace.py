# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # A trace of your own
#
# Which strategy would have been best for the jobs that a cluster really had? This notebook reads a trace in the Standard Workload Format (SWF), as
# the [Parallel Workloads Archive](https://www.cs.huji.ac.il/labs/parallel/workload/) has them, or as Slurm's `sacct` can be turned into. Name
# yours in the variable TRACE; without it an example is written here.

# %%
import os
import random
import tempfile

from matplotlib import pyplot

from cosched import sim

NODES = int(os.environ.get("NODES", 16))


def example(path):
    """An example: 60 jobs of powers of two, most of them short. Fields of SWF that do not matter here are -1."""
    draw, at_s = random.Random(1), 0.0
    with open(path, "w") as file:
        for number in range(1, 61):
            at_s += draw.expovariate(1 / 2)
            run_s, size = max(1, round(draw.lognormvariate(0.7, 0.9))), 2 ** draw.randint(0, 4)
            file.write(f"{number} {at_s:.0f} 0 {run_s} {size} -1 -1 {size} {run_s} -1 1 1 1 1 1 1 -1 -1\n")
    return path


with tempfile.TemporaryDirectory() as folder:
    jobs = sim.workload(os.environ.get("TRACE") or example(os.path.join(folder, "example.swf")), nodes=NODES)
print(f"{len(jobs)} jobs of {jobs.name}; left out: {jobs.left_out or 'none'}")

# %% [markdown]
# A trace says how long a job ran, and not what it did meanwhile. So the simulator draws what each job is made of (its type: how much of the time
# is computation, I/O and communication); several seeds show how much that matters. FCFS and EASY do not share CPUs: they are what a batch
# system does. Jobs of hours have billions of messages: for those take some days of the trace, a larger `grain`, and `sampled=True`, which skips
# what repeats itself.

# %%
STRATEGIES = ["FCFS", "EASY", "GS", "Local", "SB", "PB-SB"]
table = sim.compare(STRATEGIES, jobs, nodes=NODES, seeds=int(os.environ.get("SEEDS", 3)), grain=[20])
for row in table:
    print(f"{row['strategy']:6} response {row['mean_response_s']:7.2f} s ± {row['mean_response_s_ci95'] or 0:.2f}, slowdown {row['mean_slowdown']:5.2f}")

# %% [markdown]
# And one run in detail: a bar for each job, grey while it waits for CPUs.

# %%
result = sim.simulate(jobs, strategy="GS", nodes=NODES, grain=20)
axes = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")[1]
result.plot.gantt(axes[0])
table.plot.response(axes[1])
axes[0].figure.savefig(os.environ.get("FIGURE", "own_trace.svg"))
