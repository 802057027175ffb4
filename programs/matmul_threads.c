/* C <- A B + C by threads that meet after every block of the inner index: the second benchmark of LLNL's gang scheduler
 * paper (Jette, 1998, table 4). Plain loops and no BLAS. */
#define _GNU_SOURCE
#include "team.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const char help[] =
    "Multiplies dense matrices with OpenMP, C <- A B + C, and checks the result.\n"
    "The threads meet after each block of columns of A and spin until all are there.\n\n"
    "Usage: matmul-threads [OPTIONS]\n\n"
    "Options:\n"
    "      --n N              order of the matrices, 1 to 100000 [default: 600]\n"
    "      --block K          columns of A and rows of B between two meetings [default: 128]\n"
    TEAM_HELP_OPTIONS
    "\nExamples:\n"
    "  matmul-threads --n 1000 --threads 2\n"
    "  cosched run -- matmul-threads --n 1000 --threads 2 --block 1000 --json     # seldom together\n"
    TEAM_HELP_MEASURES
    "\nThe check: for a random vector x, |C x - R A (B x)| stays under eps n R |A| |B| |x| in every row\n"
    "(Freivalds); `residual` is the largest part of that bound that is used, and 1 or more is wrong.\n"
    TEAM_HELP_EXIT;

/* Square, row-major. */
typedef struct {
    team team;
    int n, block;
    double *a, *b, *c;
} product;

static void multiply(void *context, unsigned self) {
    product *p = context;
    size_t n = (size_t)p->n, block = (size_t)p->block;
    size_t first = n * self / p->team.size, last = n * (self + 1) / p->team.size;
    for (size_t from = 0; from < n; from += block) {
        size_t to = from + block < n ? from + block : n;
        for (size_t i = first; i < last; i++)
            for (size_t l = from; l < to; l++) {
                double factor = p->a[i * n + l], *row = p->c + i * n;
                const double *other = p->b + l * n;
                for (size_t j = 0; j < n; j++) row[j] += factor * other[j];
            }
        spin_meet(&p->team.meeting);
    }
}

/* y <- M x; with `magnitudes`, |M| |x|. */
static void times_vector(size_t n, const double *matrix, const double *x, int magnitudes, double *y) {
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < n; j++) {
            double term = matrix[i * n + j] * x[j];
            sum += magnitudes ? fabs(term) : term;
        }
        y[i] = sum;
    }
}

/* The largest |C x - R A (B x)| relative to its bound; infinite if any number is NaN. */
static double residual(const product *p, int iterations) {
    size_t n = (size_t)p->n;
    double *memory = team_allocate(5 * n), *x = memory, *bx = x + n, *abx = bx + n, *cx = abx + n, *bound = cx + n;
    double worst = 0;
    for (size_t i = 0; i < n; i++) x[i] = hash_symmetric(77, i);
    times_vector(n, p->c, x, 0, cx);
    times_vector(n, p->b, x, 0, bx);
    times_vector(n, p->a, bx, 0, abx);
    times_vector(n, p->b, x, 1, bx);
    times_vector(n, p->a, bx, 1, bound);
    for (size_t i = 0; i < n; i++) {
        double ratio = fabs(cx[i] - iterations * abx[i]) / (DBL_EPSILON * p->n * iterations * bound[i]);
        if (!(ratio <= worst)) worst = isnan(ratio) ? INFINITY : ratio;
    }
    free(memory);
    return worst;
}

static double words(const team_options *o) { return 3.0 * o->n * o->n + 5.0 * o->n; }

int main(int argc, char **argv) {
    team_options options = {.n = 600, .block = 128, .iterations = 1};
    program_start(argv[0]);
    team_options_parse(&options, argc, argv, help, words);
    size_t count = (size_t)options.n * (size_t)options.n;
    product p = {.team = {.size = options.threads}, .n = options.n, .block = options.block};
    p.a = team_allocate(count), p.b = team_allocate(count), p.c = team_allocate(count);
    for (size_t i = 0; i < count; i++) {
        p.a[i] = 0.5 * hash_symmetric(5000011, i);
        p.b[i] = 0.5 * hash_symmetric(6000011, i);
        p.c[i] = 0; /* written, so that no page fault falls into the main phase */
    }
    for (int i = 0; i < options.iterations; i++) team_run(&p.team, multiply, &p);
    if (options.spoil) p.c[count - 1] += 0.001 * options.iterations;
    double flops = 2.0 * options.n * (double)count * options.iterations;
    int code = team_report("matmul-threads", &options, &p.team, flops, residual(&p, options.iterations), 1.0);
    free(p.a), free(p.b), free(p.c);
    return code;
}
