/* Two ranks send a message to and fro; half of the time is the one-way time for its size. The line alpha + beta n that
 * Strazdins and Uhlmann (2004) use in their model (section 2.2) is fitted to the medians, and the line alpha_CPU +
 * beta_CPU n (section 5.1) to the CPU times. */
#define _GNU_SOURCE
#include "common.h"
#include "mpi_wait.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Sends messages to and fro between two ranks; prints one-way times.\n\n"
    "Usage: mpirun -n 2 pingpong [OPTIONS]\n\n"
    "Options:\n"
    "      --repeat N         exchanges of the smallest size; fewer of large ones [default: 2000]\n"
    "      --wait MODE        how a rank waits for a message [default: poll]\n"
    "                           poll   MPI_Recv, as the library waits\n"
    "                           block  MPI_Irecv, tested with sleeps of 10 to 200 us between\n"
    "      --json             print one line of JSON\n"
    "  -h, --help             print this\n"
    "\nExamples:\n"
    "  mpirun -n 2 pingpong\n"
    "  mpirun -n 2 pingpong --wait block               # the CPU time of messages, without the waits\n"
    "  cosched run --wait spin-block:0us -- mpirun -n 2 pingpong --repeat 10000 --json\n"
    "\nalpha and beta are the line alpha + beta size with the least sum of squared relative errors,\n"
    "neither below 0. A word is 8 bytes.\n"
    "alpha_cpu and beta_cpu are the same line through the CPU time of a message: of the one-way\n"
    "time the share that a rank spends on a CPU, all its threads together, as Strazdins and Uhlmann\n"
    "take it. An MPI that waits busily is on a CPU all the time: then alpha_cpu is alpha and beta_cpu\n"
    "is beta, nearly. Have it block: --wait block, or `cosched run --wait spin-block:0us`, which makes waits\n"
    "block while the ranks share their CPUs with others.\n"
    "The check: what comes back is what was sent.\n"
    "Exit codes: 0 done, 1 a wrong result or a failure of the system, 2 a wrong option.\n";

enum { SIZES = 7 };
static const int sizes_bytes[SIZES] = {8, 64, 512, 4096, 32768, 262144, 1048576};

enum { WARM_UP = 3, WORD_BYTES = 8 };

typedef struct {
    uint64_t repeat;
    int block; /* wait with sleeps */
    int json;
} pingpong_options;

/* alpha + beta bytes, in microseconds. */
typedef struct {
    double alpha_us, beta_us_per_byte;
} line;

typedef struct {
    double median_us[SIZES], p99_us[SIZES], cpu_us[SIZES];
    line elapsed, cpu;
    double main_phase_s, cpu_s;
    int wrong;
} pingpong_result;

typedef struct {
    int rank;
    char *out, *in;
} pingpong_end;

