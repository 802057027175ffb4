#define _GNU_SOURCE
#include "dense.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double *allocate(size_t count) {
    double *memory = calloc(count ? count : 1, sizeof *memory);
    if (!memory) {
        /* A single rank must not just exit: the others would wait for it. */
        fprintf(stderr, "no memory for %zu numbers\n", count);
        MPI_Abort(MPI_COMM_WORLD, EXIT_WRONG);
    }
    return memory;
}

/* "PxQ" into two numbers. */
static void parse_grid(int dims[2], const char *text) {
    char end;
    if (sscanf(text, "%dx%d%c", &dims[0], &dims[1], &end) != 2 || dims[0] < 1 || dims[1] < 1)
        usage_error("--grid: '%s' is not of the form PxQ, such as 2x1", text);
}

void dense_options_parse(dense_options *o, int argc, char **argv, const char *help, int matmul) {
    enum { N = 256, GRID, BLOCK, ITERATIONS, SPOIL, DUMP, JSON, BROADCAST, ONLY };
    static const struct option long_options[] = {
        {"n", required_argument, NULL, N},
        {"grid", required_argument, NULL, GRID},
        {"block", required_argument, NULL, BLOCK},
        {"iterations", required_argument, NULL, ITERATIONS},
        {"spoil", no_argument, NULL, SPOIL},
        {"dump", required_argument, NULL, DUMP},
        {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, 'h'},
        {"broadcast", required_argument, NULL, BROADCAST},
        {"broadcasts-only", no_argument, NULL, ONLY},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        if (!matmul && (option == BROADCAST || option == ONLY)) option = '?';
        switch (option) {
        case N: o->n = (int)parse_count("--n", optarg, 1, 100000); break;
        case GRID: parse_grid(o->dims, optarg); break;
        case BLOCK: o->block = (int)parse_count("--block", optarg, 1, 4096); break;
        case ITERATIONS: o->iterations = (int)parse_count("--iterations", optarg, 1, 1000000); break;
        case SPOIL: o->spoil = 1; break;
        case DUMP: o->dump = optarg; break;
        case JSON: o->json = 1; break;
        case BROADCAST: o->broadcast = broadcast_parse(optarg); break;
        case ONLY: o->broadcasts_only = 1; break;
        case 'h': print_help(help);
        default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
    if (o->broadcasts_only && (o->dump || o->spoil))
        usage_error("--broadcasts-only computes no result that --dump could write or --spoil change");
}

_Noreturn void all_ranks_usage_error(const process_grid *g, const char *format, ...) {
    if (g->rank == 0) {
        va_list arguments;
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    MPI_Finalize();
    exit(EXIT_USAGE);
}

void process_grid_make(process_grid *g, const char *program, const int dims[2]) {
    MPI_Comm_rank(MPI_COMM_WORLD, &g->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g->ranks);
    int shape[2] = {dims[0], dims[1]};
    if (!shape[0]) {
        for (shape[1] = 1; (long long)(shape[1] + 1) * (shape[1] + 1) <= g->ranks;) shape[1]++;
        while (g->ranks % shape[1]) shape[1]--;
        shape[0] = g->ranks / shape[1];
    }
    if ((long long)shape[0] * shape[1] != g->ranks)
        all_ranks_usage_error(g, "%s: --grid %dx%d needs %lld ranks, and mpirun started %d", program, shape[0],
                              shape[1], (long long)shape[0] * shape[1], g->ranks);
    g->rows = shape[0];
    g->columns = shape[1];
    g->p = g->rank / g->columns;
    g->q = g->rank % g->columns;
    MPI_Comm_split(MPI_COMM_WORLD, g->p, g->q, &g->row);
    MPI_Comm_split(MPI_COMM_WORLD, g->q, g->p, &g->column);
}

void process_grid_require_file(const process_grid *g, const char *program, const char *path) {
    int reason = 0;
    if (path && g->rank == 0) {
        FILE *file = fopen(path, "w");
        reason = file ? 0 : errno;
        if (file) fclose(file);
    }
    MPI_Bcast(&reason, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (reason) all_ranks_usage_error(g, "%s: --dump: %s: %s", program, path, strerror(reason));
}

void process_grid_free(process_grid *g) {
    MPI_Comm_free(&g->row);
    MPI_Comm_free(&g->column);
}

void blas_single_threaded(char **argv) {
    if (getenv("OPENBLAS_NUM_THREADS")) return;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
    failure("cannot restart with OPENBLAS_NUM_THREADS=1");
}

FILE *dump_open(const char *path, int rank) {
    if (rank != 0) return NULL;
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "--dump: %s: %s\n", path, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, EXIT_WRONG);
    }
    return file;
}

void dump_row(FILE *file, const double *row, int count) {
    for (int j = 0; j < count; j++) fprintf(file, "%s%.17g", j ? " " : "", row[j]);
    fputc('\n', file);
}

void dump_close(FILE *file, const char *path) {
    int bad = ferror(file);
    if (fclose(file) || bad) failure("--dump: %s could not be written", path);
}

void phase_begin(phase_clock *c) {
    MPI_Barrier(MPI_COMM_WORLD);
    c->start_ns = now_ns(CLOCK_MONOTONIC);
    c->cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void phase_end(phase_clock *c) {
    MPI_Barrier(MPI_COMM_WORLD);
    c->phase_s += (double)(now_ns(CLOCK_MONOTONIC) - c->start_ns) / 1e9;
    c->cpu_s += (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - c->cpu_start_ns) / 1e9;
}

double phase_cpu_all_s(const phase_clock *c) {
    double all_s = 0;
    MPI_Reduce(&c->cpu_s, &all_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all_s;
}
