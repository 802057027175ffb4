#!/usr/bin/env python3
"""Writes synthetic.swf, a small log with the oddities of real ones, and synthetic.json: the results that a reader, a fitter and a
backfilling simulator must get from it, computed here in a plain way.

Usage: reference.py (no arguments; writes beside itself)
"""

import json
import math
import pathlib
import random
import statistics

HERE = pathlib.Path(__file__).resolve().parent
PROCS = 64
HEADER = f"""; Version: 2.2
; Computer: Synthetic
; Installation: nowhere (made by reference.py)
; Information: several lines
;              http://example.invalid/
;
; Note: made up
; Note: and repeated
; UnixStartTime: 1000000000
; TimeZone: 3600
; MaxJobs: 999 (before cleaning)
; MaxProcs: {PROCS} (batch partition; 80 total)
"""


def log(draw):
    """Lines of jobs, as numbers."""
    rows, now = [], 0
    for number in range(1, 401):
        now += int(draw.expovariate(1 / 90.0) * (40 if draw.random() < 0.05 else 1))
        size = min(PROCS, 2 ** draw.randint(0, 6) - (draw.random() < 0.2))
        run = int(draw.lognormvariate(5, 1.8))
        estimate = 60 * (1 + int(run * draw.uniform(0.7, 4) / 60)) if draw.random() < 0.95 else -1
        wait = draw.choice([0, 0, 30, 600]) if draw.random() < 0.9 else -1
        status = draw.choice([1, 1, 1, 0, 5])
        size = max(1, size)
        allocated, requested = (size, size) if draw.random() < 0.9 else (-1, size)
        if number % 50 == 0:
            run = draw.choice([0, -1])
        if number % 77 == 0:
            allocated = requested = -1
        if number == 123:
            requested = 65
        rows.append([number * 2, now, wait, run, allocated, -1, -1, requested, estimate, -1, status, number % 7, 1, -1, 0, -1, -1, -1])
    rows[200], rows[201] = rows[201], rows[200]
    return rows


def size_of(row):
    return row[4] if row[4] > 0 else row[7]


def fit(values):
    n = len(values)
    moments = [math.fsum(v**k for v in values) / n for k in (1, 2, 3)]
    result = {"samples": n, "moments": moments, "cv2": moments[1] / moments[0] ** 2 - 1, "order": None}
    for order in range(1, 201):
        m1, m2, m3 = (moments[0] / order, moments[1] / (order * (order + 1)), moments[2] / (order * (order + 1) * (order + 2)))
        d = m2 - m1 * m1
        if d <= 0 or (m1 * m3 - m2 * m2) / d <= 0:
            continue
        s, q = (m3 - m1 * m2) / d, (m1 * m3 - m2 * m2) / d
        xa = (s + math.sqrt(s * s - 4 * q)) / 2
        xb = q / xa
        return result | {"order": order, "lambda1": 1 / xb, "lambda2": 1 / xa, "p1": 1 - (m1 - xb) / (xa - xb)}
    return result


