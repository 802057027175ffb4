"""XGBoost: `xgb.py ROUNDS THREADS`: trees on a small table."""

import sys

import numpy
import xgboost

data = numpy.random.default_rng(1)
x = data.standard_normal((5_000, 20))
y = x[:, 0] * x[:, 1] + data.standard_normal(5_000)
xgboost.train({"nthread": int(sys.argv[2]), "tree_method": "hist"}, xgboost.DMatrix(x, y, nthread=int(sys.argv[2])), int(sys.argv[1]))
