/* C <- A B + C on a grid of processes, by rank-k updates (SUMMA: van de Geijn and Watts, 1997), as the matrix multiply
 * of Strazdins and Uhlmann (2004). Matrices are cut into one block for each process; column-major storage. */
#define _GNU_SOURCE
#include "dense.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Multiplies dense matrices with MPI and BLAS, C <- A B + C, and checks the result.\n\n"
    "Usage: mpirun -n RANKS matmul [OPTIONS]\n\n"
    "Options:\n"
    "      --n N              order of the matrices [default: 1000]\n"
    "      --grid PxQ         processes down and across; P times Q ranks [default: nearly square]\n"
    "      --block K          columns and rows exchanged at a time [default: 128]\n"
    "      --iterations R     multiply R times [default: 1]\n"
    "      --spoil            change one element of C before the check, to see the check fail\n"
    "      --json             print one line of JSON\n"
    "  -h, --help             print this\n"
    "\nExamples:\n"
    "  mpirun -n 2 matmul --n 2000\n"
    "  cosched run -- mpirun -n 2 matmul --n 2000 --iterations 5 --grid 1x2 --json\n"
    "\nThe check: for a random vector x, |C x - R A (B x)| stays under eps n R |A| |B| |x| in every row.\n"
    "BLAS uses one thread in each rank unless OPENBLAS_NUM_THREADS is set.\n"
    "Exit codes: 0 done, 1 a wrong result or a failure of the system, 2 a wrong option.\n";

typedef struct {
    process_grid at;
    int m_begin, m, n_begin, k; /* its block of C: rows m_begin.., columns n_begin.. (m by k) */
} grid;

/* The first index of part `i` when n is cut into `parts`. */
static int part_begin(int n, int parts, int i) { return (int)((long long)n * i / parts); }

static int part_of(int n, int parts, int index) {
    int i = (int)((long long)index * parts / n);
    while (part_begin(n, parts, i + 1) <= index) i++;
    while (part_begin(n, parts, i) > index) i--;
    return i;
}

static void grid_make(grid *g, const dense_options *o) {
    process_grid_make(&g->at, "matmul", o->dims);
    if (g->at.rows > o->n || g->at.columns > o->n)
        all_ranks_usage_error(&g->at, "matmul: --n %d is too small for a grid of %dx%d", o->n, g->at.rows,
                              g->at.columns);
    g->m_begin = part_begin(o->n, g->at.rows, g->at.p);
    g->m = part_begin(o->n, g->at.rows, g->at.p + 1) - g->m_begin;
    g->n_begin = part_begin(o->n, g->at.columns, g->at.q);
    g->k = part_begin(o->n, g->at.columns, g->at.q + 1) - g->n_begin;
}

/* Values in [-1/2, 1/2) that depend only on the place in the whole matrix. */
static void fill(double *block, const grid *g, uint64_t seed) {
    for (int j = 0; j < g->k; j++)
        for (int i = 0; i < g->m; i++)
            block[(size_t)j * (size_t)g->m + (size_t)i] =
                0.5 * hash_symmetric(seed + (uint64_t)(g->m_begin + i), (uint64_t)(g->n_begin + j));
}

/* One C <- A B + C. A panel's owners in a row of the grid send columns of A, those in a column send rows of B. */
static void multiply(const grid *g, int n, int block, const double *a, const double *b, double *c, double *a_panel,
                     double *b_panel) {
    for (int k = 0, width; k < n; k += width) {
        int q = part_of(n, g->at.columns, k), p = part_of(n, g->at.rows, k);
        int a_end = part_begin(n, g->at.columns, q + 1), b_end = part_begin(n, g->at.rows, p + 1);
        width = block;
        if (k + width > a_end) width = a_end - k;
        if (k + width > b_end) width = b_end - k;
        if (g->at.q == q)
            memcpy(a_panel, a + (size_t)(k - g->n_begin) * (size_t)g->m, sizeof *a * (size_t)width * (size_t)g->m);
        if (g->at.p == p)
            for (int j = 0; j < g->k; j++)
                memcpy(b_panel + (size_t)j * (size_t)width, b + (size_t)j * (size_t)g->m + (k - g->m_begin),
                       sizeof *b * (size_t)width);
        MPI_Bcast(a_panel, width * g->m, MPI_DOUBLE, q, g->at.row);
        MPI_Bcast(b_panel, width * g->k, MPI_DOUBLE, p, g->at.column);
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, g->m, g->k, width, 1.0, a_panel, g->m, b_panel, width,
                    1.0, c, g->m);
    }
}

/* y <- M x for the rows of this process; with `magnitudes`, |M| |x|. x is whole, y as long as the block is high. */
static void block_times_vector(const grid *g, const double *block, const double *x, int magnitudes, double *y) {
    double *part = allocate((size_t)g->m);
    for (int j = 0; j < g->k; j++) {
        double factor = x[g->n_begin + j];
        for (int i = 0; i < g->m; i++) {
            double term = block[(size_t)j * (size_t)g->m + (size_t)i] * factor;
            part[i] += magnitudes ? fabs(term) : term;
        }
    }
    MPI_Allreduce(part, y, g->m, MPI_DOUBLE, MPI_SUM, g->at.row);
    free(part);
}

