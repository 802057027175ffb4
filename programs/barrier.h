/* What the barrier programs share: options, the grain, the report. */
#ifndef BARRIER_H
#define BARRIER_H

#include "common.h"

typedef enum { WAIT_SPIN, WAIT_BLOCK, WAIT_OMP } wait_mode;

typedef enum { RANKS, THREADS, OPENMP } barrier_team; /* what meets */

typedef struct {
    double grain_us;       /* requested; 0 when the loops were given */
    uint64_t grain_loops;  /* the grain as a number of loops */
    double imbalance;      /* 0 to 1: a grain is longer or shorter by up to this part */
    uint64_t iterations;   /* 0: until `seconds` have passed */
    double seconds;
    uint64_t footprint_bytes;
    wait_mode wait;
    unsigned threads;      /* not of ranks; 0: as OMP_NUM_THREADS says, or one for each CPU */
    int json;
} barrier_options;

/* `help` is the program's own text; ranks have no --threads, and OpenMP alone has --wait omp. */
void barrier_options_parse(barrier_options *o, int argc, char **argv, const char *help, barrier_team team);
/* Turns grain_us into grain_loops, if loops were not given. */
void barrier_calibrate(barrier_options *o);
/* One process's computation in one iteration. */
uint64_t barrier_grain(const barrier_options *o, unsigned member, uint64_t iteration, unsigned char *memory,
                       uint64_t seed);
/* Whether `result` is what `iterations` grains of this member lead to from the seed `member`. */
int barrier_work_is_right(const barrier_options *o, unsigned member, uint64_t iterations, uint64_t result);
/* The memory of one process, written once beforehand, so that the main phase has no page faults. */
unsigned char *barrier_memory(const barrier_options *o);
/* `wrong`: how many members did different work than expected, or met a different number of times. */
void barrier_report(const barrier_options *o, const char *kind, unsigned members, uint64_t iterations,
                    double main_phase_s, double cpu_s, const histogram *times, unsigned wrong);

/* The part of the help that all have. */
#define BARRIER_HELP_OPTIONS                                                                                       \
    "      --grain-us G       CPU work of a process between two meetings, in microseconds\n"                       \
    "                         (0 to 10000000) [default: 1000]. Calibrated at start to loops of\n"                  \
    "                         work, from this thread's CPU time, and printed as grain_loops\n"                     \
    "      --grain-loops N    the grain as a number of loops: runs with the same N do the same work\n"             \
    "      --imbalance P      each grain is longer or shorter by up to P percent (0 to 100), by a\n"               \
    "                         fixed pseudo-random series [default: 0]\n"                                           \
    "      --iterations N     meetings [default: 1000]\n"                                                          \
    "      --seconds S        run for about S seconds instead of a number of meetings\n"                           \
    "      --footprint SIZE   memory that each grain touches besides its loops (64K, 1M) [default: 0]\n"           \
    "      --json             print one line of JSON\n"                                                            \
    "  -h, --help             print this\n"

#define BARRIER_HELP_EXIT "\nThe check: all met equally often, and the work of each has the result of its loops.\n"           \
    "Exit codes: 0 done, 1 a wrong result or a failure of the system, 2 a wrong option.\n"

#endif
