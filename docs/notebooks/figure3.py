# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Figure 3 of Zhang et al. 2000
#
# Mean response time over load for gang scheduling (GS), no coscheduling (Local), spin block (SB), periodic boost (PB) and both (PB-SB).
# In the paper GS saturates at a load of 0.57, and SB, PB and PB-SB at 0.77; Local stays below 0.5. `experiments/zhang-2000` has the
# whole study. This file is a notebook in jupytext's percent format: open it in Jupyter or VS Code, or run it as a program.

# %%
import os

from matplotlib import pyplot

from cosched import sim

# A test runs this with less; 400 jobs and 5 seeds are the paper's figure.
SIZE = {"count": int(os.environ.get("JOBS", 100)), "seeds": int(os.environ.get("SEEDS", 2)), "mean_exec_s": float(os.environ.get("MEAN_S", 2))}
STRATEGIES = ["GS", "Local", "SB", "PB", "PB-SB"]
LOADS = [0.3, 0.5, 0.7, 0.9]

table = sim.sweep(strategies=STRATEGIES, workloads=["WL7"], load=LOADS, grain=[4], **SIZE)

# %%
ax = pyplot.subplots()[1]
for strategy in STRATEGIES:
    rows = [row for row in table if row["strategy"] == strategy]
    ax.errorbar([row["load"] for row in rows], [row["mean_response_s"] for row in rows],
                [row["mean_response_s_ci95"] or 0 for row in rows], label=strategy, capsize=3)
ax.set(xlabel="load", ylabel="mean response time (s)", yscale="log")
ax.legend()
ax.figure.savefig(os.environ.get("FIGURE", "figure3.svg"))

# %% [markdown]
# All numbers are in the table; `table.to_pandas()` or `polars.DataFrame(table)` take it as it is.

# %%
for row in table:
    print(f"{row['strategy']:6} load {row['load']}: response {row['mean_response_s']:7.2f} s, useful work {row['util_useful']:.2f}")
