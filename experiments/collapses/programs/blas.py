"""NumPy: `blas.py ROUNDS`: products and a factorization on all threads of its BLAS, in between work of one thread."""

import sys

import numpy

matrix = numpy.random.default_rng(1).standard_normal((400, 400))
for _ in range(int(sys.argv[1])):
    product = matrix @ matrix.T
    numpy.linalg.cholesky(product + 400 * numpy.eye(400))
    numpy.tanh(product)
