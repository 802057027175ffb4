"""Medians of paired ratios with confidence intervals, and least squares; standard library only."""

import math
import random
import statistics


def paired(values, base, draws=2000, seed=1):
    """(median, low, high) of values[i] / base[i]; the 95 % interval by bootstrap over the pairs."""
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(draws))
    return statistics.median(ratios), medians[int(draws * 0.025)], medians[int(draws * 0.975) - 1]


def least_squares(rows, values):
    """[(coefficient, t)] of values ~ constant + rows, the constant first; t is None where nothing is left to judge by.

    None where the rows do not tell the variables apart."""
    table = [[1.0, *row] for row in rows]
    size = len(table[0])
    normal = [[math.fsum(row[i] * row[j] for row in table) for j in range(size)] for i in range(size)]
    inverse = _inverse(normal)
    if inverse is None:
        return None
    right = [math.fsum(row[i] * value for row, value in zip(table, values, strict=True)) for i in range(size)]
    found = [math.fsum(inverse[i][j] * right[j] for j in range(size)) for i in range(size)]
    left = [value - math.fsum(c * x for c, x in zip(found, row)) for row, value in zip(table, values)]
    freedom = len(table) - size
    variance = math.fsum(error * error for error in left) / freedom if freedom > 0 else 0.0
    errors = [math.sqrt(max(0.0, variance * inverse[i][i])) for i in range(size)]
    return [(c, c / error if error else None) for c, error in zip(found, errors)]


def _inverse(matrix):
    """By elimination with pivots; None for a singular matrix."""
    size = len(matrix)
    work = [[*row, *(1.0 if i == j else 0.0 for j in range(size))] for i, row in enumerate(matrix)]
    scale = max(abs(value) for row in matrix for value in row)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(work[row][column]))
        if abs(work[pivot][column]) <= 1e-12 * scale:
            return None
        work[column], work[pivot] = work[pivot], work[column]
        head = work[column][column]
        work[column] = [value / head for value in work[column]]
        for row in range(size):
            if row != column:
                factor = work[row][column]
                work[row] = [a - factor * b for a, b in zip(work[row], work[column])]
    return [row[size:] for row in work]
