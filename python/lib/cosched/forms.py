"""The daemon's answers, as types. Made by python/tests/make_forms.py from docs/schema/openapi.json: do not edit.

They are plain dicts. Times that end in `_unix_ms` are milliseconds since 1970 (UTC).
"""

from __future__ import annotations

from typing import Literal, TypedDict

from cosched._typing import NotRequired, TypeAlias

__all__ = [
    "Adopted",
    "Boosting",
    "Chosen",
    "Class",
    "ClassShares",
    "Clock",
    "ClusterStatus",
    "CpuLoad",
    "DecidedMatter",
    "Decision",
    "Distribution",
    "Event",
    "EventKind",
    "ExitStatus",
    "FairShare",
    "Job",
    "JobEvent",
    "JobState",
    "JobUse",
    "JobWaiting",
    "Limit",
    "LimitList",
    "Load",
    "Matrix",
    "NodeLoad",
    "NodeResources",
    "NodeStatus",
    "OutOfMemory",
    "Packing",
    "Period",
    "PlanEvent",
    "Policy",
    "QueueStatus",
    "Row",
    "Safety",
    "Sharing",
    "Status",
    "StreamEvent",
    "Switches",
    "WaitMode",
    "Waiting",
    "Warning",
]

#: Where an adopted job comes from.
Adopted = TypedDict("Adopted", {
    # Its cgroup, outside of the daemon's subtree; absent where its processes were moved.
    "cgroup": 'NotRequired[str | None]',
    # Its unit, container or path, as the user named it.
    "from": 'NotRequired[str | None]',
    # The limits that its owner had set when it was adopted. They stay in force, except a quota that was turned into a share.
    "limits": 'NotRequired[list[str]]',
    # The quota of CPU time that was turned into a share, 0 to 1 of its CPUs' time: it is lifted while the job has no more than that, and put
    # back otherwise, when the job is released, and when no daemon runs.
    "quota": 'NotRequired[float | None]',
    # It was released: its processes continue, and are no longer a job.
    "released": 'NotRequired[bool]',
})

#: What was done for jobs that have a message waiting (policies `pb` and `dcs`).
Boosting = TypedDict("Boosting", {
    # Times that a job was raised.
    "boosts": 'int',
    # CPU time that the looks took.
    "cost_ms": 'int',
    # Jobs under these policies now.
    "jobs": 'int',
    # Checks for processes with a message.
    "looks": 'int',
    # Messages that rang (dcs).
    "rings": 'int',
    # How arrivals are seen: `epoll`, `bpf` (the arrivals for dcs; the rest by epoll), or `off` with the reason in the
    # warnings.
    "sensor": 'str',
    # Sockets of theirs that are watched.
    "sockets": 'int',
    # Why it is not `bpf`, once a job has wanted dcs.
    "without_bpf": 'NotRequired[str | None]',
})

#: What `auto` has chosen for a job.
Chosen = TypedDict("Chosen", {
    # How often the choice has changed.
    "changes": 'int',
    # How its processes wait, where they can be told.
    "mode": 'WaitMode',
    # The policy in force.
    "policy": 'Policy',
    # Since when.
    "since_unix_ms": 'int',
    # Why, for people.
    "why": 'str',
})

#: A job's class, from the most to the least urgent (LLNL, "Gang Scheduler Design").
Class: TypeAlias = 'Literal["express", "interactive", "batch", "standby"]'

#: What the classes are worth: CPU time under contention is in proportion to it. 1 to 1000 each.
ClassShares = TypedDict("ClassShares", {
    # Of batch jobs.
    "batch": 'int',
    # Of express jobs.
    "express": 'int',
    # Of interactive jobs.
    "interactive": 'int',
    # Of standby jobs.
    "standby": 'int',
})

#: What is known of the wall clock.
Clock = TypedDict("Clock", {
    # Its estimated error.
    "error_estimated_us": 'NotRequired[int | None]',
    # The bound of its error.
    "error_us_max": 'NotRequired[int | None]',
    # Why gangs have no slots now, when that is the clock's doing.
    "holds_slots": 'NotRequired[str | None]',
    # By how much the last time, forwards or (below 0) back.
    "last_step_ms": 'NotRequired[int | None]',
    # When that was, by the clock as it was set.
    "last_step_unix_ms": 'NotRequired[int | None]',
    # Whether gangs have slots only while it is synchronised.
    "required": 'bool',
    # How often it was set since the daemon started.
    "steps": 'int',
    # Whether a time daemon keeps it, by the kernel's word; absent where the kernel does not tell.
    "synchronised": 'NotRequired[bool | None]',
})

