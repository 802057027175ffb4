# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # What if: your own mix of jobs
#
# Some programs share a machine: a tightly coupled solver, a post-processing that reads files, tests that come one after the other. What happens
# if one more comes, if turns were shorter, if there were fewer CPUs? Change the list and look.

# %%
import os

from matplotlib import pyplot

from cosched import model, sim

CPUS = 8
MIX = [
    # Types are what a job does: J4 computes 90 % of its time, J5 communicates 60 %, J2 does I/O for 50 % (Zhang et al. 2000, Table 2).
    {"tasks": 8, "exec_s": 2.0, "type": "J5"},
    {"tasks": 4, "exec_s": 1.5, "type": "J2", "arrival_s": 0.1},
    *({"tasks": 2, "exec_s": 0.3, "type": "J4", "arrival_s": 0.2 * number} for number in range(6)),
]
STRATEGIES = ["GS", "soft-gang", "Local", "SB", "PB-SB", "live"]

# %% [markdown]
# First the mix as it is, and with a second solver. `live` is the scheduler that ships: what `cosched run` would do.

# %%
mixes = {"as it is": MIX, "one solver more": [*MIX, MIX[0] | {"arrival_s": 0.05}]}
seconds = {}
for name, mix in mixes.items():
    jobs = sim.workload(mix, name=name)
    for strategy in STRATEGIES:
        result = sim.simulate(jobs, strategy=strategy, nodes=CPUS, quantum_ms=50)
        seconds[name, strategy] = result.mean_response_s
        print(f"{name:16} {strategy:9} response {result.mean_response_s:6.3f} s, solver ends at {result.column('finish_ns')[0] / 1e9:6.3f} s")

# %% [markdown]
# Then the length of turns, for gangs: shorter ones answer sooner and switch more often.

# %%
turns = sim.sweep(strategies=["GS"], workloads=[sim.workload(MIX, name="mix")], nodes=[CPUS], quantum_ms=[10, 20, 50, 100, 200], seeds=1)
for row in turns:
    print(f"turns of {row['quantum_ms']:3.0f} ms: response {row['mean_response_s']:6.3f} s, switching {row['cpu_switch']:.1%} of the CPU time")

# %%
axes = pyplot.subplots(1, 2, figsize=(12, 4), layout="constrained")[1]
for offset, name in enumerate(mixes):
    places = [place + 0.4 * offset for place in range(len(STRATEGIES))]
    axes[0].bar(places, [seconds[name, strategy] for strategy in STRATEGIES], width=0.4, label=name)
axes[0].set_xticks(range(len(STRATEGIES)), STRATEGIES)
axes[0].set(ylabel="mean response time (s)")
axes[0].legend()
axes[1].plot(turns.column("quantum_ms"), turns.column("mean_response_s"), marker="o")
axes[1].set(xlabel="turn (ms)", ylabel="mean response time (s)", xscale="log")
axes[0].figure.savefig(os.environ.get("FIGURE", "what_if.svg"))

# %% [markdown]
# For equal copies of one program the model answers without a simulation, from two numbers that `cosched advise` or `time` can tell: its time alone,
# and the part of its CPUs that it uses then. (It asks the command `cosched`.)

# %%
prediction = model.predict(t1_s=2.0, cpu_share=0.4, jobs=[2, 3, 4])
for jobs in (2, 3, 4):
    print(f"{jobs} solvers: slowdown {prediction.slowdown(jobs):.2f} where waiting costs nothing, {prediction.slowdown(jobs, 'gang'):.2f} as gangs")