/* The parts of a vector that the rows of the grid hold, put together everywhere. */
static void gather(const grid *g, int n, const double *part, double *whole) {
    int *counts = calloc((size_t)g->at.rows, sizeof *counts), *begins = calloc((size_t)g->at.rows, sizeof *begins);
    if (!counts || !begins) failure("no memory");
    for (int p = 0; p < g->at.rows; p++) {
        begins[p] = part_begin(n, g->at.rows, p);
        counts[p] = part_begin(n, g->at.rows, p + 1) - begins[p];
    }
    MPI_Allgatherv(part, g->m, MPI_DOUBLE, whole, counts, begins, MPI_DOUBLE, g->at.column);
    free(counts);
    free(begins);
}

/* The largest |C x - R A (B x)| over its bound, of all rows; NaN is worse than any number. */
static double check(const grid *g, const dense_options *o, const double *a, const double *b, const double *c) {
    size_t n = (size_t)o->n, m = (size_t)g->m;
    double *x = allocate(n), *bx = allocate(n), *part = allocate(m), *cx = allocate(m), *abx = allocate(m);
    double *bound = allocate(m), worst = 0, worst_all;
    for (size_t i = 0; i < n; i++) x[i] = hash_symmetric(77, i);
    block_times_vector(g, c, x, 0, cx);
    block_times_vector(g, b, x, 0, part);
    gather(g, o->n, part, bx);
    block_times_vector(g, a, bx, 0, abx);
    block_times_vector(g, b, x, 1, part);
    gather(g, o->n, part, bx);
    block_times_vector(g, a, bx, 1, bound);
    for (size_t i = 0; i < m; i++) {
        double ratio = fabs(cx[i] - o->iterations * abx[i]) / (DBL_EPSILON * o->n * o->iterations * bound[i]);
        if (!(ratio <= worst)) worst = isnan(ratio) ? INFINITY : ratio;
    }
    MPI_Allreduce(&worst, &worst_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    free(x), free(bx), free(part), free(cx), free(abx), free(bound);
    return worst_all;
}

static void report(const grid *g, const dense_options *o, const phase_clock *clock, double cpu_s,
                   double error, int right) {
    double main_phase_s = clock->phase_s, cpu_share = cpu_s / (main_phase_s * g->at.ranks);
    double gflops = 2.0 * o->n * o->n * (double)o->n * o->iterations / main_phase_s / 1e9;
    if (o->json)
        printf("{\"program\":\"matmul\",\"ranks\":%d,\"grid\":\"%dx%d\",\"n\":%d,\"block\":%d,\"iterations\":%d,"
               "\"main_phase_s\":%.6f,\"cpu_s\":%.6f,\"gflops\":%.4f,\"error_over_bound\":%.3g,\"right\":%s}\n",
               g->at.ranks, g->at.rows, g->at.columns, o->n, o->block, o->iterations, main_phase_s, cpu_s, gflops,
               isinf(error) ? 1e300 : error, right ? "true" : "false");
    else
        printf("matmul: n %d on %dx%d ranks, block %d, %d times\nmain phase %.3f s, CPU share %.3f, %.2f GFLOP/s\n"
               "result %s: error is %.2g of its bound\n",
               o->n, g->at.rows, g->at.columns, o->block, o->iterations, main_phase_s, cpu_share, gflops,
               right ? "right" : "WRONG",
               error);
    fflush(stdout);
    if (!right) fprintf(stderr, "matmul: the result is wrong: |C x - R A (B x)| is %.3g times its bound\n", error);
}

int main(int argc, char **argv) {
    dense_options options = {.n = 1000, .block = 128, .iterations = 1};
    grid g;
    program_start(argv[0]);
    dense_options_parse(&options, argc, argv, help, 100000);
    blas_single_threaded(argv);
    MPI_Init(&argc, &argv);
    grid_make(&g, &options);
    size_t count = (size_t)g.m * (size_t)g.k, width = (size_t)(options.block < options.n ? options.block : options.n);
    double *a = allocate(count), *b = allocate(count), *c = allocate(count);
    double *a_panel = allocate(width * (size_t)g.m), *b_panel = allocate(width * (size_t)g.k);
    fill(a, &g, 1000003);
    fill(b, &g, 2000003);
    phase_clock clock = {0};
    phase_begin(&clock);
    for (int i = 0; i < options.iterations; i++) multiply(&g, options.n, options.block, a, b, c, a_panel, b_panel);
    phase_end(&clock);
    double cpu_s = phase_cpu_all_s(&clock);
    if (options.spoil && g.at.rank == g.at.ranks - 1) c[count - 1] += 0.001 * options.iterations;
    double error = check(&g, &options, a, b, c);
    int right = error <= 1.0;
    if (g.at.rank == 0) report(&g, &options, &clock, cpu_s, error, right);
    free(a), free(b), free(c), free(a_panel), free(b_panel);
    process_grid_free(&g.at);
    MPI_Finalize();
    return right ? 0 : EXIT_WRONG;
}
