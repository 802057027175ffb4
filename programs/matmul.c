/* C <- A A + C on a grid of processes, by rank-k updates: the matrix multiply of Strazdins and Uhlmann (2004), section
 * 4.1. Rows and columns are dealt out in small blocks, so that each process of a column of the grid has its share of the
 * k rows of A that are broadcast next, and one of a row its share of the k columns: both broadcasts are all-gathers, and
 * a process receives N^2 (P - 1) / (P Q) words of rows and N^2 (Q - 1) / (P Q) of columns (their equation 8). */
#define _GNU_SOURCE
#include "matmul.h"
#include "mpi_memory.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Multiplies dense matrices with MPI and BLAS, C <- A A + C, and checks the result.\n\n"
    "Usage: mpirun -n RANKS matmul [OPTIONS]\n\n"
    "Options:\n"
    DENSE_HELP_SIZE
    "      --block K          columns and rows broadcast at a time, 1 to 4096 [default: 128]\n"
    "      --broadcast KIND   how they are broadcast along a row or column of the grid [default: ring]\n"
    "                           ring       ring-shift all-gather: shares go round, P - 1 steps\n"
    "                           tree       a binomial tree for each share\n"
    "                           pipelined  a chain for each share, in pieces of 64 KiB\n"
    "      --broadcasts-only  no multiplication: the cost of a word in the two broadcasts alone\n"
    "      --iterations R     multiply R times [default: 1]\n"
    "      --spoil            change one element of C before the check, to see the check fail\n"
    DENSE_HELP_REST
    "\nExamples:\n"
    "  mpirun -n 2 matmul --n 2000\n"
    "  cosched run -- mpirun -n 2 matmul --n 2000 --iterations 5 --grid 1x2 --json\n"
    "  mpirun -n 4 matmul --n 2000 --broadcasts-only     # beta_vertical, beta_horizontal for a machine file\n"
    "\nThe check: for a random vector x, |C x - R A (A x)| stays under eps n R |A| |A| |x| in every row\n"
    "(Freivalds); `residual` is the largest part of that bound that is used, and more than 1 is wrong.\n"
    "--broadcasts-only looks at the panels that came last instead.\n"
    DENSE_HELP_EXIT;

static void grid_make(grid *g, const dense_options *o) {
    process_grid_make(&g->at, "matmul", o->dims);
    int most = g->at.rows > g->at.columns ? g->at.rows : g->at.columns;
    if (most > o->n)
        all_ranks_usage_error(&g->at, "matmul: --n %d is too small for a grid of %dx%d", o->n, g->at.rows,
                              g->at.columns);
    process_grid_require_file(&g->at, "matmul", o->dump);
    g->n = o->n;
    g->k = o->block < o->n ? o->block : o->n;
    /* Each panel of k has the same share of each process, if k can be divided like that. */
    g->deal = g->k / most > 0 ? g->k / most : 1;
    g->m = owned(o->n, g->deal, g->at.p, g->at.rows);
    g->w = owned(o->n, g->deal, g->at.q, g->at.columns);
    double m = g->m, w = g->w, k = g->k;
    char what[32];
    snprintf(what, sizeof what, "--n %d", o->n);
    nodes_require_memory("matmul", what, sizeof(double) * (2 * m * w + 2 * k * (m + w) + 6.0 * o->n));
}

static void fill(const grid *g, double *a) {
    for (int j = 0; j < g->w; j++)
        for (int i = 0; i < g->m; i++) a[(size_t)j * (size_t)g->m + (size_t)i] = matmul_value(g, i, j);
}

/* What a broadcast along one dimension of the grid needs; `shares` has the share of each process one after the other. */
typedef struct {
    double *shares, *panel;
    int *counts, *offsets;
    double time_s;
} broadcast_of;

static void broadcast_make(broadcast_of *b, int parts, size_t words) {
    b->shares = allocate(words);
    b->panel = allocate(words);
    b->counts = calloc((size_t)parts, sizeof *b->counts);
    b->offsets = calloc((size_t)parts, sizeof *b->offsets);
    b->time_s = 0;
    if (!b->counts || !b->offsets) failure("no memory");
}