#: A cluster, as one of its nodes sees it; a machine by itself is a cluster of one.
ClusterStatus = TypedDict("ClusterStatus", {
    # It is one machine: the ceiling is that of all its gangs, and there will be no other node.
    "alone": 'NotRequired[bool]',
    # The most CPU time of a node that gangs that span nodes may have together (on one machine: all gangs), 0 to 1.
    "ceiling": 'float',
    # How usage counts in the order of a queue; absent when it does not.
    "fair_share": 'NotRequired[FairShare | None]',
    # Its name.
    "name": 'str',
    # A node that is silent for this long is dead; absent: only an operator declares it dead.
    "node_dead_after_ms": 'NotRequired[int | None]',
    # What they are worth in off-hours.
    "off_hours": 'NotRequired[ClassShares | None]',
    # Where new gangs that span nodes go.
    "packing": 'NotRequired[Packing | None]',
    # Its newest plan that is known here.
    "plan_generation": 'int',
    # The plan that this node runs; none while it runs no gang slots.
    "plan_in_use": 'NotRequired[int | None]',
    # The queues, the most urgent first.
    "queues": 'list[QueueStatus]',
    # The most rows of the matrix.
    "rows_max": 'NotRequired[int | None]',
    # What the classes are worth in working hours.
    "shares": 'NotRequired[ClassShares | None]',
    # Whether its store answers.
    "store_answers": 'bool',
})

#: How busy one CPU is.
CpuLoad = TypedDict("CpuLoad", {
    # The part of the last second or so in which it was not idle, 0 to 1.
    "busy": 'float',
    # Its number.
    "cpu": 'int',
})

#: What an administrator can decide about another user's job.
DecidedMatter: TypeAlias = 'Literal["suspension", "class", "policy", "share"]'

#: An administrator's decision about another user's job.
Decision = TypedDict("Decision", {
    # What about.
    "matter": 'DecidedMatter',
    # The administrator.
    "uid": 'int',
    # His name, or the number as text.
    "user": 'str',
})

#: A distribution of times, in microseconds.
Distribution = TypedDict("Distribution", {
    # How many.
    "count": 'int',
    # The largest.
    "max_us": 'float',
    # Median.
    "p50_us": 'float',
    # 99th percentile.
    "p99_us": 'float',
})

#: One thing that happened to a job.
Event = TypedDict("Event", {
    # The rest, for people.
    "detail": 'str',
    # When.
    "unix_ms": 'int',
    # A short fixed word: registered, main-exited, suspended, resumed, asleep, awake, dropped, class, policy, signal, ended, lost, found.
    "what": 'str',
})

#: What an event is about.
EventKind: TypeAlias = 'Literal["job", "plan", "problems", "gap"]'

#: How the main process of a job ended; one of the two fields is present.
ExitStatus = TypedDict("ExitStatus", {
    # Its exit code.
    "code": 'NotRequired[int | None]',
    # The number of the signal that ended it.
    "signal": 'NotRequired[int | None]',
})

#: How usage counts in the order of a queue: users with little usage come first.
FairShare = TypedDict("FairShare", {
    # Usage halves in this time.
    "half_life_ms": 'int',
    # How much later a job counts as submitted when its owner has all of the usage.
    "weight_ms": 'int',
})

