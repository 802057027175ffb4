"""scikit-learn: `boosting.py ROUNDS [PROCESSES]`: a histogram gradient boosting fit, also as joblib's processes (its threads are OpenMP's)."""

import sys

import joblib
import numpy
import sklearn.ensemble

rounds, processes = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
data = numpy.random.default_rng(1)
x = data.standard_normal((10_000, 20))
y = x[:, 0] * x[:, 1] + data.standard_normal(10_000)


def fit(_):
    sklearn.ensemble.HistGradientBoostingRegressor(max_iter=rounds, early_stopping=False).fit(x, y)


if processes == 1:
    fit(0)
else:
    joblib.Parallel(processes, backend="multiprocessing")(joblib.delayed(fit)(i) for i in range(processes))
