/* Gaussian elimination with partial pivoting by threads that meet after every column: the first benchmark of LLNL's gang
 * scheduler paper (Jette, 1998, table 3). Plain loops and no BLAS, so that the effect of the caches is visible. */
#define _GNU_SOURCE
#include "team.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Solves a dense system of equations by Gaussian elimination with OpenMP, and checks the result.\n"
    "The threads meet after each column and spin until all are there.\n\n"
    "Usage: gauss [OPTIONS]\n\n"
    "Options:\n"
    "      --n N              order of the matrix, 1 to 100000 [default: 1000]\n"
    TEAM_HELP_OPTIONS
    "\nExamples:\n"
    "  gauss --n 1500 --threads 2\n"
    "  cosched run -- gauss --n 1500 --threads 2 --iterations 5 --json\n"
    TEAM_HELP_MEASURES
    "\nThe check: |A x - b| / (eps n (|A| |x| + |b|)) in the largest norms stays under 16.\n"
    TEAM_HELP_EXIT;

#define RESIDUAL_MAX 16.0

/* A thread's best row for the next pivot; two of them, because a thread may be a column ahead of another. */
typedef struct {
    _Alignas(64) double magnitude[2];
    int row[2];
} candidate;

typedef struct {
    team team;
    int n;
    double *a; /* n rows of n + 1; the last column is b */
    double *x;
    candidate *best;
    int *order; /* of the rows, in the end */
    int singular;
} system_of;

/* In [-1/2, 1/2); column n is b. */
static double value_at(int row, int column) { return 0.5 * hash_symmetric(4000037 + (uint64_t)row, (uint64_t)column); }

static void fill(system_of *s) {
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j <= s->n; j++) s->a[(size_t)i * (size_t)(s->n + 1) + (size_t)j] = value_at(i, j);
}

static double *row_of(const system_of *s, const int *order, int place) {
    return s->a + (size_t)order[place] * (size_t)(s->n + 1);
}

/* Finds the largest element of column `column` in this thread's places from `from` on. Place i belongs to thread i mod T. */
static void look_for_pivot(system_of *s, const int *order, int column, int from, unsigned self) {
    int threads = (int)s->team.size, first = from + (((int)self - from) % threads + threads) % threads;
    double magnitude = -1;
    int best = s->n;
    for (int i = first; i < s->n; i += threads) {
        double here = fabs(row_of(s, order, i)[column]);
        if (here > magnitude) magnitude = here, best = i;
    }
    s->best[self].magnitude[column % 2] = magnitude;
    s->best[self].row[column % 2] = best;
}

/* The place of the pivot of all threads; among equals the upper one. */
static int pivot_place(const system_of *s, int column, double *magnitude) {
    int place = s->n;
    *magnitude = -1;
    for (unsigned t = 0; t < s->team.size; t++) {
        double here = s->best[t].magnitude[column % 2];
        int row = s->best[t].row[column % 2];
        if (here > *magnitude || (here == *magnitude && row < place)) *magnitude = here, place = row;
    }
    return place;
}

/* Each thread keeps its own copy of the row order, so that one meeting per column is enough. */
static void eliminate(void *context, unsigned self) {
    system_of *s = context;
    int n = s->n, threads = (int)s->team.size, *order = calloc((size_t)n, sizeof *order);
    if (!order) failure("no memory");
    for (int i = 0; i < n; i++) order[i] = i;
    look_for_pivot(s, order, 0, 0, self);
    for (int k = 0; k < n; k++) {
        spin_meet(&s->team.meeting);
        double magnitude;
        int place = pivot_place(s, k, &magnitude);
        if (!(magnitude > 0)) {
            if (self == 0) s->singular = 1;
            break; /* all see the same */
        }
        int exchanged = order[k];
        order[k] = order[place], order[place] = exchanged;
        const double *pivot = row_of(s, order, k);
        int first = k + 1 + (((int)self - (k + 1)) % threads + threads) % threads;
        for (int i = first; i < n; i += threads) {
            double *row = row_of(s, order, i), factor = row[k] / pivot[k];
            for (int j = k + 1; j <= n; j++) row[j] -= factor * pivot[j];
        }
        if (k + 1 < n) look_for_pivot(s, order, k + 1, k + 1, self);
    }
    if (self == 0) memcpy(s->order, order, (size_t)n * sizeof *order);
    free(order);
}

/* By one thread: n^2 of the 2/3 n^3 operations. */
static void substitute(system_of *s) {
    for (int i = s->n - 1; i >= 0; i--) {
        const double *row = row_of(s, s->order, i);
        double sum = row[s->n];
        for (int j = i + 1; j < s->n; j++) sum -= row[j] * s->x[j];
        s->x[i] = sum / row[i];
    }
}

static void solve(void *context, unsigned self) {
    system_of *s = context;
    eliminate(s, self);
    spin_meet(&s->team.meeting);
    if (self == 0 && !s->singular) substitute(s);
}

/* As in HPL, with the matrix generated again; infinite if any number is NaN. */
static double residual(const system_of *s) {
    double norm_r = 0, norm_a = 0, norm_b = 0, norm_x = 0;
    for (int i = 0; i < s->n; i++) {
        double b = value_at(i, s->n), r = -b, sum = 0;
        for (int j = 0; j < s->n; j++) {
            double value = value_at(i, j);
            r += value * s->x[j];
            sum += fabs(value);
        }
        if (!(fabs(r) <= norm_r)) norm_r = isnan(r) ? INFINITY : fabs(r);
        norm_a = fmax(norm_a, sum), norm_b = fmax(norm_b, fabs(b)), norm_x = fmax(norm_x, fabs(s->x[i]));
    }
    double scaled = norm_r / (DBL_EPSILON / 2 * s->n * (norm_a * norm_x + norm_b));
    return isfinite(scaled) ? scaled : INFINITY;
}

/* The matrix, a copy of the order of its rows for each thread and one more, the solution. */
static double words(const team_options *o) { return (double)o->n * (o->n + 1) + o->n * (1.0 + 0.5 * (o->threads + 1)); }

int main(int argc, char **argv) {
    team_options options = {.n = 1000, .iterations = 1};
    program_start(argv[0]);
    team_options_parse(&options, argc, argv, help, words);
    size_t n = (size_t)options.n;
    system_of s = {.team = {.size = options.threads}, .n = options.n};
    s.a = team_allocate(n * (n + 1));
    s.x = team_allocate(n);
    s.order = calloc(n, sizeof *s.order);
    s.best = aligned_alloc(64, options.threads * sizeof *s.best);
    if (!s.order || !s.best) failure("no memory");
    for (int i = 0; i < options.iterations; i++) {
        fill(&s);
        team_run(&s.team, solve, &s);
        if (s.singular) failure("the matrix is singular");
    }
    if (options.spoil) s.x[n - 1] += 0.001 * (1 + fabs(s.x[n - 1]));
    double size = options.n, flops = (2.0 / 3.0 * size + 1.5) * size * size * options.iterations;
    int code = team_report("gauss", &options, &s.team, flops, residual(&s), RESIDUAL_MAX);
    free(s.a), free(s.x), free(s.order), free(s.best);
    return code;
}
