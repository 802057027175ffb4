"""The results of matmul and lu, by the definitions and in plain Python: independent of the programs that it checks.

Usage: test_serial.py matmul N ITERATIONS FILE | lu N FILE    FILE: what --dump wrote
Exit codes: 0 the same up to rounding, 1 not.
"""

import sys

MASK = (1 << 64) - 1


def symmetric(a, b):
    """hash_symmetric of common.c: splitmix64, uniform in [-1, 1)."""
    z = (a * 0x9E3779B97F4A7C15 + b * 0xD1B54A32D192ED03 + 0x2545F4914F6CDD1D) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return (z >> 11) * 2.0**-52 - 1.0


def matrix(n, columns, seed):
    return [[0.5 * symmetric(seed + i, j) for j in range(columns)] for i in range(n)]


def product(n, iterations):
    a = matrix(n, n, 1000003)
    turned = list(zip(*a))
    return [[iterations * sum(x * y for x, y in zip(row, column)) for column in turned] for row in a]


def solution(n):
    """Gauss and Jordan with partial pivoting: not the order of operations of lu."""
    a = matrix(n, n + 1, 3000017)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(a[i][k]))
        a[k], a[pivot] = a[pivot], a[k]
        for i in range(n):
            if i != k and (factor := a[i][k] / a[k][k]):
                a[i][k:] = [x - factor * y for x, y in zip(a[i][k:], a[k][k:])]
    return [[a[i][n] / a[i][i]] for i in range(n)]


def main():
    kind, n, *rest = sys.argv[1:]
    with open(rest[-1], encoding="ascii") as file:
        found = [[float(word) for word in line.split()] for line in file]
    wanted = product(int(n), int(rest[0])) if kind == "matmul" else solution(int(n))
    if [len(row) for row in found] != [len(row) for row in wanted]:
        sys.exit(f"{kind}: not {len(wanted)} rows of {len(wanted[0])}")
    scale = max(abs(value) for row in wanted for value in row)
    worst = max(abs(x - y) for row, other in zip(found, wanted) for x, y in zip(row, other)) / scale
    # Rounding is about n eps times the condition number, which is far below 1e5 for these matrices.
    if not worst < 1e-9:
        sys.exit(f"{kind}: off by {worst:.3g} of the largest element")
    print(f"same up to {worst:.2g}")


main()
