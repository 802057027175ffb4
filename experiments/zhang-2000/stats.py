"""Means with confidence intervals and rank correlation; standard library only."""

import math

# Student's t, 97.5 %, for 1 to 30 degrees of freedom.
T_975 = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
]


def mean(values):
    return math.fsum(values) / len(values)


def half_width(values):
    """Half of the 95 % confidence interval of the mean; None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    middle = mean(values)
    variance = math.fsum((value - middle) ** 2 for value in values) / (count - 1)
    quantile = T_975[count - 2] if count - 2 < len(T_975) else 1.96
    return quantile * math.sqrt(variance / count)


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
