/* Processes compute for a grain of time, then all meet; this repeats. The loop of Feitelson and Rudolph, "Gang
 * scheduling performance benefits for fine-grain synchronization" (1992), here with MPI. */
#define _GNU_SOURCE
#include "barrier.h"
#include "mpi_memory.h"
#include "mpi_wait.h"

#include <stdlib.h>

static const char help[] =
    "Each rank computes for a grain of time, then meets the others; prints the iterations per second.\n\n"
    "Usage: mpirun -n RANKS barrier-mpi [OPTIONS]\n\n"
    "Options:\n"
    "      --wait MODE        how a rank waits [default: spin]\n"
    "                           spin   MPI_Barrier, as the library polls\n"
    "                           block  MPI_Ibarrier, tested with sleeps of 10 to 200 us between\n"
    BARRIER_HELP_OPTIONS
    "\nExamples:\n"
    "  mpirun -n 2 barrier-mpi --grain-us 100 --iterations 20000\n"
    "  cosched run -- mpirun -n 2 barrier-mpi --grain-us 1000 --seconds 10 --wait block\n"
    "  mpirun -n 2 barrier-mpi --grain-loops 90000 --json      # exactly equal work each time\n"
    BARRIER_HELP_EXIT;

static void meet_blocking(void) {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    mpi_wait_blocking(&request);
}

static void meet(wait_mode wait) {
    if (wait == WAIT_SPIN)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        meet_blocking();
}

/* The first rank's clock decides, rarely enough (about every 10 ms) that the broadcast does not change the pattern. */
static int time_is_up(const barrier_options *o, int rank, uint64_t start_ns) {
    int stop = rank == 0 && (double)(now_ns(CLOCK_MONOTONIC) - start_ns) >= o->seconds * 1e9;
    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return stop;
}

static uint64_t main_phase(const barrier_options *o, int rank, unsigned char *memory, uint64_t *result,
                           histogram *times) {
    uint64_t check_every = (uint64_t)(o->grain_us > 0 && o->grain_us < 10000 ? 10000 / o->grain_us : 1);
    *result = (uint64_t)rank;
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC), last_ns = start_ns, done = 0;
    for (;;) {
        *result = barrier_grain(o, (unsigned)rank, done, memory, *result);
        meet(o->wait);
        done++;
        uint64_t time_ns = now_ns(CLOCK_MONOTONIC);
        histogram_add(times, time_ns - last_ns);
        last_ns = time_ns;
        if (o->iterations ? done >= o->iterations : done % check_every == 0 && time_is_up(o, rank, start_ns)) break;
    }
    return done;
}

int main(int argc, char **argv) {
    barrier_options options;
    static histogram times;
    program_start(argv[0]);
    barrier_options_parse(&options, argc, argv, help, RANKS);
    mpi_wait_start();
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (options.footprint_bytes)
        nodes_require_memory("barrier-mpi", "--footprint", (double)options.footprint_bytes);
    if (rank == 0) barrier_calibrate(&options);
    MPI_Bcast(&options.grain_loops, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    unsigned char *memory = barrier_memory(&options);
    histogram_clear(&times);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC), cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t result, iterations = main_phase(&options, rank, memory, &result, &times);
    double main_phase_s = (double)(now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
    double cpu_s = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_ns) / 1e9, cpu_all_s = 0;
    MPI_Reduce(&cpu_s, &cpu_all_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    uint64_t first = iterations;
    MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    int wrong = first != iterations || !barrier_work_is_right(&options, (unsigned)rank, iterations, result), any;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        barrier_report(&options, "barrier-mpi", (unsigned)ranks, iterations, main_phase_s, cpu_all_s, &times,
                       (unsigned)any);
    free(memory);
    MPI_Finalize();
    return any ? EXIT_WRONG : 0;
}
