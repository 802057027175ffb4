#!/usr/bin/env python3
"""Texts for `cosched sim program` of the paper's two programs: matrix multiply and LU (Linpack) on a grid of P x Q processes.

Processes are numbered row by row, as in Figure 1: process 2i and 2i + 1 share node i. Times of computation are floating point
operations times the machine's costs of one, with the simulation's skewness; messages have sizes, and what they cost is the
simulator's to know.

Examples:
  experiments/strazdins-2004/programs.py matmul --n 4000 --grid 8x4 --machine experiments/machines/bunyip.toml > mm.prog
  cosched sim program mm.prog -n 32 --nodes 16 --machine bunyip --strategies SB,GS --skew 0.02"""

import argparse
import pathlib
import sys
import tomllib

WORD = 8
# LAM sends what is longer in packets, each after the acknowledgement of the one before (section 2.1).
LAM_PACKET = 64 * 1024
MATMUL_BLOCK = 128
LU_BLOCK = 60


class Text:
    """What each process does, statement by statement; messages always in pairs of send and receive."""

    def __init__(self, tasks, cpus_per_node, packet, flop_ns):
        self.lines = [[] for _ in range(tasks)]
        self.cpus_per_node, self.packet, self.flop_ns = cpus_per_node, packet, flop_ns
        self.flops = 0

    def compute(self, task, flops, level=3):
        ns = round(flops * self.flop_ns[level])
        self.flops += flops
        if ns > 0:
            self.lines[task].append(f"compute {ns}ns skew")

    def packets(self, source, target, size):
        """Sizes of what is sent for a message. Acknowledgements are TCP's matter only, between nodes."""
        within = source // self.cpus_per_node == target // self.cpus_per_node
        if within or not self.packet or size <= self.packet:
            return [size]
        return [min(self.packet, size - at) for at in range(0, size, self.packet)]

    def message(self, source, target, words):
        sizes = self.packets(source, target, round(words * WORD))
        for number, size in enumerate(sizes):
            if number:
                self.lines[target].append(f"send {source} 0B")
                self.lines[source].append(f"recv {target}")
            self.lines[source].append(f"send {target} {size}B")
            self.lines[target].append(f"recv {source}")

    def shift(self, ring, words):
        """Each process of the ring sends to the next and receives from the one before, packet by packet."""
        size = round(words * WORD)
        for place, task in enumerate(ring):
            after, before = ring[(place + 1) % len(ring)], ring[place - 1]
            out, into = self.packets(task, after, size), self.packets(before, task, size)
            for number in range(max(len(out), len(into))):
                if number < len(out):
                    if number:
                        self.lines[task].append(f"recv {after}")
                    self.lines[task].append(f"send {after} {out[number]}B")
                if number < len(into):
                    self.lines[task].append(f"recv {before}")
                    if number + 1 < len(into):
                        self.lines[task].append(f"send {before} 0B")

    def tree(self, group, root, words, reduce=False):
        """Along a binomial tree from the root's place in the group to all, or back."""
        count, edges, reach = len(group), [], 1
        while reach < count:
            edges += [(place, place + reach) for place in range(reach) if place + reach < count]
            reach *= 2
        for parent, child in reversed(edges) if reduce else edges:
            parent, child = group[(parent + root) % count], group[(child + root) % count]
            self.message(*((child, parent) if reduce else (parent, child)), words)

    def exchange(self, one, other, words):
        """Both send, then both receive."""
        self.shift([one, other], words)

    def repeated(self, times, part):
        """What `part` writes, in a loop."""
        if times < 1:
            return
        marks, flops = [len(lines) for lines in self.lines], self.flops
        part()
        self.flops = flops + times * (self.flops - flops)
        for lines, mark in zip(self.lines, marks):
            if len(lines) > mark:
                lines[mark:] = [f"repeat {times} {{", *lines[mark:], "}"]

    def __str__(self):
        blocks = [f"on {task} {{\n" + "\n".join(lines) + "\n}\n" for task, lines in enumerate(self.lines) if lines]
        return "".join(blocks)


def grid_of(tasks):
    """P = Q or P = 2 Q (section 4.1), for powers of two."""
    q = 1
    while q * q * 2 < tasks:
        q *= 2
    p = tasks // q
    if p * q != tasks or p not in (q, 2 * q):
        raise ValueError(f"no grid with P = Q or P = 2 Q has {tasks} processes")
    return p, q


def columns_of(p, q):
    return [[row * q + column for row in range(p)] for column in range(q)]


def rows_of(p, q):
    return [[row * q + column for column in range(q)] for row in range(p)]