#: A job as the daemon sees it.
Job = TypedDict("Job", {
    # Where it comes from, if it existed before it was a job.
    "adopted": 'NotRequired[Adopted | None]',
    # It starts no earlier.
    "begin_unix_ms": 'NotRequired[int | None]',
    # How often it was raised because a message waited for it.
    "boosts": 'NotRequired[int | None]',
    # An administrator registered it.
    "by_admin": 'NotRequired[bool]',
    # Its cgroup in the v2 hierarchy, relative to the mount; without cgroups its directory.
    "cgroup": 'str',
    # Adopted cgroups on the daemon's node that are parts of it beside its own (`POST /v1/jobs/{id}/cgroups`).
    "cgroups": 'NotRequired[list[str]]',
    # What `auto` has chosen for it, while that is its policy.
    "chosen": 'NotRequired[Chosen | None]',
    # Its class.
    "class": 'Class',
    # The program and its arguments; empty where they are not the caller's to see (`private_data`). A list has the first 512 bytes,
    # and neither `cwd` nor `log_path`.
    "command": 'list[str]',
    # CPU use over the last seconds, in percent of one CPU.
    "cpu_percent": 'NotRequired[float | None]',
    # CPU time used so far.
    "cpu_time_ms": 'int',
    # CPUs at a time.
    "cpus": 'int',
    # The working directory.
    "cwd": 'NotRequired[str | None]',
    # What administrators have decided about it: its owner cannot change that.
    "decided": 'NotRequired[list[Decision]]',
    # No `cosched run` waits for it.
    "detached": 'bool',
    # The end of its last process.
    "ended_unix_ms": 'NotRequired[int | None]',
    # Why it ends or has ended, unless it ended by itself: the user that killed it, a time limit, a lost node.
    "ended_why": 'NotRequired[str | None]',
    # The other CPUs of its cores stay empty in its slots.
    "exclusive_cores": 'NotRequired[bool]',
    # How the main process ended; absent while it runs, and when its end was not observed.
    "exit": 'NotRequired[ExitStatus | None]',
    # While it waits, and has a reservation: when it starts at the latest, if those before it run no longer than their time limits.
    "expected_start_unix_ms": 'NotRequired[int | None]',
    # Unique for ever in one state directory.
    "id": 'int',
    # Where its output is, when detached.
    "log_path": 'NotRequired[str | None]',
    # Declared memory, on all its nodes together.
    "mem_bytes": 'NotRequired[int | None]',
    # The most memory that its processes may use on a node, in bytes.
    "mem_bytes_max": 'NotRequired[int | None]',
    # Memory in use now.
    "memory_bytes": 'NotRequired[int | None]',
    # The most memory it used.
    "memory_peak_bytes": 'NotRequired[int | None]',
    # For display.
    "name": 'str',
    # What it was given of each of its nodes, when it asked node by node, or is in a cluster.
    "nodes": 'NotRequired[list[NodeResources]]',
    # What the kernel has killed of it for lack of memory.
    "out_of_memory": 'NotRequired[OutOfMemory | None]',
    # CPU time that it used outside of its slots as a gang: on idle CPUs, or astray.
    "outside_ms": 'NotRequired[int | None]',
    # Its own policy, if it does not follow the machine's.
    "own_policy": 'NotRequired[Policy | None]',
    # The first process.
    "pid": 'int',
    # Its place: the CPUs of the daemon's node that its processes may use, as the kernel lists them ("0-3,8"); none when these are all.
    "places": 'NotRequired[str | None]',
    # The policy in force for it.
    "policy": 'Policy',
    # Processes in its cgroup now.
    "processes": 'NotRequired[int | None]',
    # Its queue, in a cluster.
    "queue": 'NotRequired[str | None]',
    # How often it was restarted.
    "restarts": 'NotRequired[int]',
    # Its home row of the matrix, while it has one.
    "row": 'NotRequired[int | None]',
    # The part of the time in which it owns its CPUs, 0 to 1, while it is a gang with slots.
    "share": 'NotRequired[float | None]',
    # The part of the machine's CPU time that the plan gave it over the last 10 s or so, 0 to 1.
    "share_due": 'NotRequired[float | None]',
    # The part of the time that it has at most, 0 to 1, if it has a share.
    "share_max": 'NotRequired[float | None]',
    # The part of the machine's CPU time that it used meanwhile, 0 to 1.
    "share_received": 'NotRequired[float | None]',
    # When it last started: it has CPUs since then. Absent while it waits, and where this node does not know.
    "started_unix_ms": 'NotRequired[int | None]',
    # Where it is in its life.
    "state": 'JobState',
    # A signal has stopped its first process (Ctrl-Z); scheduling did not.
    "stopped": 'NotRequired[bool]',
    # Registration.
    "submitted_unix_ms": 'int',
    # For how long it has been suspended since it started, if it has.
    "suspended_ms": 'NotRequired[int | None]',
    # It runs no longer than this, not counting the time for which it is suspended.
    "time_ms_max": 'NotRequired[int | None]',
    # Its owner.
    "uid": 'int',
    # The resources that it uses, or has used when it has ended.
    "use": 'NotRequired[JobUse | None]',
    # In a cluster, of a job that lives and has other nodes than the daemon's: on which nodes that which is told
    # of its use (CPU time, memory, processes, shares) was measured. None of it is known of the others here, nor of any
    # where the list is empty. Absent where it is the whole job's.
    "use_of_nodes": 'NotRequired[list[str] | None]',
    # Its owner's name, or the number where it has none.
    "user": 'str',
    # How its processes wait, when the wait library was to be loaded into them.
    "waiting": 'NotRequired[JobWaiting | None]',
    # What it waits for, while its state is `waiting`.
    "waits_for": 'NotRequired[str | None]',
})

