"""Gang scheduling (GS of Zhang et al. 2000) with SimPy: what its user writes for the task that is one line with cosched.sim.

Nodes have a CPU and a network interface. Rows of the matrix take turns of a quantum; all CPUs switch together. A task computes, does I/O, sends to
its neighbours on a ring and spins for their messages, again and again (docs/simulator.md, D8 to D12 and D17; no skewness). Times are in ns.
"""

import simpy

QUANTUM, SWITCH, SEND, WIRE, RECEIVE = 200_000_000, 2_000_000, 80_000, 25_480, 80_000
#: Computation, I/O and communication of job types in per cent.
TYPES = {"J1": (35, 15, 50), "J2": (35, 50, 15), "J3": (35, 35, 30), "J4": (90, 5, 5), "J5": (35, 5, 60), "J6": (65, 5, 30)}


class Row:
    """A row of the matrix: which job has which column, and whether it has its turn."""

    def __init__(self, env, nodes):
        self.env, self.cells = env, [None] * nodes
        self.on, self.off = env.event(), env.event()

    def start(self):
        self.off = self.env.event()
        self.on.succeed()

    def stop(self):
        self.on = self.env.event()
        self.off.succeed()


class Machine:
    def __init__(self, env, nodes, mpl):
        self.env = env
        self.rows = [Row(env, nodes) for _ in range(mpl)]
        self.out = [simpy.Resource(env) for _ in range(nodes)]
        self.into = [simpy.Resource(env) for _ in range(nodes)]
        self.queue, self.current, self.turns, self.finish = [], 0, None, {}

    def admit(self):
        """First come first served, into the lowest row with room."""
        while self.queue:
            job = self.queue[0]
            for number, row in enumerate(self.rows):
                free = [column for column, other in enumerate(row.cells) if other is None]
                if len(free) >= job["tasks"]:
                    break
            else:
                return
            columns = free[:job["tasks"]]
            for column in columns:
                row.cells[column] = self.queue[0]["id"]
            self.env.process(self.run(self.queue.pop(0), row, columns))
            if self.turns is None:
                self.current = number
                row.start()
                self.turns = self.env.process(self.take_turns())

    def arrive(self, job):
        yield self.env.timeout(job["arrival_ns"])
        self.queue.append(job)
        self.admit()

    def used(self, number):
        return any(job is not None for job in self.rows[number].cells)

    def take_turns(self):
        try:
            while True:
                yield self.env.timeout(QUANTUM)
                order = [(self.current + step) % len(self.rows) for step in range(1, len(self.rows) + 1)]
                following = next(number for number in order if self.used(number))
                if following != self.current:
                    self.rows[self.current].stop()
                    self.current = following
                    yield self.env.timeout(SWITCH)
                    self.rows[following].start()
        except simpy.Interrupt:
            if self.rows[self.current].on.triggered:
                self.rows[self.current].stop()

    def run(self, job, row, columns):
        """A job: as many tasks as columns, then its columns are free."""
        tasks = len(columns)
        ideal = [0, SEND + WIRE + RECEIVE, 2 * SEND + WIRE + RECEIVE][min(tasks, 3) - 1]
        compute, io, communicate = TYPES[job["type"]]
        basis = ideal or 2 * SEND + WIRE + RECEIVE
        part = lambda percent: (2 * basis * percent + communicate) // (2 * communicate)  # noqa: E731
        times = part(compute), part(io)
        total = sum(times) + ideal
        count = max((2 * job["exec_ns"] + total) // (2 * total), 1)
        boxes = [{n: simpy.Store(self.env) for n in {(t - 1) % tasks, (t + 1) % tasks} - {t}} for t in range(tasks)]
        yield simpy.AllOf(self.env, [self.env.process(self.task(t, row, columns, boxes, count, *times)) for t in range(tasks)])
        self.finish[job["id"]] = self.env.now
        row.cells = [None if other == job["id"] else other for other in row.cells]
        if not any(self.used(number) for number in range(len(self.rows))):
            self.turns.interrupt()
            self.turns = None
        self.admit()

    def task(self, task, row, columns, boxes, count, compute, io):
        tasks, env = len(columns), self.env
        left, right = (task - 1) % tasks, (task + 1) % tasks
        for _ in range(count):
            left_ns = compute
            while left_ns:
                yield row.on
                begin, done = env.now, env.timeout(left_ns)
                yield done | row.off
                left_ns -= env.now - begin
            yield row.on
            yield env.timeout(io)
            yield row.on
            for to in dict.fromkeys((right, left)):
                if to != task:
                    env.process(self.message(columns[task], columns[to], boxes[to][task]))
            for sender in dict.fromkeys((left, right)):
                if sender != task:
                    yield boxes[task][sender].get()
                    yield row.on

    def message(self, sender, receiver, box):
        for resource, ns in ((self.out[sender], SEND), (None, WIRE), (self.into[receiver], RECEIVE)):
            if resource is None:
                yield self.env.timeout(ns)
                continue
            with resource.request() as turn:
                yield turn
                yield self.env.timeout(ns)
        box.put(None)


def simulate(jobs, nodes, mpl=5):
    """When each of these jobs ends, in ns. Jobs are dicts: id, tasks, type, exec_ns, arrival_ns."""
    env = simpy.Environment()
    machine = Machine(env, nodes, mpl)
    for job in jobs:
        env.process(machine.arrive(job))
    env.run()
    return [machine.finish[job["id"]] for job in jobs]
