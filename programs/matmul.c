/* C <- A B + C on a grid of processes, by rank-k updates (SUMMA: van de Geijn and Watts, 1997), as the matrix multiply
 * of Strazdins and Uhlmann (2004). Matrices are cut into one block for each process; column-major storage. */
#define _GNU_SOURCE
#include "common.h"

#include <cblas.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    int n, rows, columns, block, iterations, spoil, json;
} matmul_options;

typedef struct {
    int rank, ranks, p, q;      /* this process is (p, q) in the grid */
    int rows, columns;          /* of the grid */
    MPI_Comm row, column;       /* those of the same p; those of the same q */
    int m_begin, m, n_begin, k; /* its block of C: rows m_begin.., columns n_begin.. (m by k) */
} grid;

static double *allocate(size_t count) {
    double *memory = calloc(count ? count : 1, sizeof *memory);
    if (!memory) failure("no memory for %zu numbers", count);
    return memory;
}

/* The first index of part `i` when n is cut into `parts`. */
static int part_begin(int n, int parts, int i) { return (int)((long long)n * i / parts); }

static int part_of(int n, int parts, int index) {
    int i = (int)((long long)index * parts / n);
    while (part_begin(n, parts, i + 1) <= index) i++;
    while (part_begin(n, parts, i) > index) i--;
    return i;
}

static void parse_grid(matmul_options *o, const char *text) {
    char end;
    if (sscanf(text, "%dx%d%c", &o->rows, &o->columns, &end) != 2 || o->rows < 1 || o->columns < 1)
        usage_error("--grid: '%s' is not of the form PxQ, such as 2x1", text);
}

