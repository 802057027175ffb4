"""Means with confidence intervals and rank correlation; standard library only."""

import math

from student import half_width, mean  # noqa: F401 (its users find all here)

def kendall_tau(left, right):
    """Kendall's tau-b of two equally long lists; None where one of them has no order."""
    agree = tied_left = tied_right = pairs = 0
    for i in range(len(left)):
        for j in range(i):
            a, b = _sign(left[i] - left[j]), _sign(right[i] - right[j])
            agree += a * b
            tied_left += a == 0
            tied_right += b == 0
            pairs += 1
    scale = math.sqrt((pairs - tied_left) * (pairs - tied_right))
    return agree / scale if scale else None


def _sign(value):
    return (value > 0) - (value < 0)


def crossing(points, limit):
    """The x at which a curve through `points` (x, y), sorted by x, first passes `limit`; linear in log y.

    None if it never does; the first x if it begins above the limit."""
    before = None
    for x, y in points:
        if y > limit:
            if before is None:
                return x
            share = (math.log(limit) - math.log(before[1])) / (math.log(y) - math.log(before[1]))
            return before[0] + share * (x - before[0])
        before = (x, y)
    return None