static void parse_options(pingpong_options *o, int argc, char **argv) {
    enum { REPEAT = 256, WAIT, JSON };
    static const struct option long_options[] = {
        {"repeat", required_argument, NULL, REPEAT}, {"wait", required_argument, NULL, WAIT},
        {"json", no_argument, NULL, JSON},           {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (pingpong_options){.repeat = 2000};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        switch (option) {
        case REPEAT: o->repeat = parse_count("--repeat", optarg, 1, 100000000); break;
        case WAIT:
            if (strcmp(optarg, "poll") && strcmp(optarg, "block"))
                usage_error("--wait: '%s' is unknown; give poll or block", optarg);
            o->block = optarg[0] == 'b';
            break;
        case JSON: o->json = 1; break;
        case 'h': print_help(help);
        default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
}

static void send_to(const pingpong_end *e, const char *buffer, int bytes, int block) {
    if (!block) {
        MPI_Send(buffer, bytes, MPI_BYTE, 1 - e->rank, 0, MPI_COMM_WORLD);
        return;
    }
    MPI_Request request;
    MPI_Isend(buffer, bytes, MPI_BYTE, 1 - e->rank, 0, MPI_COMM_WORLD, &request);
    mpi_wait_blocking(&request);
}

static void receive(const pingpong_end *e, int bytes, int block) {
    if (!block) {
        MPI_Recv(e->in, bytes, MPI_BYTE, 1 - e->rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Request request;
    MPI_Irecv(e->in, bytes, MPI_BYTE, 1 - e->rank, 0, MPI_COMM_WORLD, &request);
    mpi_wait_blocking(&request);
}

/* The second rank sends back what it received. */
static void exchange(const pingpong_end *e, int bytes, int block) {
    if (e->rank == 0) send_to(e, e->out, bytes, block);
    receive(e, bytes, block);
    if (e->rank != 0) send_to(e, e->in, bytes, block);
}

/* Fewer exchanges the longer they take by their size, but never less than 5; the first ones warm up and do not count.
 * CPU time is read once for every twentieth of them, because that is a system call; the median of these parts counts,
 * so that a rank that spins while its partner waits in a CPU's queue does not make messages look expensive. */
static void measure_size(const pingpong_options *o, const pingpong_end *e, int size, pingpong_result *r) {
    static histogram times, cpu_times;
    int bytes = sizes_bytes[size];
    uint64_t count = o->repeat / (1 + (uint64_t)bytes / 16384), cpu_last_ns;
    if (count < 5) count = 5;
    uint64_t part = count < 20 ? 1 : count / 20;
    histogram_clear(&times), histogram_clear(&cpu_times);
    memset(e->in, 0, (size_t)bytes);
    for (uint64_t i = 0; i < WARM_UP; i++) exchange(e, bytes, o->block);
    cpu_last_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
        exchange(e, bytes, o->block);
        histogram_add(&times, (now_ns(CLOCK_MONOTONIC) - start_ns) / 2);
        if (i % part) continue;
        uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        histogram_add(&cpu_times, (cpu_ns - cpu_last_ns) / (2 * part));
        cpu_last_ns = cpu_ns;
    }
    double cpu_us = histogram_quantile_us(&cpu_times, 0.5), both_us;
    MPI_Allreduce(&cpu_us, &both_us, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    /* A histogram's bucket may begin at 0 for times under a nanosecond; no message is that fast. */
    r->cpu_us[size] = fmax(both_us / 2, 0.001);
    r->median_us[size] = fmax(histogram_quantile_us(&times, 0.5), 0.001);
    r->p99_us[size] = histogram_quantile_us(&times, 0.99);
    if (e->rank == 0 && memcmp(e->in, e->out, (size_t)bytes)) r->wrong = 1;
}

/* Least squares of 1 - (alpha + beta size) / time, where neither may be negative. */
static line fit(const double *time_us) {
    double s11 = 0, s12 = 0, s22 = 0, t1 = 0, t2 = 0;
    for (int i = 0; i < SIZES; i++) {
        double u = 1 / time_us[i], v = sizes_bytes[i] / time_us[i];
        s11 += u * u, s12 += u * v, s22 += v * v, t1 += u, t2 += v;
    }
    double determinant = s11 * s22 - s12 * s12;
    line l = {(t1 * s22 - t2 * s12) / determinant, (t2 * s11 - t1 * s12) / determinant};
    if (l.alpha_us < 0) return (line){0, t2 / s22};
    if (l.beta_us_per_byte < 0) return (line){t1 / s11, 0};
    return l;
}

static void report_json(const pingpong_options *o, const pingpong_result *r) {
    printf("{\"program\":\"pingpong\",\"members\":2,\"repeat\":%llu,\"wait\":\"%s\",\"latency_us\":%.3f,"
           "\"latency_p99_us\":%.3f,\"bandwidth_mb_per_s\":%.2f,",
           (unsigned long long)o->repeat, o->block ? "block" : "poll", r->median_us[0], r->p99_us[0],
           sizes_bytes[SIZES - 1] / r->median_us[SIZES - 1]);
    printf("\"alpha_us\":%.3f,\"beta_us_per_kib\":%.4f,\"beta_us_per_word\":%.6f,\"alpha_cpu_us\":%.3f,"
           "\"beta_cpu_us_per_word\":%.6f,\"main_phase_s\":%.6f,\"cpu_s\":%.6f,\"one_way_us\":{",
           r->elapsed.alpha_us, r->elapsed.beta_us_per_byte * 1024, r->elapsed.beta_us_per_byte * WORD_BYTES,
           r->cpu.alpha_us, r->cpu.beta_us_per_byte * WORD_BYTES, r->main_phase_s, r->cpu_s);
    for (int i = 0; i < SIZES; i++) printf("%s\"%d\":%.3f", i ? "," : "", sizes_bytes[i], r->median_us[i]);
    printf("},\"cpu_us\":{");
    for (int i = 0; i < SIZES; i++) printf("%s\"%d\":%.3f", i ? "," : "", sizes_bytes[i], r->cpu_us[i]);
    printf("},\"check\":\"%s\"}\n", r->wrong ? "wrong" : "ok");
}

static void report_text(const pingpong_result *r) {
    printf("%10s  %12s  %12s  %12s\n", "bytes", "median us", "p99 us", "CPU us");
    for (int i = 0; i < SIZES; i++)
        printf("%10d  %12.2f  %12.2f  %12.2f\n", sizes_bytes[i], r->median_us[i], r->p99_us[i], r->cpu_us[i]);
    printf("latency %.2f us at 8 bytes, %.1f MB/s at 1 MiB; line: %.2f us + %.4f us per KiB\n", r->median_us[0],
           sizes_bytes[SIZES - 1] / r->median_us[SIZES - 1], r->elapsed.alpha_us, r->elapsed.beta_us_per_byte * 1024);
    printf("alpha %.3f us, beta %.5f us a word; CPU time: alpha %.3f us, beta %.5f us a word; main phase %.3f s\n",
           r->elapsed.alpha_us, r->elapsed.beta_us_per_byte * WORD_BYTES, r->cpu.alpha_us,
           r->cpu.beta_us_per_byte * WORD_BYTES, r->main_phase_s);
}

int main(int argc, char **argv) {
    pingpong_options options;
    pingpong_result result = {0};
    pingpong_end end;
    int ranks;
    program_start(argv[0]);
    parse_options(&options, argc, argv);
    mpi_wait_start();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &end.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        if (end.rank == 0) fprintf(stderr, "pingpong: it needs 2 ranks, and mpirun started %d\n", ranks);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    size_t largest = (size_t)sizes_bytes[SIZES - 1];
    end.out = malloc(largest), end.in = malloc(largest);
    if (!end.out || !end.in) failure("no memory");
    for (size_t i = 0; i < largest; i++) end.out[i] = (char)(i % 251 + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC), cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < SIZES; i++) measure_size(&options, &end, i, &result);
    result.main_phase_s = (double)(now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
    double cpu_s = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_ns) / 1e9;
    MPI_Reduce(&cpu_s, &result.cpu_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    result.elapsed = fit(result.median_us);
    result.cpu = fit(result.cpu_us);
    if (end.rank == 0) {
        options.json ? report_json(&options, &result) : report_text(&result);
        fflush(stdout);
        if (result.wrong) fprintf(stderr, "pingpong: the result is wrong: what came back is not what was sent\n");
    }
    int wrong = result.wrong;
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free(end.out), free(end.in);
    MPI_Finalize();
    return wrong ? EXIT_WRONG : 0;
}