#: What happened to a job, and what it is now.
JobEvent = TypedDict("JobEvent", {
    # Its class.
    "class": 'Class',
    # CPUs at a time.
    "cpus": 'int',
    # The rest, for people.
    "detail": 'str',
    # The job.
    "id": 'int',
    # Its name.
    "name": 'str',
    # Its own policy; absent: the machine's.
    "own_policy": 'NotRequired[Policy | None]',
    # The part of the time that it has at most, 0 to 1, if it has a share.
    "share_max": 'NotRequired[float | None]',
    # Where it is in its life.
    "state": 'JobState',
    # Its owner.
    "uid": 'int',
    # Its owner's name, or the number where it has none.
    "user": 'str',
    # A short fixed word: registered, waits, began, suspended, resumed, asleep, awake, dropped, unknown, class, policy, share,
    # resources, ended, lost.
    "what": 'str',
})

#: Where a job is in its life.
JobState: TypeAlias = 'Literal["waiting", "running", "asleep", "dropped", "suspended", "unknown", "ended", "lost"]'

#: The resources that a job uses, from its cgroups.
JobUse = TypedDict("JobUse", {
    # CPU time so far, of all its processes, those that have ended or left included.
    "cpu_time_us": 'int',
    # Memory in use now.
    "memory_bytes": 'NotRequired[int | None]',
    # The most memory that it used.
    "memory_peak_bytes": 'NotRequired[int | None]',
    # Processes in its cgroup now.
    "processes": 'NotRequired[int | None]',
})

#: How the processes of a job wait for messages. The counts are since its start, of all its processes.
JobWaiting = TypedDict("JobWaiting", {
    # What was asked for.
    "asked": 'Waiting',
    # Time spent blocked.
    "block_ms": 'int',
    # Times that a process blocked.
    "blocks": 'int',
    # What is in force; never `auto`.
    "mode": 'WaitMode',
    # The file that they share with the daemon, while the job lives.
    "page": 'NotRequired[str | None]',
    # Calls that asked for a message without waiting.
    "polls": 'int',
    # Processes that have the library and use it now.
    "processes": 'int',
    # Time spent spinning.
    "spin_ms": 'int',
    # The spin times in force in µs, the shortest and the longest, while there are processes.
    "spin_us": 'NotRequired[list[int] | None]',
    # Waits that ended while the process still spun.
    "spins": 'int',
    # Its subgangs, which take turns: processes with several busy threads, or programs of several ranks; 0: there are none.
    "subgangs": 'NotRequired[int]',
    # Blocks that ended by their time limit.
    "timeouts": 'int',
    # Rows of such calls.
    "waits": 'int',
    # Times that a process gave way.
    "yields": 'int',
})

#: A limit of one user.
Limit = TypedDict("Limit", {
    # The most; no limit when absent.
    "max": 'NotRequired[int | None]',
    # As in `[limits]` of the configuration; `_bytes` where it is bytes.
    "name": 'str',
    # What he has.
    "used": 'int',
})

