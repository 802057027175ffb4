"""Computes the switches between gangs from the intervals that `occupancy` wrote.

Slot k is [k L, (k+1) L) of wall-clock time since the Unix epoch. The job that should run in a slot is the one with the
most run time in it, so nothing here relies on the daemon.
"""

import bisect
import struct

from figures import median, quantile


def read(path):
    """[(begin_ns, end_ns)] in order of time."""
    raw = path.read_bytes()
    return list(struct.iter_unpack("<QQ", raw[: len(raw) // 16 * 16]))


class Process:
    """One process's intervals; `cpu` is where it was pinned."""

    def __init__(self, cpu, intervals):
        self.cpu, self.intervals = cpu, intervals
        self.begins = [begin for begin, _ in intervals]

    def run_time_ns(self, begin_ns, end_ns):
        """CPU time within a span."""
        total, i = 0, max(0, bisect.bisect_right(self.begins, begin_ns) - 1)
        while i < len(self.intervals) and self.intervals[i][0] < end_ns:
            total += max(0, min(end_ns, self.intervals[i][1]) - max(begin_ns, self.intervals[i][0]))
            i += 1
        return total

    def first_run_ns(self, begin_ns, end_ns):
        """The first moment in a span at which it ran, or None."""
        i = bisect.bisect_right(self.begins, begin_ns) - 1
        if i >= 0 and self.intervals[i][1] > begin_ns:
            return begin_ns
        i += 1
        return self.begins[i] if i < len(self.begins) and self.begins[i] < end_ns else None

    def stop_ns(self, boundary_ns):
        """When the run that crosses a boundary ends; the boundary itself if none crosses it. Interrupts split a run, so
        pieces less than 100 us apart count as one."""
        i = bisect.bisect_right(self.begins, boundary_ns) - 1
        if i < 0 or self.intervals[i][1] <= boundary_ns:
            return boundary_ns
        while i + 1 < len(self.intervals) and self.intervals[i + 1][0] - self.intervals[i][1] < 100_000:
            i += 1
        return self.intervals[i][1]

    def last_run_ns(self, begin_ns, end_ns):
        """The last moment in a span at which it ran; the span's begin if it did not."""
        i = bisect.bisect_left(self.begins, end_ns) - 1
        if i < 0 or self.intervals[i][1] <= begin_ns:
            return begin_ns
        return min(end_ns, self.intervals[i][1])


def owners(jobs, slot_ns, first, last):
    """({slot: job with the most run time}, {slot: run time of all the others}, run time of all)."""
    owner, stray_ns, total_ns = {}, 0, 0
    for slot in range(first, last):
        times = [sum(p.run_time_ns(slot * slot_ns, (slot + 1) * slot_ns) for p in job) for job in jobs]
        total_ns += sum(times)
        if max(times) > 0:
            owner[slot] = times.index(max(times))
            stray_ns += sum(times) - max(times)
    return owner, stray_ns, total_ns


def boundary(outgoing, incoming, boundary_ns, slot_ns):
    """The times of one switch in us after the boundary; None where a process never ran in the slot."""
    end_ns = boundary_ns + slot_ns
    firsts = [(p.cpu, p.first_run_ns(boundary_ns, end_ns)) for p in incoming]
    per_cpu = {}
    for cpu, first_ns in firsts:
        if first_ns is not None:
            per_cpu[cpu] = min(per_cpu.get(cpu, end_ns), first_ns)
    cpus = {p.cpu for p in incoming}
    in_first_ns = max(per_cpu.values()) if len(per_cpu) == len(cpus) else None
    in_all_ns = max(f for _, f in firsts) if all(f is not None for _, f in firsts) else None
    stop_ns = min(max(p.stop_ns(boundary_ns) for p in outgoing), end_ns)
    last_ns = max(p.last_run_ns(boundary_ns, end_ns) for p in outgoing)
    after_us = [None if t is None else (t - boundary_ns) / 1000 for t in (in_first_ns, in_all_ns, stop_ns, last_ns)]
    names = ("in_first", "in_all", "out_stop", "out_last")
    result = dict(zip(names, after_us))
    result["switch"] = None if in_first_ns is None else max(result["in_first"], result["out_stop"])
    return result


def switches(jobs, slot_ns):
    """Over the time in which all processes were alive: for each quantity median, p99 and worst in us, and the stray share."""
    processes = [process for job in jobs for process in job]
    begin_ns = max(process.intervals[0][0] for process in processes)
    end_ns = min(process.intervals[-1][1] for process in processes)
    # A process that is frozen at its start or its end was not seen for up to a cycle: leave one cycle out.
    first = begin_ns // slot_ns + 1 + len(jobs)
    last = end_ns // slot_ns - len(jobs)
    owner, stray_ns, total_ns = owners(jobs, slot_ns, first, last)
    found = []
    for slot in range(first + 1, last):
        before, now = owner.get(slot - 1), owner.get(slot)
        if before is not None and now is not None and before != now:
            found.append(boundary(jobs[before], jobs[now], slot * slot_ns, slot_ns))
    result = {"slots": max(0, last - first), "switches": len(found),
              "stray_share": stray_ns / total_ns if total_ns else None}
    for name in ("switch", "in_first", "in_all", "out_stop", "out_last"):
        values = [f[name] for f in found if f[name] is not None]
        result[name] = {"p50_us": median(values), "p99_us": quantile(values, 0.99),
                        "max_us": max(values, default=None), "missing": len(found) - len(values)}
    return result
