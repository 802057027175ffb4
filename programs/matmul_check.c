#define _GNU_SOURCE
#include "matmul.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int global_row(const grid *g, int i) { return global_index(i, g->deal, g->at.p, g->at.rows); }
static int global_column(const grid *g, int j) { return global_index(j, g->deal, g->at.q, g->at.columns); }

static double value_at(int row, int column) { return 0.5 * hash_symmetric(1000003 + (uint64_t)row, (uint64_t)column); }

double matmul_value(const grid *g, int i, int j) { return value_at(global_row(g, i), global_column(g, j)); }

/* y <- M x, both complete on every process; with `magnitudes`, |M| |x|. */
static void times_vector(const grid *g, const double *matrix, const double *x, int magnitudes, double *y) {
    double *part = allocate((size_t)g->n);
    for (int j = 0; j < g->w; j++) {
        double factor = x[global_column(g, j)];
        for (int i = 0; i < g->m; i++) {
            double term = matrix[(size_t)j * (size_t)g->m + (size_t)i] * factor;
            part[global_row(g, i)] += magnitudes ? fabs(term) : term;
        }
    }
    MPI_Allreduce(part, y, g->n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(part);
}

double matmul_check(const grid *g, int iterations, const double *a, const double *c) {
    size_t n = (size_t)g->n;
    double *x = allocate(n), *ax = allocate(n), *aax = allocate(n), *cx = allocate(n), *bound = allocate(n), worst = 0;
    for (size_t i = 0; i < n; i++) x[i] = hash_symmetric(77, i);
    times_vector(g, c, x, 0, cx);
    times_vector(g, a, x, 0, ax);
    times_vector(g, a, ax, 0, aax);
    times_vector(g, a, x, 1, ax);
    times_vector(g, a, ax, 1, bound);
    for (size_t i = 0; i < n; i++) {
        double ratio = fabs(cx[i] - iterations * aax[i]) / (DBL_EPSILON * g->n * iterations * bound[i]);
        if (!(ratio <= worst)) worst = isnan(ratio) ? INFINITY : ratio;
    }
    free(x), free(ax), free(aax), free(cx), free(bound);
    return worst;
}

double matmul_check_panels(const grid *g, const double *columns, const double *rows) {
    int from = (g->n - 1) / g->k * g->k, width = g->n - from, wrong = 0, any;
    for (int l = 0; l < width; l++) {
        for (int i = 0; i < g->m; i++)
            wrong |= columns[(size_t)l * (size_t)g->m + (size_t)i] != value_at(global_row(g, i), from + l);
        for (int j = 0; j < g->w; j++)
            wrong |= rows[(size_t)j * (size_t)width + (size_t)l] != value_at(from + l, global_column(g, j));
    }
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any ? INFINITY : 0;
}

void matmul_dump(const grid *g, const char *path, const double *c) {
    FILE *file = dump_open(path, g->at.rank);
    double *part = allocate((size_t)g->n), *row = allocate((size_t)g->n);
    for (int r = 0; r < g->n; r++) {
        memset(part, 0, sizeof *part * (size_t)g->n);
        if (owner(r, g->deal, g->at.rows) == g->at.p)
            for (int j = 0; j < g->w; j++)
                part[global_column(g, j)] =
                    c[(size_t)j * (size_t)g->m + (size_t)owned(r, g->deal, g->at.p, g->at.rows)];
        MPI_Reduce(part, row, g->n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (file) dump_row(file, row, g->n);
    }
    if (file) dump_close(file, path);
    free(part), free(row);
}
