/* lu: the panel, whose columns are factored one at a time. */
#define _GNU_SOURCE
#include "lu.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* A candidate for the pivot: [0] its magnitude (-1: none), [1] its row, [2] whether the row to exchange is there too,
 * [3..] its row of the panel, then that row of the panel. The larger one wins, among equals the upper one. */
void lu_larger_pivot(void *in, void *inout, int *count, MPI_Datatype *type) {
    int bytes;
    MPI_Type_size(*type, &bytes);
    size_t length = (size_t)bytes / sizeof(double), width = (length - 3) / 2;
    for (int i = 0; i < *count; i++) {
        const double *a = (const double *)in + (size_t)i * length;
        double *b = (double *)inout + (size_t)i * length;
        if (a[0] > b[0] || (a[0] == b[0] && a[1] < b[1])) {
            b[0] = a[0], b[1] = a[1];
            memcpy(b + 3, a + 3, width * sizeof *a);
        }
        if (a[2] > 0) {
            b[2] = a[2];
            memcpy(b + 3 + width, a + 3 + width, width * sizeof *a);
        }
    }
}

/* Finds the pivot of column `at` of the panel that starts at row and column `k` and exchanges the rows of the panel:
 * one reduction brings the pivot's row and the row at its place to all processes of the column. Returns the pivot's
 * row of the panel. */
static const double *panel_column(system_of *s, int k, int width, int at, MPI_Datatype candidate) {
    int row = k + at, first = rows_before(s, row), left = columns_before(s, k);
    double *mine = s->best, *best = s->best + 3 + 2 * s->block;
    const double *column = element(s, 0, left + at);
    mine[0] = -1, mine[1] = s->n, mine[2] = 0;
    int at_best = first;
    for (int i = first; i < s->m; i++)
        if (fabs(column[i]) > mine[0]) mine[0] = fabs(column[i]), at_best = i;
    if (mine[0] >= 0) {
        mine[1] = global_index(at_best, s->block, s->at.p, s->at.rows);
        cblas_dcopy(width, element(s, at_best, left), s->m, mine + 3, 1);
    }
    int has_row = owner(row, s->block, s->at.rows) == s->at.p;
    if (has_row) {
        mine[2] = 1;
        cblas_dcopy(width, element(s, first, left), s->m, mine + 3 + width, 1);
    }
    MPI_Allreduce(mine, best, 1, candidate, s->larger, s->at.column);
    if (!(best[0] > 0)) failure("the matrix is singular or not finite at column %d", row);
    int pivot = s->pivot[at] = (int)best[1];
    if (owner(pivot, s->block, s->at.rows) == s->at.p)
        cblas_dcopy(width, best + 3 + width, 1, element(s, row_local(s, pivot), left), s->m);
    if (has_row) cblas_dcopy(width, best + 3, 1, element(s, first, left), s->m);
    return best + 3;
}

/* The panel of `width` columns from k on, in the column of the grid that has it. */
static void factor_panel(system_of *s, int k, int width) {
    MPI_Datatype candidate;
    MPI_Type_contiguous(3 + 2 * width, MPI_DOUBLE, &candidate);
    MPI_Type_commit(&candidate);
    int left = columns_before(s, k);
    for (int at = 0; at < width; at++) {
        const double *pivot_row = panel_column(s, k, width, at, candidate);
        int below = rows_before(s, k + at + 1), count = s->m - below;
        if (count <= 0) continue;
        for (int i = below; i < s->m; i++) *element(s, i, left + at) /= pivot_row[at];
        cblas_dger(CblasColMajor, count, width - at - 1, -1.0, element(s, below, left + at), 1, pivot_row + at + 1, 1,
                   element(s, below, left + at + 1 < s->k ? left + at + 1 : left + at), s->m);
    }
    MPI_Type_free(&candidate);
}

/* The panel and its pivots go to the other columns of the grid, in one message. */
static void broadcast_panel(system_of *s, int k, int width) {
    int root = owner(k, s->block, s->at.columns), first = rows_before(s, k), left = columns_before(s, k);
    s->panel_m = s->m - first;
    size_t length = (size_t)s->panel_m * (size_t)width;
    if (s->at.q == root) {
        for (int j = 0; j < width; j++) {
            memcpy(s->panel + (size_t)j * (size_t)s->panel_m, element(s, first, left + j),
                   (size_t)s->panel_m * sizeof *s->panel);
            s->panel[length + (size_t)j] = s->pivot[j];
        }
    }
    MPI_Bcast(s->panel, (int)length + width, MPI_DOUBLE, root, s->at.row);
    for (int j = 0; j < width; j++) s->pivot[j] = (int)s->panel[length + (size_t)j];
}

void lu_panel(system_of *s, int k, int width) {
    if (s->at.q == owner(k, s->block, s->at.columns)) factor_panel(s, k, width);
    broadcast_panel(s, k, width);
}
