#include "barrier.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GRAIN_US = 256, GRAIN_LOOPS, IMBALANCE, ITERATIONS, SECONDS, FOOTPRINT, WAIT, THREAD_COUNT, JSON };

static const struct option long_options[] = {
    {"grain-us", required_argument, NULL, GRAIN_US},   {"grain-loops", required_argument, NULL, GRAIN_LOOPS},
    {"imbalance", required_argument, NULL, IMBALANCE}, {"iterations", required_argument, NULL, ITERATIONS},
    {"seconds", required_argument, NULL, SECONDS},     {"footprint", required_argument, NULL, FOOTPRINT},
    {"wait", required_argument, NULL, WAIT},           {"threads", required_argument, NULL, THREAD_COUNT},
    {"json", no_argument, NULL, JSON},                 {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static wait_mode parse_wait(const char *text, barrier_team team) {
    if (!strcmp(text, "spin")) return WAIT_SPIN;
    if (!strcmp(text, "block")) return WAIT_BLOCK;
    if (team == OPENMP && !strcmp(text, "omp")) return WAIT_OMP;
    usage_error("--wait: '%s' is unknown; give spin%s", text, team == OPENMP ? ", block or omp" : " or block");
}

static void parse_one(barrier_options *o, int option, char **argv, const char *help, barrier_team team) {
    switch (option) {
    case GRAIN_US: o->grain_us = parse_number("--grain-us", optarg, 0, 1e7, "microseconds"); break;
    case GRAIN_LOOPS: o->grain_loops = parse_count("--grain-loops", optarg, 1, UINT64_C(1) << 40); break;
    case IMBALANCE: o->imbalance = parse_number("--imbalance", optarg, 0, 100, "percent") / 100; break;
    case ITERATIONS: o->iterations = parse_count("--iterations", optarg, 1, UINT64_C(1) << 40); break;
    case SECONDS: o->seconds = parse_number("--seconds", optarg, 0.001, 1e6, "seconds"); break;
    case FOOTPRINT: o->footprint_bytes = parse_size_bytes("--footprint", optarg); break;
    case WAIT: o->wait = parse_wait(optarg, team); break;
    case THREAD_COUNT:
        if (team == RANKS) usage_error("--threads is for barrier-omp and barrier-threads; the number of ranks is the launcher's (mpirun -n)");
        o->threads = (unsigned)parse_count("--threads", optarg, 1, 4096);
        break;
    case JSON: o->json = 1; break;
    case 'h': print_help(help);
    default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
    }
}

void barrier_options_parse(barrier_options *o, int argc, char **argv, const char *help, barrier_team team) {
    memset(o, 0, sizeof *o);
    o->grain_us = -1;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;)
        parse_one(o, option, argv, help, team);
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
    if (o->grain_us >= 0 && o->grain_loops) usage_error("--grain-us and --grain-loops exclude each other; give one");
    if (o->iterations && o->seconds > 0) usage_error("--iterations and --seconds exclude each other; give one");
    if (!o->iterations && !(o->seconds > 0)) o->iterations = 1000;
    if (o->grain_us < 0) o->grain_us = o->grain_loops ? 0 : 1000;
}

void barrier_calibrate(barrier_options *o) {
    if (!o->grain_loops) o->grain_loops = (uint64_t)llround(o->grain_us * calibrate_loops_per_us());
}

static uint64_t loops_of(const barrier_options *o, unsigned member, uint64_t iteration) {
    if (!(o->imbalance > 0)) return o->grain_loops;
    return (uint64_t)((double)o->grain_loops * (1.0 + o->imbalance * hash_symmetric(member, iteration)));
}

uint64_t barrier_grain(const barrier_options *o, unsigned member, uint64_t iteration, unsigned char *memory,
                       uint64_t seed) {
    if (memory) work_touch(memory, o->footprint_bytes);
    return work_loops(loops_of(o, member, iteration), seed);
}

int barrier_work_is_right(const barrier_options *o, unsigned member, uint64_t iterations, uint64_t result) {
    uint64_t loops = o->imbalance > 0 ? 0 : o->grain_loops * iterations;
    if (o->imbalance > 0)
        for (uint64_t i = 0; i < iterations; i++) loops += loops_of(o, member, i);
    return result == work_loops_result(loops, member);
}

unsigned char *barrier_memory(const barrier_options *o) {
    if (!o->footprint_bytes) return NULL;
    unsigned char *memory = malloc(o->footprint_bytes);
    if (!memory) failure("no memory for a footprint of %llu bytes", (unsigned long long)o->footprint_bytes);
    memset(memory, 1, o->footprint_bytes);
    return memory;
}

void barrier_report(const barrier_options *o, const char *kind, unsigned members, uint64_t iterations,
                    double main_phase_s, double cpu_s, const histogram *times, unsigned wrong) {
    static const char *const waits[] = {"spin", "block", "omp"};
    const double quantiles[] = {0, 0.5, 0.9, 0.99, 1};
    double us[5];
    for (int i = 0; i < 5; i++) us[i] = histogram_quantile_us(times, quantiles[i]);
    double rate = main_phase_s > 0 ? (double)iterations / main_phase_s : 0;
    if (o->json) {
        printf("{\"program\":\"%s\",\"members\":%u,\"wait\":\"%s\",\"grain_loops\":%llu,\"imbalance_percent\":%g,"
               "\"footprint_bytes\":%llu,\"iterations\":%llu,\"main_phase_s\":%.6f,\"iterations_per_s\":%.3f,"
               "\"cpu_s\":%.6f,\"iteration_us\":{\"min\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f},\"check\":\"%s\"}\n",
               kind, members, waits[o->wait], (unsigned long long)o->grain_loops, o->imbalance * 100,
               (unsigned long long)o->footprint_bytes, (unsigned long long)iterations, main_phase_s, rate, cpu_s, us[0],
               us[1], us[2], us[3], us[4], wrong ? "wrong" : "ok");
    } else {
        printf("%s: %u members, wait %s, grain_loops %llu", kind, members, waits[o->wait],
               (unsigned long long)o->grain_loops);
        if (o->grain_us > 0) printf(" (%g us)", o->grain_us);
        printf("\niterations %llu, iterations per second %.1f, main phase %.3f s, CPU time %.3f s\n",
               (unsigned long long)iterations, rate, main_phase_s, cpu_s);
        printf("iteration time in us: min %.1f, median %.1f, p90 %.1f, p99 %.1f, max %.1f\n", us[0], us[1], us[2],
               us[3], us[4]);
    }
    fflush(stdout);
    if (wrong)
        fprintf(stderr, "%s: the result is wrong: %u members did other work, or met another number of times\n", kind,
                wrong);
}
