#define _GNU_SOURCE
#include "team.h"

#include "memory.h"

#include <getopt.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

void team_options_parse(team_options *o, int argc, char **argv, const char *help, double (*words)(const team_options *)) {
    enum { N = 256, THREADS, BLOCK, ITERATIONS, SPOIL, JSON };
    static const struct option long_options[] = {
        {"n", required_argument, NULL, N},         {"threads", required_argument, NULL, THREADS},
        {"block", required_argument, NULL, BLOCK}, {"iterations", required_argument, NULL, ITERATIONS},
        {"spoil", no_argument, NULL, SPOIL},       {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        if (option == BLOCK && !o->block) option = '?';
        switch (option) {
        case N: o->n = (int)parse_count("--n", optarg, 1, 100000); break;
        case THREADS: o->threads = (unsigned)parse_count("--threads", optarg, 1, 4096); break;
        case BLOCK: o->block = (int)parse_count("--block", optarg, 1, 100000); break;
        case ITERATIONS: o->iterations = (int)parse_count("--iterations", optarg, 1, 1000000); break;
        case SPOIL: o->spoil = 1; break;
        case JSON: o->json = 1; break;
        case 'h': print_help(help);
        default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
    if (!o->threads) o->threads = (unsigned)omp_get_max_threads();
    char what[32];
    snprintf(what, sizeof what, "--n %d", o->n);
    memory_require(what, words(o) * sizeof(double));
}

double *team_allocate(size_t count) {
    double *memory = calloc(count ? count : 1, sizeof *memory);
    if (!memory) failure("no memory for %zu numbers", count);
    return memory;
}

void team_run(team *t, void (*work)(void *context, unsigned self), void *context) {
    int enough = 1;
    uint64_t start_ns = 0, cpu_start_ns = 0;
    t->meeting.members = t->size;
    omp_set_dynamic(0); /* exactly this many */
#pragma omp parallel num_threads(t->size)
    {
        if ((unsigned)omp_get_num_threads() != t->size) {
            enough = 0;
        } else {
            unsigned self = (unsigned)omp_get_thread_num();
            spin_meet(&t->meeting); /* all have started */
            if (self == 0) {
                start_ns = now_ns(CLOCK_MONOTONIC);
                cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
            }
            work(context, self);
            spin_meet(&t->meeting);
            if (self == 0) {
                t->phase_s += (double)(now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
                t->cpu_s += (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_ns) / 1e9;
            }
        }
    }
    if (!enough) failure("OpenMP gave fewer than the %u threads asked for (see OMP_THREAD_LIMIT)", t->size);
}

int team_report(const char *program, const team_options *o, const team *t, double flops, double residual,
                double residual_max) {
    double by_cpu = flops / (t->cpu_s / t->size) / 1e6, by_wall = flops / t->phase_s / 1e6;
    int right = residual < residual_max;
    if (o->json)
        printf("{\"program\":\"%s\",\"members\":%u,\"n\":%d,\"iterations\":%d,\"main_phase_s\":%.6f,\"cpu_s\":%.6f,"
               "\"mflops_cpu\":%.3f,\"mflops_wall\":%.3f,\"gflop_s\":%.6f,\"residual\":%.3g,\"check\":\"%s\"}\n",
               program, t->size, o->n, o->iterations, t->phase_s, t->cpu_s, by_cpu, by_wall, by_wall / 1000,
               isinf(residual) ? 1e300 : residual, right ? "ok" : "wrong");
    else
        printf("%s: n %d, %u threads, %d times\nmain phase %.3f s, CPU time %.3f s\n"
               "%.1f MFLOPS by CPU time, %.1f MFLOPS by wall time\nresult %s: residual %.3g, less than %g is right\n",
               program, o->n, t->size, o->iterations, t->phase_s, t->cpu_s, by_cpu, by_wall, right ? "right" : "WRONG",
               residual, residual_max);
    fflush(stdout);
    if (!right)
        fprintf(stderr, "%s: the result is wrong: the residual is %.3g, not less than %g\n", program, residual,
                residual_max);
    return right ? 0 : EXIT_WRONG;
}