#: `GET /v1/limits`: what the caller may have of the daemon that is asked, and has.
LimitList = TypedDict("LimitList", {
    # He is an administrator: nothing is refused to him for these limits.
    "exempt": 'bool',
    # Each limit.
    "limits": 'list[Limit]',
    # The caller.
    "uid": 'int',
    # His name, or the number where he has none.
    "user": 'str',
})

#: How busy the machine is.
Load = TypedDict("Load", {
    # Processes that run or want to, the mean over a minute.
    "average": 'NotRequired[float | None]',
    # The CPUs in use; none until there was time to measure.
    "cpus": 'list[CpuLoad]',
    # Memory that could be had without swapping.
    "memory_available_bytes": 'NotRequired[int | None]',
})

#: The Ousterhout matrix and where the clock stands in it.
Matrix = TypedDict("Matrix", {
    # The columns' names: `cpu0`, `cpu1`, …
    "columns": 'list[str]',
    # The jobs that own CPUs now.
    "current": 'list[int]',
    # The current row, while there is one.
    "current_row": 'NotRequired[int | None]',
    # Slots in a cycle.
    "cycle_slots": 'int',
    # The rows; none while no gang has slots.
    "rows": 'list[Row]',
    # The current slot's number since the Unix epoch.
    "slot": 'int',
    # The same as text, a line a row.
    "text": 'str',
    # The row of each slot of the cycle: slot k since the Unix epoch has entry k modulo their number. So a reader
    # of an old answer knows the row of any moment, while the plan holds.
    "turns": 'NotRequired[list[int]]',
})

#: `GET /v1/load`: how busy a node is.
NodeLoad = TypedDict("NodeLoad", {
    # The CPUs that it gives to jobs.
    "cpus": 'int',
    # The CPUs that these jobs want at a time, together.
    "job_cpus": 'int',
    # Jobs that are neither ended nor suspended.
    "jobs": 'int',
    # Over 15 minutes.
    "load_15min": 'float',
    # The same on average over 1 minute.
    "load_1min": 'float',
    # Over 5 minutes.
    "load_5min": 'float',
    # When that was measured: present for another node than the daemon's. A node reports again, within half a minute, when
    # one of its load averages has changed by half a thread and an eighth, or its memory by a sixteenth.
    "measured_unix_ms": 'NotRequired[int | None]',
    # Memory that new programs could have without swapping.
    "memory_available_bytes": 'int',
    # The node's memory.
    "memory_bytes": 'int',
    # The memory that the jobs declare, together.
    "memory_declared_bytes": 'int',
    # The node's name.
    "name": 'str',
    # Threads that run or wait for a CPU now, those of jobs that are not registered included.
    "runnable": 'int',
})

#: What a job wants of one node (LLNL, "Gang Scheduler Design": desired processor count, minimum processor count,
#: desired real memory space, and desired disk space), or what it was given there.
NodeResources = TypedDict("NodeResources", {
    # CPUs at a time: wanted, or given. All of the node's when absent.
    "cpus": 'NotRequired[int | None]',
    # The job also takes fewer CPUs, but not fewer than this; as many as it wants when absent.
    "cpus_min": 'NotRequired[int | None]',
    # The disk space that it says it needs there.
    "disk_bytes": 'NotRequired[int | None]',
    # The memory that it says it needs there.
    "memory_bytes": 'NotRequired[int | None]',
    # The node's name; empty for the node of the daemon that is asked.
    "name": 'NotRequired[str]',
})

#: A node of a cluster, as its members see it.
NodeStatus = TypedDict("NodeStatus", {
    # Whether its lease holds.
    "alive": 'bool',
    # Its clock.
    "clock": 'NotRequired[Clock | None]',
    # Its CPUs; 0 of one that is gone.
    "cpus": 'int',
    # Whether it gets no new jobs.
    "drains": 'NotRequired[bool]',
    # When it left, if it is gone; nodes are shown so for a week.
    "gone_since_unix_ms": 'NotRequired[int | None]',
    # Processes that run or want to, the mean over a minute.
    "load": 'NotRequired[float | None]',
    # Its memory for jobs.
    "memory_bytes": 'NotRequired[int | None]',
    # Its name.
    "name": 'str',
    # The plan that it follows; known of the node that is asked.
    "plan_generation": 'NotRequired[int | None]',
    # Since when it has been silent. Its jobs count as running there.
    "silent_since_unix_ms": 'NotRequired[int | None]',
    # The version of its daemon.
    "version": 'NotRequired[str | None]',
})

