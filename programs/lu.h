/* The system of equations that lu solves, dealt out over a grid of processes. */
#ifndef LU_H
#define LU_H

#include "cyclic.h"
#include "dense.h"

/* The matrix of n rows and n + 1 columns (the last is b); this process has m by k of it, column-major. */
typedef struct {
    process_grid at;
    int n, block, m, k;
    double *a;
    int *pivot;        /* of the rows of the panel: the row that each was exchanged with */
    double *panel;     /* the panel's rows of this process from the diagonal block on, its height is panel_m */
    int panel_m;
    double *upper;     /* the rows of U right of the panel */
    double *best;      /* two candidates for the pivot, see panel_column */
    double *out, *in;  /* rows exchanged with another row of the grid */
    MPI_Op larger;     /* of the two candidates */
} system_of;

/* The local index of a row that this process owns; the number of this process's rows (columns) before a given one. */
static inline int row_local(const system_of *s, int row) { return row / s->block / s->at.rows * s->block + row % s->block; }
static inline int rows_before(const system_of *s, int row) { return owned(row, s->block, s->at.p, s->at.rows); }
static inline int columns_before(const system_of *s, int column) { return owned(column, s->block, s->at.q, s->at.columns); }
static inline double *element(const system_of *s, int i, int j) { return s->a + (size_t)j * (size_t)s->m + (size_t)i; }

/* The element in [-1/2, 1/2), computed from its global indices alone; column n is b. */
double lu_value(int row, int column);

/* The reduction of candidates for the pivot, as MPI_Op_create takes it. */
void lu_larger_pivot(void *in, void *inout, int *count, MPI_Datatype *type);

/* Factors the panel of `width` columns from k on, in the column of the grid that has it, and sends it and its pivots to
 * the others. */
void lu_panel(system_of *s, int k, int width);

/* Exchanges the rows right of the panel, solves for the rows of U there, and updates what is below. `memory` has room
 * for three times the block. */
void lu_update(system_of *s, int k, int width, int *memory);

/* x, complete on every process, from U x = y, where y is the transformed column n. */
void lu_substitute(const system_of *s, double *x);

/* |A x - b| / (eps n (|A| |x| + |b|)), maximum norms, with the matrix generated again; infinite if any number is NaN. */
double lu_residual(const system_of *s, const double *x);

#endif
