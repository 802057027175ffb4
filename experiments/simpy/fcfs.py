"""First come, first served, as a user of pybatsim writes it (`pybatsim fcfs.py`)."""

from batsim.sched.algorithms.filling import filler_sched


def Fcfs(scheduler):  # pybatsim looks for the file's name in this form.
    return filler_sched(scheduler, abort_on_first_nonfitting=True)
