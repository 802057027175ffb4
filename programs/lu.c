/* Solves A x = b by LU with partial pivoting, as High Performance Linpack does: right-looking, the matrix and b beside it
 * dealt out in blocks over a grid of processes, columns of the panel reduced one at a time, and the residual of HPL as
 * the check. It is the Linpack of Strazdins and Uhlmann (2004), whose block is 60. */
#define _GNU_SOURCE
#include "dense.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Solves a dense system of equations with MPI and BLAS, A x = b, and checks the result.\n\n"
    "Usage: mpirun -n RANKS lu [OPTIONS]\n\n"
    "Options:\n"
    "      --n N              order of the matrix [default: 1000]\n"
    "      --grid PxQ         processes down and across; P times Q ranks [default: nearly square]\n"
    "      --block K          rows and columns of a block: dealt out and factored together [default: 60]\n"
    "      --iterations R     solve R times [default: 1]\n"
    "      --spoil            change one element of x before the check, to see the check fail\n"
    "      --json             print one line of JSON\n"
    "  -h, --help             print this\n"
    "\nExamples:\n"
    "  mpirun -n 2 lu --n 2000\n"
    "  cosched run -- mpirun -n 2 lu --n 2000 --iterations 5 --grid 1x2 --json\n"
    "\nThe check: |A x - b| / (eps n (|A| |x| + |b|)) in the largest norms stays under 16.\n"
    "BLAS uses one thread in each rank unless OPENBLAS_NUM_THREADS is set.\n"
    "Exit codes: 0 done, 1 a wrong result or a failure of the system, 2 a wrong option.\n";

#define RESIDUAL_MAX 16.0

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
    MPI_Op larger;
} system_of;

/* How many of the first `count` rows (or columns) belong to part i of `parts`. */
static int owned(int count, int block, int i, int parts) {
    int blocks = count / block, whole = blocks / parts, extra = blocks % parts;
    return whole * block + (i < extra ? block : i == extra ? count % block : 0);
}
static int owner(int index, int block, int parts) { return index / block % parts; }
static int global_index(int local, int block, int i, int parts) {
    return (local / block * parts + i) * block + local % block;
}
static int row_local(const system_of *s, int row) { return row / s->block / s->at.rows * s->block + row % s->block; }
static int rows_before(const system_of *s, int row) { return owned(row, s->block, s->at.p, s->at.rows); }
static int columns_before(const system_of *s, int column) { return owned(column, s->block, s->at.q, s->at.columns); }
static double *element(const system_of *s, int i, int j) { return s->a + (size_t)j * (size_t)s->m + (size_t)i; }

/* A candidate for the pivot: [0] its magnitude (-1: none), [1] its row, [2] whether the row to exchange is there too,
 * [3..] its row of the panel, then that row of the panel. The larger wins, of equals the upper one. */
