/* Shared by the programs with OpenMP on dense matrices: options, a team of threads that spin for each other, the
 * report in LLNL's measures. */
#ifndef TEAM_H
#define TEAM_H

#include "common.h"
#include "spin_barrier.h"

typedef struct {
    int n, block, iterations;
    unsigned threads; /* 0 when parsed: as OMP_NUM_THREADS says, or one for each CPU; filled in */
    int spoil, json;
} team_options;

/* Reads the options over the defaults in `o`; block 0 means that the program has none. Leaves with EXIT_USAGE, also when
 * `words(o)` numbers need more memory than is available, or after --help with 0. */
void team_options_parse(team_options *o, int argc, char **argv, const char *help, double (*words)(const team_options *));

/* `count` zeros; a failure when there is no memory. */
double *team_allocate(size_t count);

typedef struct {
    spin_barrier meeting;
    unsigned size;
    double phase_s; /* wall time, summed over the phases */
    double cpu_s;   /* CPU time of all threads, summed over the phases */
} team;

/* Runs work(context, self) in each thread of the team, as one phase; a failure when OpenMP gives fewer threads. */
void team_run(team *t, void (*work)(void *context, unsigned self), void *context);

/* Prints the report of `flops` in all; returns the exit code. The result is right while residual < residual_max. */
int team_report(const char *program, const team_options *o, const team *t, double flops, double residual,
                double residual_max);

#define TEAM_HELP_OPTIONS                                                                                          \
    "      --threads T        threads [default: OMP_NUM_THREADS, or one for each CPU]\n"                            \
    "      --iterations R     do it R times [default: 1]\n"                                                        \
    "      --spoil            change one element of the result before the check, to see the check fail\n"          \
    "      --json             print one line of JSON\n"                                                            \
    "  -h, --help             print this\n"
#define TEAM_HELP_MEASURES                                                                                         \
    "\nMFLOPS by CPU time, as LLNL reports them: operations by the CPU time used, the mean of the\n"                \
    "threads, so that time in which threads spin for one that has no CPU counts against it, and\n"                  \
    "time without a CPU does not. MFLOPS by wall time: operations by the time of the main phase.\n"
#define TEAM_HELP_EXIT                                                                                             \
    "Exit codes: 0 done, 1 a wrong result or a failure of the system, 2 a wrong option, or an N\n"                  \
    "that does not fit into memory (asked before anything is allocated).\n"

#endif