def matmul(text, n, p, q, block=MATMUL_BLOCK):
    """C <- A A + C: for each block of the inner index the processes gather its part of A, by ring-shift all-gathers down
    the columns and along the rows, and do a rank-k update. Each holds an equal part of every block."""

    def step(k):
        def part():
            for ring, steps in [(ring, p) for ring in columns_of(p, q)] + [(ring, q) for ring in rows_of(p, q)]:
                share = k * n / (p * q)
                for _ in range(steps - 1):
                    text.shift(ring, share)
            for task in range(p * q):
                text.compute(task, 2 * k * n * n / (p * q))
        return part

    text.repeated(n // block, step(block))
    if n % block:
        step(n % block)()
    return text


def owned(count, block, place, places):
    """How many of the first `count` rows or columns are the place's, dealt out block by block."""
    blocks, rest = divmod(count, block)
    whole, extra = divmod(blocks, places)
    return whole * block + (block if place < extra else rest if place == extra else 0)


def lu(text, n, p, q, block=LU_BLOCK):
    """LU with partial pivoting and solve, as programs/lu does it, with storage blocking: blocks are dealt out and factored.
    The rows that pivoting moves are as random rows are: each row of the grid has an equal part of them."""
    columns, rows = columns_of(p, q), rows_of(p, q)
    for k in range(0, n, block):
        width = min(block, n - k)
        root_p, root_q = k // block % p, k // block % q
        below = [owned(n, block, place, p) - owned(k + width, block, place, p) for place in range(p)]
        right = [owned(n + 1, block, place, q) - owned(min(k + width, n), block, place, q) for place in range(q)]
        panel(text, columns[root_q], root_p, width, below)
        for place, row in enumerate(rows):
            text.tree(row, root_q, (below[place] + (width if place == root_p else 0)) * width + width)
        for place, column in enumerate(columns):
            if right[place]:
                update(text, column, root_p, width, below, right[place])
    solve(text, n, p, q, block)
    return text


def panel(text, column, root, width, below):
    """Column by column: a reduction finds the pivot and brings its row and the one at its place to all, then the update."""
    def each():
        text.tree(column, root, 3 + 2 * width, reduce=True)
        text.tree(column, root, 3 + 2 * width)
        for place, task in enumerate(column):
            # Of a column: a division for each row below, and two operations for each element to the right of it.
            inside = sum((width - at - 1) * (1 + 2 * (width - at - 1)) for at in range(width)) if place == root else 0
            outside = below[place] * sum(1 + 2 * (width - at - 1) for at in range(width))
            text.compute(task, (inside + outside) / width, level=2)
    text.repeated(width, each)


def update(text, column, root, width, below, right):
    """Rows move between the block's row of the grid and each other one, U is solved for and broadcast, and what is below updated."""
    for place, task in enumerate(column):
        if place != root:
            text.exchange(column[root], task, width / len(column) * right)
    text.compute(column[root], width * (width - 1) * right)
    text.tree(column, root, width * right)
    for place, task in enumerate(column):
        text.compute(task, 2 * width * below[place] * right)


def solve(text, n, p, q, block):
    """x of U x = y, from the last block on; what remains of y stands in the process column of the matrix's last one."""
    columns, rows = columns_of(p, q), rows_of(p, q)
    for k in reversed(range(0, n, block)):
        width, root_p, root_q = min(block, n - k), k // block % p, k // block % q
        text.tree(rows[root_p], root_q, width, reduce=True)
        text.compute(rows[root_p][root_q], width * width, level=2)
        text.tree(columns[root_q], root_p, width)
        for place, task in enumerate(columns[root_q]):
            text.compute(task, 2 * width * owned(k, block, place, p), level=2)


PROGRAMS = {"matmul": matmul, "lu": lu}


def costs(machine):
    """ns of a floating point operation by BLAS level, from a machine file; level 2 as level 3 where it has none."""
    compute = machine["compute"]
    return {3: compute["flop_ns_level3"], 2: compute.get("flop_ns_level2", compute["flop_ns_level3"])}


def text(program, n, p, q, machine, packet=LAM_PACKET):
    """The program for a machine (a machine file's content)."""
    blank = Text(p * q, machine.get("cpus_per_node", 1), packet, costs(machine))
    return PROGRAMS[program](blank, n, p, q)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("--n", type=int, required=True, help="order of the matrices")
    parser.add_argument("--grid", required=True, metavar="PxQ", help="processes down and across")
    parser.add_argument("--machine", type=pathlib.Path, required=True, metavar="FILE", help="machine file, for the costs of operations")
    parser.add_argument("--packet", type=int, default=LAM_PACKET, metavar="BYTES", help="longer messages go in acknowledged packets; 0: never (default 65536)")
    options = parser.parse_args()
    try:
        p, q = (int(part) for part in options.grid.split("x"))
    except ValueError:
        parser.error(f"--grid {options.grid} is not like 8x4")
    if options.n < 1 or p < 1 or q < 1 or options.packet < 0:
        parser.error("--n and --grid must be at least 1, --packet not negative")
    try:
        machine = tomllib.loads(options.machine.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        parser.error(f"cannot read {options.machine}: {error}")
    sys.stdout.write(str(text(options.program, options.n, p, q, machine, options.packet)))


if __name__ == "__main__":
    main()