static void broadcast_free(broadcast_of *b) { free(b->shares), free(b->panel), free(b->counts), free(b->offsets); }

/* Computes the positions of the shares of the indices from `from` to `to`, each index being `length` words. */
static void shares_plan(const grid *g, broadcast_of *b, int parts, int from, int to, int length) {
    for (int i = 0, offset = 0; i < parts; i++) {
        b->counts[i] = (owned(to, g->deal, i, parts) - owned(from, g->deal, i, parts)) * length;
        b->offsets[i] = offset;
        offset += b->counts[i];
    }
}

static void broadcast_timed(const dense_options *o, broadcast_of *b, MPI_Comm comm) {
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
    broadcast_all(o->broadcast, b->shares, b->counts, b->offsets, comm);
    b->time_s += (double)(now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
}

/* Columns from..to of A for the rows of this process: horizontally. The panel has them in order. */
static void broadcast_columns(const grid *g, const dense_options *o, broadcast_of *b, const double *a, int from, int to) {
    size_t m = (size_t)g->m, own = (size_t)owned(from, g->deal, g->at.q, g->at.columns);
    shares_plan(g, b, g->at.columns, from, to, g->m);
    memcpy(b->shares + b->offsets[g->at.q], a + own * m, sizeof *a * (size_t)b->counts[g->at.q]);
    broadcast_timed(o, b, g->at.row);
    for (int q = 0; q < g->at.columns; q++) {
        int first = owned(from, g->deal, q, g->at.columns), last = owned(to, g->deal, q, g->at.columns);
        for (int j = first; j < last; j++) {
            int place = global_index(j, g->deal, q, g->at.columns) - from;
            memcpy(b->panel + (size_t)place * m, b->shares + (size_t)b->offsets[q] + (size_t)(j - first) * m,
                   sizeof *a * m);
        }
    }
}

/* Rows from..to of A for the columns of this process: vertically. */
static void broadcast_rows(const grid *g, const dense_options *o, broadcast_of *b, const double *a, int from, int to) {
    size_t m = (size_t)g->m, height = (size_t)(to - from);
    shares_plan(g, b, g->at.rows, from, to, g->w);
    int own_first = owned(from, g->deal, g->at.p, g->at.rows);
    size_t own_height = (size_t)(owned(to, g->deal, g->at.p, g->at.rows) - own_first);
    for (size_t j = 0; j < (size_t)g->w; j++)
        memcpy(b->shares + (size_t)b->offsets[g->at.p] + j * own_height, a + j * m + (size_t)own_first,
               sizeof *a * own_height);
    broadcast_timed(o, b, g->at.column);
    for (int p = 0; p < g->at.rows; p++) {
        int first = owned(from, g->deal, p, g->at.rows), last = owned(to, g->deal, p, g->at.rows);
        const double *share = b->shares + b->offsets[p];
        for (int i = first; i < last; i++) {
            int place = global_index(i, g->deal, p, g->at.rows) - from;
            for (size_t j = 0; j < (size_t)g->w; j++)
                b->panel[j * height + (size_t)place] = share[j * (size_t)(last - first) + (size_t)(i - first)];
        }
    }
}

/* One C <- A A + C, or its broadcasts. */
static void multiply(const grid *g, const dense_options *o, const double *a, double *c, broadcast_of *columns,
                     broadcast_of *rows) {
    for (int from = 0; from < g->n; from += g->k) {
        int to = from + g->k < g->n ? from + g->k : g->n;
        broadcast_rows(g, o, rows, a, from, to);
        broadcast_columns(g, o, columns, a, from, to);
        if (!o->broadcasts_only && g->m && g->w)
            cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, g->m, g->w, to - from, 1.0, columns->panel, g->m,
                        rows->panel, to - from, 1.0, c, g->m);
    }
}

