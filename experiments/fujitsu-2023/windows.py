"""Two programs that share nodes in turns, where each node switches at a time of its own.

`cosched sim` switches all nodes at once, so this small model adds what it lacks, and `check.py` compares the two where both can be used. A node's
turns of a program are windows of time; a task computes in them, and between its computations waits busily for others."""

import math
import random

import plan

FOREVER = math.inf


def draws(*names):
    return random.Random(" ".join(map(str, names)))


def orders(way, slot, slots, draw):
    """For each node, when it acts on the order of each slot; None for an order that is lost."""
    how, value, lost = plan.way(way)
    for node in range(plan.NODES):
        fixed = {"sequence": value * node, "share": value * slot * node, "clocks": draw.uniform(-value, value)}.get(how, 0.0)
        late = [fixed + exponential(draw, plan.WAKE) + (exponential(draw, value) if how == "broadcast" else 0.0) for _ in range(slots)]
        yield [None if lost and draw.random() < lost else number * slot + at for number, at in enumerate(late)]


def exponential(draw, mean):
    return draw.expovariate(1 / mean)


def windows(ordered, program, switch):
    """When a program's task has the CPU of a node: even slots are program 0's. An order that arrives after a later one is ignored."""
    made, begin, running = [], None, None
    for number, at in enumerate(ordered):
        later = next((other for other in ordered[number + 1 :] if other is not None), FOREVER)
        if at is None or later <= at or number % 2 == running:
            continue
        if running == program and begin < at:
            made.append((begin, at))
        running, begin = number % 2, at + switch
    if running == program:
        made.append((begin, FOREVER))
    return made


class Node:
    """A task's windows; times are asked for in their order."""

    def __init__(self, made):
        self.windows, self.place = made, 0

    def at(self, now):
        """The window that ends after now."""
        while self.place + 1 < len(self.windows) and self.windows[self.place][1] <= now:
            self.place += 1
        return self.windows[self.place]

    def computed(self, now, work):
        """When work is done that begins now, or in the next window."""
        begin, end = self.at(now)
        now = max(now, begin)
        while now + work > end:
            work -= end - now
            if self.place + 1 == len(self.windows):
                return FOREVER
            self.place += 1
            now, end = self.windows[self.place]
        return now + work


def barrier(nodes, work, draw):
    """When each iteration ends, if all tasks wait for all: the network ends the barrier, whoever has a CPU."""
    messages = math.ceil(math.log2(len(nodes))) * plan.MESSAGE
    longest, root, now = work * (1 + plan.SKEW / 2), 1 / len(nodes), 0.0
    while now < FOREVER:
        current = [node.at(now) for node in nodes]
        begin, end = max(window[0] for window in current), min(window[1] for window in current)
        # In a window of all nodes only the slowest task counts: the largest of all draws.
        while begin <= now and now + longest <= end:
            now += work * (1 + plan.SKEW * (draw.random() ** root - 0.5)) + messages
            yield now
        now = max(node.computed(now, work * (1 + plan.SKEW * (draw.random() - 0.5))) for node in nodes) + messages
        yield now


def ring(nodes, work, draw):
    """When all tasks have ended each iteration, if a task waits for its two neighbours."""
    ready = [0.0] * len(nodes)
    while ready[0] < FOREVER:
        done = [node.computed(now, work * (1 + plan.SKEW * (draw.random() - 0.5))) for node, now in zip(nodes, ready)]
        ready = [max(mine, left + plan.MESSAGE, right + plan.MESSAGE) for mine, left, right in zip(done, done[-1:] + done[:-1], done[1:] + done[:1])]
        yield max(ready)


PROGRAMS = {"barrier": barrier, "ring": ring}


def iterations(ends, marks):
    """How many iterations have ended at each mark, with parts of the current one."""
    found, before, marks = [], 0.0, list(marks)
    for number, end in enumerate(ends):
        while end >= marks[0]:
            found.append(number + (marks.pop(0) - before) / (end - before))
            if not marks:
                return found
        before = end
    return found


def efficiency(program, way, slot, number):
    """The iterations of a program in its turns, as a part of those of the same time alone; None if the way has no time for its orders."""
    if plan.step(way, slot) is None:
        return None
    how, work = program
    measured = plan.turns(slot)
    slots = 2 * (measured + 4) + 4 * math.ceil(work / slot)
    ordered = orders(way, slot, slots, draws(way, slot, number))
    nodes = [Node(windows(times, 0, plan.SWITCH)) for times in ordered]
    first, last = iterations(PROGRAMS[how](nodes, work, draws(program, slot, number)), [4 * slot, (4 + 2 * measured) * slot])
    return (last - first) / alone(program, measured * slot, number)


def alone(program, seconds, number):
    """How many iterations a program does in so much time without another; of a long one, a part is simulated."""
    how, work = program
    part = min(seconds, 400 * work)
    nodes = [Node([(0.0, FOREVER)]) for _ in range(plan.NODES)]
    return iterations(PROGRAMS[how](nodes, work, draws("alone", program, number)), [part])[0] * seconds / part


def spread(way, slot, number):
    """The mean time from the first to the last node that acts on an order."""
    ordered = list(orders(way, slot, 40, draws(way, slot, number)))
    return sum(max(times) - min(times) for times in zip(*ordered)) / 40
