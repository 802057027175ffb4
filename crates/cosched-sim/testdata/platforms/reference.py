#!/usr/bin/env python3
"""Computes the ends of simgrid.json again with SimGrid itself (its Python module, 3.32) and writes the file.

Usage: reference.py            all cases, each in a process of its own, as SimGrid runs once in a process
       reference.py NUMBER     one case; prints its ends
Exit codes: 0 written, 1 a case failed.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CASES = json.loads((HERE / "simgrid.json").read_text())


def ends(case):
    from simgrid import Actor, Engine, Host, Mailbox, this_actor

    engine = Engine(["reference", "--log=root.thres:error", f"--cfg=network/model:{case['model']}"])
    engine.load_platform(str(HERE / f"{case['platform']}.xml"))
    found = [None] * len(case["flows"])

    def send(number, start_s, size):
        if start_s > 0:
            this_actor.sleep_for(start_s)
        Mailbox.by_name(str(number)).put("", int(size))

    def receive(number):
        Mailbox.by_name(str(number)).get()
        found[number] = Engine.clock

    for number, (start_s, sender, receiver, size) in enumerate(case["flows"]):
        Actor.create(f"s{number}", Host.by_name(sender), send, number, start_s, size)
        Actor.create(f"r{number}", Host.by_name(receiver), receive, number)
    engine.run()
    return found


def main():
    if len(sys.argv) > 1:
        print(json.dumps(ends(CASES[int(sys.argv[1])])))
        return 0
    for number, case in enumerate(CASES):
        done = subprocess.run([sys.executable, __file__, str(number)], capture_output=True, text=True)
        if done.returncode:
            print(f"reference.py: case {number}: {done.stderr}", file=sys.stderr)
            return 1
        case["ends"] = json.loads(done.stdout.splitlines()[-1])
    (HERE / "simgrid.json").write_text("[\n" + ",\n".join(map(json.dumps, CASES)) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
