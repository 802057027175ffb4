/* Solves A x = b by LU with partial pivoting, as High Performance Linpack does: right-looking, the matrix with b as an
 * extra column dealt out in blocks over a grid of processes, columns of the panel reduced one at a time, and the residual
 * of HPL as the check. It is the Linpack of Strazdins and Uhlmann (2004), whose block is 60. */
#define _GNU_SOURCE
#include "lu.h"
#include "mpi_memory.h"

#include <math.h>
#include <stdlib.h>

static const char help[] =
    "Solves a dense system of equations with MPI and BLAS, A x = b, and checks the result.\n\n"
    "Usage: mpirun -n RANKS lu [OPTIONS]\n\n"
    "Options:\n"
    DENSE_HELP_SIZE
    "      --block K          rows and columns of a block: dealt out and factored together, 1 to 4096\n"
    "                         [default: 60]\n"
    "      --iterations R     solve R times [default: 1]\n"
    "      --spoil            change one element of x before the check, to see the check fail\n"
    DENSE_HELP_REST
    "\nExamples:\n"
    "  mpirun -n 2 lu --n 2000\n"
    "  cosched run -- mpirun -n 2 lu --n 2000 --iterations 5 --grid 1x2 --json\n"
    "  mpirun -n 4 lu --n 500 --dump x.txt             # the solution, a number a line\n"
    "\nThe check: |A x - b| / (eps n (|A| |x| + |b|)) in the largest norms stays under 16.\n"
    DENSE_HELP_EXIT;

#define RESIDUAL_MAX 16.0

static void system_make(system_of *s, const dense_options *o) {
    process_grid_make(&s->at, "lu", o->dims);
    process_grid_require_file(&s->at, "lu", o->dump);
    s->n = o->n;
    s->block = o->block < o->n ? o->block : o->n;
    s->m = rows_before(s, s->n);
    s->k = columns_before(s, s->n + 1);
    size_t m = (size_t)s->m, k = (size_t)s->k, block = (size_t)s->block;
    double words = (double)(m * k) + (double)((m + 1) * block + 3 * block * k) + 3.0 * s->n;
    char what[32];
    snprintf(what, sizeof what, "--n %d", s->n);
    nodes_require_memory("lu", what, sizeof(double) * words);
    s->a = allocate(m * k);
    s->pivot = calloc(block, sizeof *s->pivot);
    if (!s->pivot) failure("no memory");
    s->panel = allocate((m + 1) * block);
    s->upper = allocate(block * k);
    s->best = allocate(2 * (3 + 2 * block));
    s->out = allocate(block * k);
    s->in = allocate(block * k);
    MPI_Op_create(lu_larger_pivot, 1, &s->larger);
}

static void system_free(system_of *s) {
    MPI_Op_free(&s->larger);
    free(s->a), free(s->pivot), free(s->panel), free(s->upper), free(s->best), free(s->out), free(s->in);
    process_grid_free(&s->at);
}

static void fill(system_of *s) {
    for (int j = 0; j < s->k; j++) {
        int column = global_index(j, s->block, s->at.q, s->at.columns);
        for (int i = 0; i < s->m; i++)
            *element(s, i, j) = lu_value(global_index(i, s->block, s->at.p, s->at.rows), column);
    }
}

static void factor(system_of *s) {
    int *memory = calloc(3 * (size_t)s->block, sizeof *memory);
    if (!memory) failure("no memory");
    for (int k = 0; k < s->n; k += s->block) {
        int width = s->n - k < s->block ? s->n - k : s->block;
        lu_panel(s, k, width);
        lu_update(s, k, width, memory);
    }
    free(memory);
}

static void report(const system_of *s, const dense_options *o, const phase_clock *clock, double cpu_s, double error) {
    double n = s->n, gflops = (2.0 / 3.0 * n + 1.5) * n * n * o->iterations / clock->phase_s / 1e9;
    int right = error < RESIDUAL_MAX;
    if (o->json)
        printf("{\"program\":\"lu\",\"members\":%d,\"grid\":\"%dx%d\",\"n\":%d,\"block\":%d,\"iterations\":%d,"
               "\"main_phase_s\":%.6f,\"cpu_s\":%.6f,\"gflop_s\":%.4f,\"residual\":%.3g,\"check\":\"%s\"}\n",
               s->at.ranks, s->at.rows, s->at.columns, s->n, s->block, o->iterations, clock->phase_s, cpu_s, gflops,
               isinf(error) ? 1e300 : error, right ? "ok" : "wrong");
    else
        printf("lu: n %d on %dx%d ranks, block %d, %d times\nmain phase %.3f s, CPU share %.3f, %.2f GFLOP/s\n"
               "result %s: residual %.3g, less than %g is right\n",
               s->n, s->at.rows, s->at.columns, s->block, o->iterations, clock->phase_s,
               cpu_s / (clock->phase_s * s->at.ranks), gflops, right ? "right" : "WRONG", error, RESIDUAL_MAX);
    fflush(stdout);
    if (!right) fprintf(stderr, "lu: the result is wrong: the residual is %.3g, not less than %g\n", error, RESIDUAL_MAX);
}

static void dump(const dense_options *o, const system_of *s, const double *x) {
    FILE *file = dump_open(o->dump, s->at.rank);
    if (!file) return;
    for (int i = 0; i < s->n; i++) dump_row(file, x + i, 1);
    dump_close(file, o->dump);
}

int main(int argc, char **argv) {
    dense_options options = {.n = 1000, .block = 60, .iterations = 1};
    system_of s;
    phase_clock clock = {0};
    program_start(argv[0]);
    dense_options_parse(&options, argc, argv, help, 0);
    blas_single_threaded(argv);
    MPI_Init(&argc, &argv);
    system_make(&s, &options);
    double *x = allocate((size_t)s.n), worst = 0;
    for (int i = 0; i < options.iterations; i++) {
        fill(&s);
        phase_begin(&clock);
        factor(&s);
        lu_substitute(&s, x);
        phase_end(&clock);
        if (i + 1 < options.iterations) continue;
        if (options.spoil) x[s.n - 1] += 0.001 * (1 + fabs(x[s.n - 1]));
        worst = lu_residual(&s, x);
    }
    double cpu_s = phase_cpu_all_s(&clock);
    if (s.at.rank == 0) report(&s, &options, &clock, cpu_s, worst);
    if (options.dump) dump(&options, &s, x);
    free(x);
    system_free(&s);
    MPI_Finalize();
    return worst < RESIDUAL_MAX ? 0 : EXIT_WRONG;
}
