/* Two ranks send a message to and fro; half of the time is the one-way time of its size. The line time = alpha + size /
 * bandwidth that Strazdins and Uhlmann (2004) take for their model is fitted to the medians. */
#define _GNU_SOURCE
#include "common.h"

#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Sends messages to and fro between two ranks; prints one-way times.\n\n"
    "Usage: mpirun -n 2 pingpong [OPTIONS]\n\n"
    "Options:\n"
    "      --repeat N         exchanges of the smallest size; fewer of large ones [default: 2000]\n"
    "      --json             print one line of JSON\n"
    "  -h, --help             print this\n"
    "\nExamples:\n"
    "  mpirun -n 2 pingpong\n"
    "  cosched run -- mpirun -n 2 pingpong --repeat 10000 --json\n"
    "\nalpha and beta are the line alpha + beta size with the least sum of squared relative errors.\n"
    "Exit codes: 0 done, 1 a failure of the system, 2 a wrong option.\n";

enum { SIZES = 7 };
static const int sizes_bytes[SIZES] = {8, 64, 512, 4096, 32768, 262144, 1048576};

typedef struct {
    uint64_t repeat;
    int json;
} pingpong_options;

typedef struct {
    double median_us[SIZES], p99_us[SIZES];
    double alpha_us, beta_us_per_byte;
    double main_phase_s, cpu_s;
} pingpong_result;

static void parse_options(pingpong_options *o, int argc, char **argv) {
    enum { REPEAT = 256, JSON };
    static const struct option long_options[] = {
        {"repeat", required_argument, NULL, REPEAT},
        {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (pingpong_options){.repeat = 2000};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        switch (option) {
        case REPEAT: o->repeat = parse_count("--repeat", optarg, 1, 100000000); break;
        case JSON: o->json = 1; break;
        case 'h': print_help(help);
        default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
}

static void exchange(int rank, char *buffer, int bytes) {
    int other = 1 - rank;
    if (rank == 0) MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
}

/* Fewer exchanges the longer they take by their size, but never less than 5; the first ones warm up and do not count. */
static void measure_size(int rank, char *buffer, int bytes, uint64_t repeat, histogram *times) {
    uint64_t count = repeat / (1 + (uint64_t)bytes / 16384);
    if (count < 5) count = 5;
    histogram_clear(times);
    for (uint64_t i = 0; i < count + 3; i++) {
        uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
        exchange(rank, buffer, bytes);
        if (i >= 3) histogram_add(times, (now_ns(CLOCK_MONOTONIC) - start_ns) / 2);
    }
}

/* Least squares of 1 - (alpha + beta size) / median. */
static void fit(pingpong_result *r) {
    double s11 = 0, s12 = 0, s22 = 0, t1 = 0, t2 = 0;
    for (int i = 0; i < SIZES; i++) {
        double u = 1 / r->median_us[i], v = sizes_bytes[i] / r->median_us[i];
        s11 += u * u, s12 += u * v, s22 += v * v, t1 += u, t2 += v;
    }
    double determinant = s11 * s22 - s12 * s12;
    r->alpha_us = (t1 * s22 - t2 * s12) / determinant;
    r->beta_us_per_byte = (t2 * s11 - t1 * s12) / determinant;
}

static void report(const pingpong_options *o, const pingpong_result *r) {
    double latency_us = r->median_us[0], bandwidth = sizes_bytes[SIZES - 1] / r->median_us[SIZES - 1];
    if (o->json) {
        printf("{\"program\":\"pingpong\",\"repeat\":%llu,\"latency_us\":%.3f,\"latency_p99_us\":%.3f,"
               "\"bandwidth_mb_per_s\":%.2f,\"alpha_us\":%.3f,\"beta_us_per_kib\":%.4f,\"main_phase_s\":%.6f,"
               "\"cpu_s\":%.6f,\"one_way_us\":{",
               (unsigned long long)o->repeat, latency_us, r->p99_us[0], bandwidth, r->alpha_us,
               r->beta_us_per_byte * 1024, r->main_phase_s, r->cpu_s);
        for (int i = 0; i < SIZES; i++) printf("%s\"%d\":%.3f", i ? "," : "", sizes_bytes[i], r->median_us[i]);
        printf("}}\n");
    } else {
        printf("%10s  %12s  %12s\n", "bytes", "median us", "p99 us");
        for (int i = 0; i < SIZES; i++) printf("%10d  %12.2f  %12.2f\n", sizes_bytes[i], r->median_us[i], r->p99_us[i]);
        printf("latency %.2f us at 8 bytes, %.1f MB/s at 1 MiB; line: %.2f us + %.4f us per KiB\n", latency_us, bandwidth,
               r->alpha_us, r->beta_us_per_byte * 1024);
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    pingpong_options options;
    pingpong_result result = {0};
    static histogram times;
    int rank, ranks;
    program_start(argv[0]);
    parse_options(&options, argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        if (rank == 0) fprintf(stderr, "pingpong: it needs 2 ranks, and mpirun started %d\n", ranks);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    char *buffer = calloc(1, (size_t)sizes_bytes[SIZES - 1]);
    if (!buffer) failure("no memory");
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC), cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < SIZES; i++) {
        measure_size(rank, buffer, sizes_bytes[i], options.repeat, &times);
        /* A histogram's bucket may begin at 0 for times under a nanosecond; no message is that fast. */
        result.median_us[i] = fmax(histogram_quantile_us(&times, 0.5), 0.001);
        result.p99_us[i] = histogram_quantile_us(&times, 0.99);
    }
    result.main_phase_s = (double)(now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
    double cpu_s = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_ns) / 1e9;
    MPI_Reduce(&cpu_s, &result.cpu_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    fit(&result);
    if (rank == 0) report(&options, &result);
    free(buffer);
    MPI_Finalize();
    return 0;
}
