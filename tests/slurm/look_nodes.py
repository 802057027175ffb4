#!/usr/bin/env python3
"""Looks at two jobs on two nodes, by which of their cgroups are frozen, and says whether they take turns together.

    look_nodes.py SECONDS INTERVAL_MS A_ON_1 B_ON_1 A_ON_2 B_ON_2

Prints "agree P turns T share Q of N": P, the percentage of looks at which a job is frozen on both nodes or on none; N, the
looks at which a job runs; T, the percentage of these at which it runs on both nodes and the other on none; Q, the percentage
of N at which the first runs. In the slots that other programs have, none does.
"""
import sys
import time


def is_frozen(directory):
    """The job's own cgroup or the one in it, whichever the daemon freezes."""
    for name in ("/cgroup.events", "/gang/cgroup.events"):
        with open(directory + name, encoding="ascii") as lines:
            if "frozen 1\n" in lines.readlines():
                return True
    return False


def main():
    seconds, interval_s, directories = float(sys.argv[1]), float(sys.argv[2]) / 1000, sys.argv[3:7]
    looks = agree = runs = turns = first = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        a1, b1, a2, b2 = [is_frozen(d) for d in directories]
        looks += 1
        agree += (a1, b1) == (a2, b2)
        if not (a1 and b1 and a2 and b2):
            runs += 1
            turns += (a1, b1) == (a2, b2) and a1 != b1
            first += b1 and not a1
        time.sleep(interval_s)
    print(f"agree {100 * agree // looks} turns {100 * turns // max(runs, 1)} share {100 * first // max(runs, 1)} of {runs}")


main()