/* Microseconds per word received; `others` is how many shares a process gets from other processes. */
static double us_per_word(const grid *g, const dense_options *o, const broadcast_of *b, int others) {
    double words = (double)g->n * g->n / g->at.ranks * others * o->iterations, mean_s;
    MPI_Allreduce(&b->time_s, &mean_s, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    mean_s /= g->at.ranks;
    return words > 0 ? mean_s * 1e6 / words : 0;
}

static void report(const grid *g, const dense_options *o, const phase_clock *clock, double cpu_s, const double beta_us[2],
                   double residual) {
    double main_phase_s = clock->phase_s, cpu_share = cpu_s / (main_phase_s * g->at.ranks);
    double flops = o->broadcasts_only ? 0 : 2.0 * o->n * o->n * (double)o->n * o->iterations;
    double gflop_s = flops / main_phase_s / 1e9;
    int right = residual <= 1;
    if (o->json)
        printf("{\"program\":\"matmul\",\"members\":%d,\"grid\":\"%dx%d\",\"n\":%d,\"block\":%d,\"broadcast\":\"%s\","
               "\"broadcasts_only\":%s,\"iterations\":%d,\"main_phase_s\":%.6f,\"cpu_s\":%.6f,\"gflop_s\":%.4f,"
               "\"vertical_us_per_word\":%.6f,\"horizontal_us_per_word\":%.6f,\"residual\":%.3g,\"check\":\"%s\"}\n",
               g->at.ranks, g->at.rows, g->at.columns, o->n, g->k, broadcast_name(o->broadcast),
               o->broadcasts_only ? "true" : "false", o->iterations, main_phase_s, cpu_s, gflop_s, beta_us[0],
               beta_us[1], isinf(residual) ? 1e300 : residual, right ? "ok" : "wrong");
    else {
        printf("matmul: n %d on %dx%d ranks, block %d, %s broadcast, %d times\n", o->n, g->at.rows, g->at.columns, g->k,
               broadcast_name(o->broadcast), o->iterations);
        printf("main phase %.3f s, CPU share %.3f, %.2f GFLOP/s\n", main_phase_s, cpu_share, gflop_s);
        printf("broadcasts with their waits: vertical %.4f us a word, horizontal %.4f us a word\n", beta_us[0],
               beta_us[1]);
        printf("result %s: error is %.2g of its bound\n", right ? "right" : "WRONG", residual);
    }
    fflush(stdout);
    if (!right) fprintf(stderr, "matmul: the result is wrong: |C x - R A (A x)| is %.3g times its bound\n", residual);
}

int main(int argc, char **argv) {
    dense_options options = {.n = 1000, .block = 128, .iterations = 1};
    grid g;
    program_start(argv[0]);
    dense_options_parse(&options, argc, argv, help, 1);
    blas_single_threaded(argv);
    MPI_Init(&argc, &argv);
    grid_make(&g, &options);
    size_t count = (size_t)g.m * (size_t)g.w;
    double *a = allocate(count), *c = allocate(count);
    broadcast_of columns, rows;
    broadcast_make(&columns, g.at.columns, (size_t)g.k * (size_t)g.m);
    broadcast_make(&rows, g.at.rows, (size_t)g.k * (size_t)g.w);
    fill(&g, a);
    phase_clock clock = {0};
    phase_begin(&clock);
    for (int i = 0; i < options.iterations; i++) multiply(&g, &options, a, c, &columns, &rows);
    phase_end(&clock);
    double cpu_s = phase_cpu_all_s(&clock);
    if (options.spoil && g.at.rank == g.at.ranks - 1) c[count - 1] += 0.001 * options.iterations;
    double residual = options.broadcasts_only ? matmul_check_panels(&g, columns.panel, rows.panel)
                                              : matmul_check(&g, options.iterations, a, c);
    double beta_us[2] = {us_per_word(&g, &options, &rows, g.at.rows - 1),
                         us_per_word(&g, &options, &columns, g.at.columns - 1)};
    if (g.at.rank == 0) report(&g, &options, &clock, cpu_s, beta_us, residual);
    if (options.dump) matmul_dump(&g, options.dump, c);
    free(a), free(c);
    broadcast_free(&columns), broadcast_free(&rows);
    process_grid_free(&g.at);
    MPI_Finalize();
    return residual <= 1 ? 0 : EXIT_WRONG;
}
