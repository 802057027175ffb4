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
    """Half of the 95 % confidence interval of the mean (Student); None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    middle = mean(values)
    variance = math.fsum((value - middle) ** 2 for value in values) / (count - 1)
    return quantile(count - 1) * math.sqrt(variance / count)


def quantile(degrees):
    """97.5 % of Student's t; beyond the table by its expansion around the normal distribution."""
    return T_975[degrees - 1] if degrees <= len(T_975) else 1.96 + 2.37 / degrees


def half_width_of_positive(values):
    """The same of quantities above 0, as times: the widest of Student's, Hall's (upper side) and Cox's (decision 0059), because
    Student's alone covers too little where values are skewed. None where that is beyond all numbers."""
    try:
        plain = half_width(values)
        if not plain or min(values) <= 0:
            return plain
        return max(plain, _hall(values), _cox(values))
    except OverflowError:
        return None


def _hall(values):
    """How far above their mean Hall's interval ends; 0 of fewer than three."""
    count, middle = len(values), mean(values)
    second, third = (math.fsum((value - middle) ** power for value in values) / count for power in (2, 3))
    if count < 3 or second == 0:
        return 0.0
    skewness = third / second**1.5 * math.sqrt(count * (count - 1)) / (count - 2)
    t = quantile(count - 1)
    return math.sqrt(second / (count - 1)) * (t + max(skewness, 0.0) * (1 + 2 * t * t) / (6 * math.sqrt(count)))


def _cox(values):
    """How far from their mean the further end of Cox's interval is."""
    count, logs = len(values), [math.log(value) for value in values]
    middle = mean(logs)
    variance = math.fsum((log - middle) ** 2 for log in logs) / (count - 1)
    half = quantile(count - 1) * math.sqrt(variance / count + variance**2 / (2 * (count - 1)))
    return max(abs(math.exp(middle + variance / 2 + side * half) - mean(values)) for side in (1, -1))


def ratio(values, bases):
    """(sum of values) / (sum of bases) of pairs, and half of its 95 % confidence interval (ratio estimator); None for fewer than two pairs."""
    whole = math.fsum(values) / math.fsum(bases)
    left = half_width([value - whole * base for value, base in zip(values, bases, strict=True)])
    return whole, left and left / abs(mean(bases))