#: What the kernel has killed of a job because there was no memory for it.
OutOfMemory = TypedDict("OutOfMemory", {
    # The number of processes, on all its nodes.
    "killed": 'int',
    # The memory limit of its cgroup, or of one above it; absent when the machine itself had no more, or a cgroup that the job
    # made.
    "limit_bytes": 'NotRequired[int | None]',
})

#: Where a gang that spans nodes goes.
Packing: TypeAlias = 'Literal["first-fit", "best-fit", "buddy"]'

#: The time of the day, as far as the shares of the classes depend on it.
Period: TypeAlias = 'Literal["working", "off"]'

#: A plan: with the clock all that is needed to know the row of any moment, until the next one.
PlanEvent = TypedDict("PlanEvent", {
    # The matrix is too long for the stream; `GET /v1/status` has it.
    "cut": 'NotRequired[bool]',
    # The beginning of slot 0, in ns since the Unix epoch.
    "epoch_unix_ns": 'int',
    # The first slot in which it holds.
    "from_slot": 'int',
    # Its generation.
    "generation": 'int',
    # The matrix. `turns` has the row of each slot of the cycle.
    "matrix": 'Matrix',
    # The machine's policy.
    "policy": 'Policy',
    # What gangs that are not current may do.
    "sharing": 'Sharing',
    # The length of a slot.
    "slot_length_ns": 'int',
})

#: How a job (or, by default, every job) is scheduled.
Policy: TypeAlias = 'Literal["gang", "local", "pb", "dcs", "auto"]'

#: A queue of a cluster. A limit that is absent is none.
QueueStatus = TypedDict("QueueStatus", {
    # The most disk space on one node that a job may ask for.
    "disk_bytes_max": 'NotRequired[int | None]',
    # Whether its jobs have their nodes for themselves.
    "exclusive": 'bool',
    # The groups whose members may use it, by name or number.
    "groups": 'NotRequired[list[str]]',
    # The most jobs that one user has started in it.
    "jobs_max_per_user": 'NotRequired[int | None]',
    # The most memory that a job may ask for, on all its nodes together.
    "memory_bytes_max": 'NotRequired[int | None]',
    # The most memory of the jobs that one user has started in it, on all nodes together.
    "memory_bytes_max_per_user": 'NotRequired[int | None]',
    # Its name.
    "name": 'str',
    # Its jobs that have started.
    "running": 'NotRequired[int]',
    # The longest time from when a job is made ready until it has ended.
    "time_ms_max": 'NotRequired[int | None]',
    # The users who may use it, by name or number; with neither users nor groups every user may.
    "users": 'NotRequired[list[str]]',
    # Its jobs that wait.
    "waiting": 'int',
})

#: One row of the Ousterhout matrix.
Row = TypedDict("Row", {
    # Jobs that also run in this row: alternates, and single CPU jobs that fill it (some of its slots).
    "also": 'list[int]',
    # One entry per column: the job that owns the CPU, if any.
    "cells": 'list[int | None]',
    # Its number, from 0.
    "index": 'int',
    # Slots of this row in a cycle.
    "slots": 'int',
})

#: What keeps jobs from staying stopped when the daemon dies.
Safety = TypedDict("Safety", {
    # The guard's process, while it lives.
    "guard_pid": 'NotRequired[int | None]',
    # Whether the kernel itself thaws the jobs when daemon and guard are both gone.
    "kernel_agent": 'bool',
    # The longest that a frozen job stays frozen after the daemon stops beating.
    "lease_ms": 'int',
})

#: What the gangs that are not current may do in a slot.
Sharing: TypeAlias = 'Literal["strict", "paired", "soft"]'