def statistics_of(rows):
    usable = sorted((row for row in rows if row[3] > 0 and size_of(row) > 0), key=lambda row: row[1])
    runs, sizes = [row[3] for row in usable], [size_of(row) for row in usable]
    first, last = min(row[1] for row in rows), max(row[1] + max(row[2], 0) + row[3] for row in usable)
    known = [row for row in rows if row[8] > 0]
    waits = [max(1, (row[2] + row[3]) / max(row[3], 10)) for row in usable if row[2] >= 0]
    gaps = [b[1] - a[1] for a, b in zip(usable, usable[1:])]
    work = sum(row[3] * size_of(row) for row in usable)
    return {
        "procs": PROCS, "records": len(rows), "header_lines": HEADER.count("\n"), "malformed": 2,
        "sorted_by_submit": all(a[1] <= b[1] for a, b in zip(rows, rows[1:])), "usable": len(usable),
        "run_zero": sum(row[3] == 0 for row in rows), "run_negative": sum(row[3] < 0 for row in rows),
        "procs_unknown": sum(size_of(row) <= 0 for row in rows), "wait_known": sum(row[2] >= 0 for row in rows),
        "estimate_known": len(known), "run_gt_estimate": sum(row[3] > row[8] for row in known),
        "status": {str(s): sum(row[10] == s for row in rows) for s in sorted({row[10] for row in rows})},
        "users": len({row[11] for row in rows}), "first_submit": first, "last_end": last, "span_s": last - first,
        "proc_seconds": work, "utilization": work / (PROCS * (last - first)), "run_mean": statistics.fmean(runs),
        "run_cv": statistics.pstdev(runs) / statistics.fmean(runs), "run_median": statistics.median(runs),
        "size_mean": statistics.fmean(sizes), "size_max": max(sizes), "size_serial": sizes.count(1) / len(sizes),
        "recorded_avebsld": statistics.fmean(waits),
        "hyper_erlang": {"all": {"jobs": len(usable), "interarrival": fit(gaps), "runtime": fit(runs)}},
    }


def schedule(rows, policy):
    """EASY second by second, in the event order of the reference: ends, submissions, one pass."""
    jobs = []
    for row in rows:
        size = row[7] if row[7] > 0 else row[4]
        if 0 < size <= PROCS and row[3] > 0 and row[8] > 0:
            jobs.append((row[1], size, min(row[3], row[8]), row[8]))
    jobs.sort(key=lambda job: job[0])
    running, waiting, starts, now, coming = {}, [], {}, 0, 0
    while len(starts) < len(jobs):
        running = {job: start for job, start in running.items() if start + jobs[job][2] > now}
        while coming < len(jobs) and jobs[coming][0] <= now:
            waiting.append(coming)
            coming += 1

        def free(at=None):
            held = [job for job, start in running.items() if at is None or start + jobs[job][3] > at]
            return PROCS - sum(jobs[job][1] for job in held)

        def start(job):
            running[job] = starts[job] = now
            waiting.remove(job)

        while waiting and jobs[waiting[0]][1] <= free():
            start(waiting[0])
        if waiting and policy != "fcfs":
            head = jobs[waiting[0]]
            shadow = min(t for t in [now] + [s + jobs[j][3] for j, s in running.items()] if free(t) >= head[1])
            extra = free(shadow) - head[1]
            order = sorted(waiting[1:], key=lambda job: jobs[job][3]) if policy == "easy-sjbf" else waiting[1:]
            for job in order:
                _, size, _, estimate = jobs[job]
                if size <= free() and (now + estimate <= shadow or size <= extra):
                    extra -= 0 if now + estimate <= shadow else size
                    start(job)
        now = min([s + jobs[j][2] for j, s in running.items()] + [job[0] for job in jobs[coming:coming + 1]], default=now)
    flows = [starts[place] + job[2] - job[0] for place, job in enumerate(jobs)]
    slowdowns = [max(1, flow / max(job[2], 10)) for flow, job in zip(flows, jobs)]
    return {"n": len(jobs), "flow": statistics.fmean(flows), "bsld": statistics.fmean(slowdowns), "maxb": max(slowdowns)}


def main():
    rows = log(random.Random(2000))
    lines = [" ".join(map(str, row)) for row in rows]
    lines[10] = "   " + lines[10].replace(" ", "   ")
    lines[20] = lines[20].replace(f" {rows[20][1]} ", f" {rows[20][1]}.00 ")
    lines[30] += " 7 8"
    lines[40] = " ".join(lines[40].split()[:15])
    lines.insert(100, "this is no job")
    lines.insert(200, "; a late comment")
    lines.insert(300, "999 12 x 1 1")
    (HERE / "synthetic.swf").write_text(HEADER + "\n".join(lines) + "\n")
    expected = statistics_of(rows) | {"header_lines": HEADER.count("\n") + 1}
    expected["simulated"] = {policy: schedule(rows, policy) for policy in ("fcfs", "easy", "easy-sjbf")}
    (HERE / "synthetic.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
