#!/usr/bin/env python3
"""Looks at two jobs' CPU time (v2 cpu.stat) and says whether they take turns.

    look.py SECONDS INTERVAL_MS CGROUP_DIR CGROUP_DIR

Prints "alternate P share Q": P, the percentage of intervals with CPU time in which only one of the two used any (less
than a tenth of the other's is none: the reading and the switch take time); Q, the first's percentage of their CPU time.
"""
import sys
import time


def usage_us(directory):
    with open(directory + "/cpu.stat", encoding="ascii") as lines:
        return int(next(line for line in lines if line.startswith("usage_usec")).split()[1])


def main():
    seconds, interval_s, directories = float(sys.argv[1]), float(sys.argv[2]) / 1000, sys.argv[3:5]
    first = before = [usage_us(d) for d in directories]
    alone = busy = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(interval_s)
        now = [usage_us(d) for d in directories]
        used = [n - b for n, b in zip(now, before)]
        before = now
        if max(used) > interval_s * 1e6 / 10:
            busy += 1
            alone += min(used) * 10 < max(used)
    total = [b - f for b, f in zip(before, first)]
    print(f"alternate {100 * alone // max(busy, 1)} share {100 * total[0] // max(sum(total), 1)}")


main()