static void larger_pivot(void *in, void *inout, int *count, MPI_Datatype *type) {
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

static void system_make(system_of *s, const dense_options *o) {
    process_grid_make(&s->at, "lu", o->dims);
    s->n = o->n;
    s->block = o->block < o->n ? o->block : o->n;
    s->m = rows_before(s, s->n);
    s->k = columns_before(s, s->n + 1);
    size_t m = (size_t)s->m, k = (size_t)s->k, block = (size_t)s->block;
    s->a = allocate(m * k);
    s->pivot = calloc(block, sizeof *s->pivot);
    if (!s->pivot) failure("no memory");
    s->panel = allocate((m + 1) * block);
    s->upper = allocate(block * k);
    s->best = allocate(2 * (3 + 2 * block));
    s->out = allocate(block * k);
    s->in = allocate(block * k);
    MPI_Op_create(larger_pivot, 1, &s->larger);
}

static void system_free(system_of *s) {
    MPI_Op_free(&s->larger);
    free(s->a), free(s->pivot), free(s->panel), free(s->upper), free(s->best), free(s->out), free(s->in);
    process_grid_free(&s->at);
}

/* In [-1/2, 1/2), from the place in the whole matrix alone; column n is b. */
static double value_at(int row, int column) { return 0.5 * hash_symmetric(3000017 + (uint64_t)row, (uint64_t)column); }

static void fill(system_of *s) {
    for (int j = 0; j < s->k; j++) {
        int column = global_index(j, s->block, s->at.q, s->at.columns);
        for (int i = 0; i < s->m; i++)
            *element(s, i, j) = value_at(global_index(i, s->block, s->at.p, s->at.rows), column);
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

/* What all the exchanges of a panel come to: row k + i of the new order is old row from[i]; the place outer[i] below the
 * block gets old row to[i], which is always one of the block. So each row of the grid sends the block's row of the
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

/* On the row of the grid that has the diagonal block: the new rows of U that are already here, and rows that leave the
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

/* Exchanges the rows right of the panel, solves for the rows of U there, and updates what is below. */
static void update(system_of *s, int k, int width, int *memory) {
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

static void factor(system_of *s) {
    int *memory = calloc(3 * (size_t)s->block, sizeof *memory);
    if (!memory) failure("no memory");
    for (int k = 0; k < s->n; k += s->block) {
        int width = s->n - k < s->block ? s->n - k : s->block;
        if (s->at.q == owner(k, s->block, s->at.columns)) factor_panel(s, k, width);
        broadcast_panel(s, k, width);
        update(s, k, width, memory);
    }
    free(memory);
}

/* x from U x = y, where y is what became of column n; block after block from the last on. x is whole in the end. */
static void substitute(const system_of *s, double *x) {
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

/* |A x - b| / (eps n (|A| |x| + |b|)), largest norms, with the matrix made anew; what is not a number becomes infinite. */
static double residual(const system_of *s, const double *x) {
    double *row = allocate(2 * (size_t)s->m), norm_x = 0;
    double largest[3] = {0, 0, 0}, all[3]; /* of A x - b, of the sums of |A|'s rows, of b */
    for (int j = 0; j < s->k; j++) {
        int column = global_index(j, s->block, s->at.q, s->at.columns);
        for (int i = 0; i < s->m; i++) {
            double value = value_at(global_index(i, s->block, s->at.p, s->at.rows), column);
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

static void report(const system_of *s, const dense_options *o, const phase_clock *clock, double cpu_s, double error) {
    double n = s->n, gflops = (2.0 / 3.0 * n + 1.5) * n * n * o->iterations / clock->phase_s / 1e9;
    int right = error < RESIDUAL_MAX;
    if (o->json)
        printf("{\"program\":\"lu\",\"ranks\":%d,\"grid\":\"%dx%d\",\"n\":%d,\"block\":%d,\"iterations\":%d,"
               "\"main_phase_s\":%.6f,\"cpu_s\":%.6f,\"gflops\":%.4f,\"residual\":%.3g,\"right\":%s}\n",
               s->at.ranks, s->at.rows, s->at.columns, s->n, s->block, o->iterations, clock->phase_s, cpu_s, gflops,
               isinf(error) ? 1e300 : error, right ? "true" : "false");
    else
        printf("lu: n %d on %dx%d ranks, block %d, %d times\nmain phase %.3f s, CPU share %.3f, %.2f GFLOP/s\n"
               "result %s: residual %.3g, less than %g is right\n",
               s->n, s->at.rows, s->at.columns, s->block, o->iterations, clock->phase_s,
               cpu_s / (clock->phase_s * s->at.ranks), gflops, right ? "right" : "WRONG", error, RESIDUAL_MAX);
    fflush(stdout);
    if (!right) fprintf(stderr, "lu: the result is wrong: the residual is %.3g, not less than %g\n", error, RESIDUAL_MAX);
}

int main(int argc, char **argv) {
    dense_options options = {.n = 1000, .block = 60, .iterations = 1};
    system_of s;
    phase_clock clock = {0};
    program_start(argv[0]);
    dense_options_parse(&options, argc, argv, help, 4096);
    blas_single_threaded(argv);
    MPI_Init(&argc, &argv);
    system_make(&s, &options);
    double *x = allocate((size_t)s.n), worst = 0;
    for (int i = 0; i < options.iterations; i++) {
        fill(&s);
        phase_begin(&clock);
        factor(&s);
        substitute(&s, x);
        phase_end(&clock);
        if (i + 1 < options.iterations) continue;
        if (options.spoil) x[s.n - 1] += 0.001 * (1 + fabs(x[s.n - 1]));
        worst = residual(&s, x);
    }
    double cpu_s = phase_cpu_all_s(&clock);
    if (s.at.rank == 0) report(&s, &options, &clock, cpu_s, worst);
    free(x);
    system_free(&s);
    MPI_Finalize();
    return worst < RESIDUAL_MAX ? 0 : EXIT_WRONG;
}