#: `GET /v1/status`.
Status = TypedDict("Status", {
    # What was done for jobs under pb and dcs.
    "boosting": 'NotRequired[Boosting]',
    # The wall clock.
    "clock": 'NotRequired[Clock | None]',
    # The cluster, for a node of one.
    "cluster": 'NotRequired[ClusterStatus | None]',
    # The CPUs in use, by number.
    "cpus": 'list[int]',
    # Whether it was started on demand and ends when it is not needed.
    "embedded": 'bool',
    # The plan's generation.
    "generation": 'int',
    # Jobs by state, the ended ones that are still remembered included.
    "jobs": 'dict[str, int]',
    # Where there are no cgroups: the program that stops and continues a job by signals (see `keeper` of a new job).
    "keeper": 'NotRequired[str | None]',
    # The cgroup layout that was found.
    "layout": 'str',
    # How busy the machine is.
    "load": 'NotRequired[Load | None]',
    # The matrix.
    "matrix": 'Matrix',
    # The mechanism of a switch that was chosen.
    "mechanism": 'str',
    # Every mechanism and why it was or was not chosen.
    "mechanisms": 'dict[str, str]',
    # The machine's memory.
    "memory_bytes": 'int',
    # The node's name.
    "node": 'str',
    # The nodes of the cluster; absent on a machine of its own.
    "nodes": 'NotRequired[list[NodeStatus] | None]',
    # Whose shares of the classes hold; absent where they always are the same.
    "period": 'NotRequired[Period | None]',
    # Its process.
    "pid": 'int',
    # The machine's policy.
    "policy": 'Policy',
    # The real-time priority of the slot thread; absent where it could not be had.
    "realtime_priority": 'NotRequired[int | None]',
    # The part of the CPU time that is kept for processes that are not registered now, 0 to 1.
    "reserve": 'float',
    # Whether that is what plain Linux would give them (`reserve = "fair"`); absent from older daemons.
    "reserve_fair": 'NotRequired[bool | None]',
    # The guard.
    "safety": 'Safety',
    # Soft or strict gangs.
    "sharing": 'Sharing',
    # The length of a slot.
    "slot_length_ms": 'int',
    # Its socket.
    "socket": 'str',
    # Since when.
    "started_unix_ms": 'int',
    # How often a daemon was started on this state, this one included.
    "starts": 'NotRequired[int | None]',
    # The switches since the daemon started.
    "switches": 'Switches',
    # Its user.
    "uid": 'int',
    # The daemon's version.
    "version": 'str',
    # What is wrong.
    "warnings": 'list[Warning]',
})

#: One event of `GET /v1/events`, the JSON behind `data:`. Its kind stands behind `event:`, its id behind `id:`.
StreamEvent = TypedDict("StreamEvent", {
    # Why events are missing.
    "gap": 'NotRequired[str | None]',
    # What to resume after, in `Last-Event-ID` or `?after=`. Not in the JSON of the stream.
    "id": 'NotRequired[str]',
    # What happened to a job.
    "job": 'NotRequired[JobEvent | None]',
    # What it is about. One of the next fields is present.
    "kind": 'EventKind',
    # The plan that holds from now on.
    "plan": 'NotRequired[PlanEvent | None]',
    # What is wrong now.
    "problems": 'NotRequired[list[Warning] | None]',
    # When it was noticed: changes within 100 ms are told together.
    "unix_ms": 'int',
})

#: What the slot thread did.
Switches = TypedDict("Switches", {
    # Boundaries at which the row changed.
    "count": 'int',
    # From the boundary until the last write of the switch was done.
    "done": 'Distribution',
    # Writes that failed.
    "errors": 'int',
    # Boundaries that came more than a tenth of a slot late.
    "late": 'int',
    # From the boundary until the slot thread ran.
    "wake": 'Distribution',
})

#: How the processes of a job wait for messages; see docs/waiting.md.
WaitMode: TypeAlias = 'Literal["auto", "busy", "spin-block", "spin-yield", "micro"]'

#: How the processes of a job wait, as it was asked for.
Waiting = TypedDict("Waiting", {
    # How.
    "mode": 'WaitMode',
    # The spin time in µs; absent: each process finds its own.
    "spin_us": 'NotRequired[int | None]',
})

#: Something that is wrong or less good than it could be.
Warning = TypedDict("Warning", {
    # What to do.
    "hint": 'str',
    # What.
    "what": 'str',
    # Why.
    "why": 'str',
})
