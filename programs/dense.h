/* What the programs on dense matrices share: a grid of processes, single-threaded BLAS, the time and CPU time of the
 * main phase. */
#ifndef DENSE_H
#define DENSE_H

#include "common.h"

#include <mpi.h>

typedef struct {
    int rank, ranks, p, q; /* this process is (p, q) in the grid */
    int rows, columns;     /* of the grid */
    MPI_Comm row, column;  /* those of the same p; those of the same q */
} process_grid;

/* So many zeros; a failure when there is no memory. */
double *allocate(size_t count);

typedef struct {
    int n;       /* order of the matrices */
    int dims[2]; /* of the grid; 0: nearly square */
    int block, iterations, spoil, json;
} dense_options;

/* Reads the options over the defaults in `o`; leaves with EXIT_USAGE, or after --help with 0. Blocks are 1 to block_max. */
void dense_options_parse(dense_options *o, int argc, char **argv, const char *help, int block_max);

/* The grid of all ranks; dims of 0 mean nearly square. Every rank leaves with EXIT_USAGE when the ranks do not fit. */
void process_grid_make(process_grid *g, const char *program, const int dims[2]);
void process_grid_free(process_grid *g);

/* MPI is finalised and every rank leaves with EXIT_USAGE; the first one prints "PROGRAM: message". */
_Noreturn void all_ranks_usage_error(const process_grid *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* OpenBLAS reads its environment when it is loaded, before main: starts this program anew with one thread. */
void blas_single_threaded(char **argv);

/* A phase that all ranks enter and leave together. */
typedef struct {
    uint64_t start_ns, cpu_start_ns;
    double phase_s; /* wall time of this rank, summed over the phases */
    double cpu_s;   /* CPU time of this rank, summed over the phases */
} phase_clock;

void phase_begin(phase_clock *c);
void phase_end(phase_clock *c);
/* The CPU time of all ranks (on the first rank only). */
double phase_cpu_all_s(const phase_clock *c);

#endif
