/* The matrices of matmul on its grid, and the checks of the results. */
#ifndef MATMUL_H
#define MATMUL_H

#include "cyclic.h"
#include "dense.h"

typedef struct {
    process_grid at;
    int n, k; /* order; rows and columns broadcast at a time */
    int deal; /* rows and columns dealt out together */
    int m, w; /* rows and columns of this process, column-major */
} grid;

/* Element (i, j) of this process's part of A: in [-1/2, 1/2), computed from its global indices alone. */
double matmul_value(const grid *g, int i, int j);

/* The largest |C x - R A (A x)| relative to its bound, of all rows (Freivalds' check); infinite if any number is NaN. */
double matmul_check(const grid *g, int iterations, const double *a, const double *c);

/* 0 when the panels hold the last k or fewer columns and rows of A, infinite when not. */
double matmul_check_panels(const grid *g, const double *columns, const double *rows);

/* Writes C as text, one row per line; the first rank writes. */
void matmul_dump(const grid *g, const char *path, const double *c);

#endif
