"""Means and ratios with confidence intervals; standard library only."""

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


def ratio(values, bases):
    """(sum of values) / (sum of bases) of pairs, and half of its 95 % confidence interval (ratio estimator); None for fewer than two pairs."""
    whole = math.fsum(values) / math.fsum(bases)
    left = half_width([value - whole * base for value, base in zip(values, bases, strict=True)])
    return whole, left and left / abs(mean(bases))
