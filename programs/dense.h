/* Shared by the programs on dense matrices: options, a grid of processes, a check of the memory, single-threaded BLAS,
 * the time and CPU time of the main phase. */
#ifndef DENSE_H
#define DENSE_H

#include "broadcast.h"
#include "common.h"

#include <mpi.h>

/* Rank r is at row r / Q and column r % Q, so that the consecutive ranks that a node gets are neighbours in a row: Figure
 * 1 of Strazdins and Uhlmann (2004). */
typedef struct {
    int rank, ranks, p, q; /* this process is (p, q) in the grid */
    int rows, columns;     /* of the grid */
    MPI_Comm row, column;  /* those of the same p; those of the same q */
} process_grid;

/* `count` zeros; a failure when there is no memory. */
double *allocate(size_t count);

typedef struct {
    int n;       /* order of the matrices */
    int dims[2]; /* of the grid; 0: nearly square, not wider than high */
    int block, iterations, spoil, json;
    const char *dump; /* where the result is written as text, or NULL */
    /* matmul only */
    broadcast_kind broadcast;
    int broadcasts_only;
} dense_options;

/* Reads the options over the defaults in `o`; leaves with EXIT_USAGE, or after --help with 0. `matmul` allows the
 * options of broadcasts. */
void dense_options_parse(dense_options *o, int argc, char **argv, const char *help, int matmul);

/* The part of the help that both programs share, before and after --block. */
#define DENSE_HELP_SIZE                                                                                           \
    "      --n N              order of the matrices, 1 to 100000 [default: 1000]\n"                                \
    "      --grid PxQ         processes down and across; P times Q ranks, rank R at row R / Q, column\n"            \
    "                         R mod Q [default: P = Q or the next P above; P = 2Q for 2, 8, 32]\n"
#define DENSE_HELP_REST                                                                                            \
    "      --dump FILE        write the result as text: a row a line\n"                                             \
    "      --json             print one line of JSON\n"                                                            \
    "  -h, --help             print this\n"
#define DENSE_HELP_EXIT                                                                                            \
    "BLAS uses one thread in each rank unless OPENBLAS_NUM_THREADS is set.\n"                                       \
    "Exit codes: 0 done, 1 a wrong result or a failure of the system, 2 a wrong option, or an N\n"                  \
    "that does not fit into the memory of a node (asked before anything is allocated).\n"

/* The grid of all ranks; dims of 0 mean the default. Every rank leaves with EXIT_USAGE when the ranks do not fit. */
void process_grid_make(process_grid *g, const char *program, const int dims[2]);

/* Every rank leaves with EXIT_USAGE when the first one cannot write the file; NULL is no file. */
void process_grid_require_file(const process_grid *g, const char *program, const char *path);
void process_grid_free(process_grid *g);

/* MPI is finalised and every rank leaves with EXIT_USAGE; the first one prints "PROGRAM: message". */
_Noreturn void all_ranks_usage_error(const process_grid *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* OpenBLAS reads its environment when it is loaded, before main: restarts this program with one thread. */
void blas_single_threaded(char **argv);

/* The file of --dump, on the first rank only (elsewhere NULL); a failure names the file. Numbers are written such that
 * they are read back unchanged. */
FILE *dump_open(const char *path, int rank);
void dump_row(FILE *file, const double *row, int count);
void dump_close(FILE *file, const char *path);

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
