"""Medians, quantiles and tables."""

import math
import statistics


def quantile(values, q):
    """The q-quantile (nearest rank) of a list; None of an empty one."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))]


def median(values):
    """The median; None of an empty list."""
    return statistics.median(values) if values else None


def text(value, digits=0, missing="-"):
    """A number for a table."""
    return missing if value is None else f"{value:.{digits}f}"


def table(title, head, rows):
    """The lines of a table: the first column to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [title]
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = "  ".join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        lines.append(f"    {first}  {rest}".rstrip())
    return lines
