/* lu: applies a panel to the matrix right of it. */
#define _GNU_SOURCE
#include "lu.h"

#include <cblas.h>
#include <string.h>

/* The combined effect of all exchanges of a panel: row k + i of the new order is old row from[i]; the place outer[i] below
 * the block gets old row to[i], which is always one of the block. So each row of the grid sends the block's row of the
 * grid as many rows as it takes from there, and one message each way is enough. */
typedef struct {
    int count, *from, *outer, *to;
} row_moves;

static void moves_make(row_moves *r, const system_of *s, int k, int width, int *memory) {
    *r = (row_moves){0, memory, memory + width, memory + 2 * width};
    for (int i = 0; i < width; i++) r->from[i] = k + i;
    for (int i = 0; i < width; i++) {
        int pivot = s->pivot[i], old = r->from[i];
        if (pivot < k + width) {
            r->from[i] = r->from[pivot - k], r->from[pivot - k] = old;
            continue;
        }
        int at = 0;
        while (at < r->count && r->outer[at] != pivot) at++;
        r->from[i] = at < r->count ? r->to[at] : pivot;
        if (at == r->count) r->outer[r->count++] = pivot;
        r->to[at] = old;
    }
}

/* Sends the rows that leave the block to the process row `p` of the grid and takes those that come from there. */
static void exchange_rows(system_of *s, const row_moves *r, int width, int root, int p, int first_column) {
    int columns = s->k - first_column, count = 0, i_am_root = s->at.p == root;
    for (int i = 0; i < r->count; i++) {
        if (owner(r->outer[i], s->block, s->at.rows) != p) continue;
        int row = i_am_root ? r->to[i] : r->outer[i];
        cblas_dcopy(columns, element(s, row_local(s, row), first_column), s->m, s->out + (size_t)count * (size_t)columns,
                    1);
        count++;
    }
    if (!count) return;
    MPI_Sendrecv(s->out, count * columns, MPI_DOUBLE, i_am_root ? p : root, 0, s->in, count * columns, MPI_DOUBLE,
                 i_am_root ? p : root, 0, s->at.column, MPI_STATUS_IGNORE);
    count = 0;
    for (int i = 0; i < r->count; i++) {
        if (owner(r->outer[i], s->block, s->at.rows) != p) continue;
        const double *row = s->in + (size_t)count++ * (size_t)columns;
        if (!i_am_root) {
            cblas_dcopy(columns, row, 1, element(s, row_local(s, r->outer[i]), first_column), s->m);
            continue;
        }
        for (int u = 0; u < width; u++)
            if (r->from[u] == r->outer[i]) cblas_dcopy(columns, row, 1, s->upper + u, width);
    }
}

/* On the row of the grid that has the diagonal block: the new rows of U that are already local, and rows that leave the
 * block for a place in this same process. */
static void move_rows_here(system_of *s, const row_moves *r, int width, int first_column) {
    int columns = s->k - first_column;
    for (int u = 0; u < width; u++)
        if (owner(r->from[u], s->block, s->at.rows) == s->at.p)
            cblas_dcopy(columns, element(s, row_local(s, r->from[u]), first_column), s->m, s->upper + u, width);
    for (int i = 0; i < r->count; i++)
        if (owner(r->outer[i], s->block, s->at.rows) == s->at.p)
            cblas_dcopy(columns, element(s, row_local(s, r->to[i]), first_column), s->m,
                        element(s, row_local(s, r->outer[i]), first_column), s->m);
}

void lu_update(system_of *s, int k, int width, int *memory) {
    int root = owner(k, s->block, s->at.rows), first_column = columns_before(s, k + width);
    int columns = s->k - first_column;
    if (columns <= 0) return; /* of all processes in this column of the grid */
    row_moves moves;
    moves_make(&moves, s, k, width, memory);
    if (s->at.p == root) {
        move_rows_here(s, &moves, width, first_column);
        for (int p = 0; p < s->at.rows; p++)
            if (p != root) exchange_rows(s, &moves, width, root, p, first_column);
        cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, width, columns, 1.0, s->panel,
                    s->panel_m, s->upper, width);
        for (int j = 0; j < columns; j++)
            memcpy(element(s, row_local(s, k), first_column + j), s->upper + (size_t)j * (size_t)width,
                   (size_t)width * sizeof *s->upper);
    } else {
        exchange_rows(s, &moves, width, root, s->at.p, first_column);
    }
    MPI_Bcast(s->upper, width * columns, MPI_DOUBLE, root, s->at.column);
    int below = rows_before(s, k + width), rows = s->m - below;
    if (rows > 0)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows, columns, width, -1.0,
                    s->panel + (s->panel_m - rows), s->panel_m, s->upper, width, 1.0, element(s, below, first_column),
                    s->m);
}
