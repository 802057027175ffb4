"""Tests for pytest-xdist: each computes on all threads of NumPy's BLAS."""

import numpy
import pytest


@pytest.mark.parametrize("seed", range(16))
def test_solution(seed):
    data = numpy.random.default_rng(seed)
    for _ in range(60):
        a, b = data.standard_normal((300, 300)), data.standard_normal(300)
        assert numpy.allclose(a @ numpy.linalg.solve(a, b), b)
