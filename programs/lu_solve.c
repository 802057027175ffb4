/* lu: the solution from the factors, and its check. */
#define _GNU_SOURCE
#include "lu.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Block after block, from the last to the first. */
void lu_substitute(const system_of *s, double *x) {
    double *rest = allocate((size_t)s->m), *part = allocate((size_t)s->n), *xk = allocate((size_t)s->block);
    if (s->at.q == owner(s->n, s->block, s->at.columns))
        memcpy(rest, element(s, 0, columns_before(s, s->n)), (size_t)s->m * sizeof *rest);
    for (int k = (s->n - 1) / s->block * s->block; k >= 0; k -= s->block) {
        int width = s->n - k < s->block ? s->n - k : s->block, p = owner(k, s->block, s->at.rows);
        int q = owner(k, s->block, s->at.columns), above = rows_before(s, k), left = columns_before(s, k);
        if (s->at.p == p) MPI_Reduce(rest + above, xk, width, MPI_DOUBLE, MPI_SUM, q, s->at.row);
        if (s->at.q != q) continue;
        if (s->at.p == p)
            cblas_dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, width, element(s, above, left), s->m, xk,
                        1);
        MPI_Bcast(xk, width, MPI_DOUBLE, p, s->at.column);
        memcpy(part + k, xk, (size_t)width * sizeof *xk);
        if (above > 0)
            cblas_dgemv(CblasColMajor, CblasNoTrans, above, width, -1.0, element(s, 0, left), s->m, xk, 1, 1.0, rest, 1);
    }
    MPI_Allreduce(part, x, s->n, MPI_DOUBLE, MPI_SUM, s->at.row);
    free(rest), free(part), free(xk);
}

double lu_value(int row, int column) { return 0.5 * hash_symmetric(3000017 + (uint64_t)row, (uint64_t)column); }

double lu_residual(const system_of *s, const double *x) {
    double *row = allocate(2 * (size_t)s->m), norm_x = 0;
    double largest[3] = {0, 0, 0}, all[3]; /* of A x - b, of the sums of |A|'s rows, of b */
    for (int j = 0; j < s->k; j++) {
        int column = global_index(j, s->block, s->at.q, s->at.columns);
        for (int i = 0; i < s->m; i++) {
            double value = lu_value(global_index(i, s->block, s->at.p, s->at.rows), column);
            row[i] += column < s->n ? value * x[column] : -value;
            if (column < s->n) row[s->m + i] += fabs(value);
            else if (fabs(value) > largest[2]) largest[2] = fabs(value);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, row, 2 * s->m, MPI_DOUBLE, MPI_SUM, s->at.row);
    for (int i = 0; i < s->m; i++) {
        if (!(fabs(row[i]) <= largest[0])) largest[0] = isnan(row[i]) ? INFINITY : fabs(row[i]);
        if (row[s->m + i] > largest[1]) largest[1] = row[s->m + i];
    }
    for (int i = 0; i < s->n; i++)
        if (!(fabs(x[i]) <= norm_x)) norm_x = fabs(x[i]);
    MPI_Allreduce(largest, all, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    free(row);
    double scaled = all[0] / (DBL_EPSILON / 2 * s->n * (all[1] * norm_x + all[2]));
    return isfinite(scaled) ? scaled : INFINITY;
}