static void parse_options(matmul_options *o, int argc, char **argv) {
    enum { N = 256, GRID, BLOCK, ITERATIONS, SPOIL, JSON };
    static const struct option long_options[] = {
        {"n", required_argument, NULL, N},         {"grid", required_argument, NULL, GRID},
        {"block", required_argument, NULL, BLOCK}, {"iterations", required_argument, NULL, ITERATIONS},
        {"spoil", no_argument, NULL, SPOIL},       {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    *o = (matmul_options){.n = 1000, .block = 128, .iterations = 1};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        switch (option) {
        case N: o->n = (int)parse_count("--n", optarg, 1, 100000); break;
        case GRID: parse_grid(o, optarg); break;
        case BLOCK: o->block = (int)parse_count("--block", optarg, 1, 100000); break;
        case ITERATIONS: o->iterations = (int)parse_count("--iterations", optarg, 1, 1000000); break;
        case SPOIL: o->spoil = 1; break;
        case JSON: o->json = 1; break;
        case 'h': print_help(help);
        default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
}

static void grid_make(grid *g, const matmul_options *o) {
    MPI_Comm_rank(MPI_COMM_WORLD, &g->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g->ranks);
    int dims[2] = {o->rows, o->columns};
    if (!o->rows) MPI_Dims_create(g->ranks, 2, dims);
    if (dims[0] * dims[1] != g->ranks || dims[0] > o->n || dims[1] > o->n) {
        int told = g->rank == 0;
        if (told && dims[0] * dims[1] != g->ranks)
            fprintf(stderr, "matmul: --grid %dx%d needs %d ranks, and mpirun started %d\n", dims[0], dims[1],
                    dims[0] * dims[1], g->ranks);
        else if (told)
            fprintf(stderr, "matmul: --n %d is too small for a grid of %dx%d\n", o->n, dims[0], dims[1]);
        MPI_Finalize();
        exit(EXIT_USAGE);
    }
    g->rows = dims[0];
    g->columns = dims[1];
    g->p = g->rank / g->columns;
    g->q = g->rank % g->columns;
    MPI_Comm_split(MPI_COMM_WORLD, g->p, g->q, &g->row);
    MPI_Comm_split(MPI_COMM_WORLD, g->q, g->p, &g->column);
    g->m_begin = part_begin(o->n, g->rows, g->p);
    g->m = part_begin(o->n, g->rows, g->p + 1) - g->m_begin;
    g->n_begin = part_begin(o->n, g->columns, g->q);
    g->k = part_begin(o->n, g->columns, g->q + 1) - g->n_begin;
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
        int q = part_of(n, g->columns, k), p = part_of(n, g->rows, k);
        int a_end = part_begin(n, g->columns, q + 1), b_end = part_begin(n, g->rows, p + 1);
        width = block;
        if (k + width > a_end) width = a_end - k;
        if (k + width > b_end) width = b_end - k;
        if (g->q == q)
            memcpy(a_panel, a + (size_t)(k - g->n_begin) * (size_t)g->m, sizeof *a * (size_t)width * (size_t)g->m);
        if (g->p == p)
            for (int j = 0; j < g->k; j++)
                memcpy(b_panel + (size_t)j * (size_t)width, b + (size_t)j * (size_t)g->m + (k - g->m_begin),
                       sizeof *b * (size_t)width);
        MPI_Bcast(a_panel, width * g->m, MPI_DOUBLE, q, g->row);
        MPI_Bcast(b_panel, width * g->k, MPI_DOUBLE, p, g->column);
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
    MPI_Allreduce(part, y, g->m, MPI_DOUBLE, MPI_SUM, g->row);
    free(part);
}

/* The parts of a vector that the rows of the grid hold, put together everywhere. */
static void gather(const grid *g, int n, const double *part, double *whole) {
    int *counts = calloc((size_t)g->rows, sizeof *counts), *begins = calloc((size_t)g->rows, sizeof *begins);
    if (!counts || !begins) failure("no memory");
    for (int p = 0; p < g->rows; p++) {
        begins[p] = part_begin(n, g->rows, p);
        counts[p] = part_begin(n, g->rows, p + 1) - begins[p];
    }
    MPI_Allgatherv(part, g->m, MPI_DOUBLE, whole, counts, begins, MPI_DOUBLE, g->column);
    free(counts);
    free(begins);
}

/* The largest |C x - R A (B x)| over its bound, of all rows; NaN is worse than any number. */
static double check(const grid *g, const matmul_options *o, const double *a, const double *b, const double *c) {
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

static void report(const grid *g, const matmul_options *o, double main_phase_s, double error, int right) {
    double gflops = 2.0 * o->n * o->n * (double)o->n * o->iterations / main_phase_s / 1e9;
    if (o->json)
        printf("{\"program\":\"matmul\",\"ranks\":%d,\"grid\":\"%dx%d\",\"n\":%d,\"block\":%d,\"iterations\":%d,"
               "\"main_phase_s\":%.6f,\"gflops\":%.4f,\"error_over_bound\":%.3g,\"right\":%s}\n",
               g->ranks, g->rows, g->columns, o->n, o->block, o->iterations, main_phase_s, gflops,
               isinf(error) ? 1e300 : error, right ? "true" : "false");
    else
        printf("matmul: n %d on %dx%d ranks, block %d, %d times\nmain phase %.3f s, %.2f GFLOP/s\n"
               "result %s: error is %.2g of its bound\n",
               o->n, g->rows, g->columns, o->block, o->iterations, main_phase_s, gflops, right ? "right" : "WRONG",
               error);
    fflush(stdout);
    if (!right) fprintf(stderr, "matmul: the result is wrong: |C x - R A (B x)| is %.3g times its bound\n", error);
}

/* OpenBLAS reads its environment when it is loaded, before main: start anew with one thread. */
static void blas_single_threaded(char **argv) {
    if (getenv("OPENBLAS_NUM_THREADS")) return;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
    failure("cannot start anew with OPENBLAS_NUM_THREADS=1");
}

int main(int argc, char **argv) {
    matmul_options options;
    grid g;
    program_start(argv[0]);
    parse_options(&options, argc, argv);
    blas_single_threaded(argv);
    MPI_Init(&argc, &argv);
    grid_make(&g, &options);
    size_t count = (size_t)g.m * (size_t)g.k, width = (size_t)(options.block < options.n ? options.block : options.n);
    double *a = allocate(count), *b = allocate(count), *c = allocate(count);
    double *a_panel = allocate(width * (size_t)g.m), *b_panel = allocate(width * (size_t)g.k);
    fill(a, &g, 1000003);
    fill(b, &g, 2000003);
    MPI_Barrier(MPI_COMM_WORLD);
    double start_s = MPI_Wtime();
    for (int i = 0; i < options.iterations; i++) multiply(&g, options.n, options.block, a, b, c, a_panel, b_panel);
    MPI_Barrier(MPI_COMM_WORLD);
    double main_phase_s = MPI_Wtime() - start_s;
    if (options.spoil && g.rank == g.ranks - 1) c[count - 1] += 0.001 * options.iterations;
    double error = check(&g, &options, a, b, c);
    int right = error <= 1.0;
    if (g.rank == 0) report(&g, &options, main_phase_s, error, right);
    free(a), free(b), free(c), free(a_panel), free(b_panel);
    MPI_Comm_free(&g.row);
    MPI_Comm_free(&g.column);
    MPI_Finalize();
    return right ? 0 : EXIT_WRONG;
}
