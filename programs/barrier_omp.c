/* Threads compute for a grain of time, then all meet; this repeats. The loop of Feitelson and Rudolph, "Gang
 * scheduling performance benefits for fine-grain synchronization" (1992), here with OpenMP; compiled without it, with
 * threads alone (barrier-threads), which runs where neither OpenMP nor MPI is installed. */
#define _GNU_SOURCE
#include "barrier.h"
#include "memory.h"
#include "spin_barrier.h"

#include <pthread.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#define TEAM OPENMP
#define NAME "barrier-omp"
#define THREADS_USUAL "OMP_NUM_THREADS, or one for each CPU"
#define HELP_WAIT "                           omp    OpenMP's own barrier, as OMP_WAIT_POLICY says\n"
#define HELP_EXAMPLE "  OMP_WAIT_POLICY=passive cosched run -- barrier-omp --wait omp --seconds 10\n"
#else
#include <sched.h>
#define TEAM THREADS
#define NAME "barrier-threads"
#define THREADS_USUAL "one for each CPU"
#define HELP_WAIT ""
#define HELP_EXAMPLE "  cosched run -- barrier-threads --seconds 10\n"
#endif

static const char help[] =
    "Each thread computes for a grain of time, then meets the others; prints the iterations per second.\n\n"
    "Usage: " NAME " [OPTIONS]\n\n"
    "Options:\n"
    "      --threads N        threads [default: " THREADS_USUAL "]\n"
    "      --wait MODE        how a thread waits [default: spin]\n"
    "                           spin   reads a counter until it changes, never gives the CPU away\n"
    "                           block  sleeps in the kernel at once\n"
    HELP_WAIT
    BARRIER_HELP_OPTIONS
    "\nExamples:\n"
    "  " NAME " --threads 2 --grain-us 100 --iterations 20000\n"
    HELP_EXAMPLE
    "  " NAME " --threads 2 --grain-loops 90000 --json      # exactly equal work each time\n"
    BARRIER_HELP_EXIT;

typedef struct {
    spin_barrier spin;
    pthread_barrier_t block;
    /* The number of meetings after which all stop. The first thread sets it one meeting ahead, so that no thread that
     * has just left a meeting can see it too early. */
    _Alignas(64) atomic_ullong stop_at;
    histogram times;
    uint64_t iterations;
    double main_phase_s;
    atomic_uint wrong; /* members that did not do the work or the meetings that the first one did */
} shared_state;

static void meet(wait_mode wait, shared_state *s) {
    if (wait == WAIT_SPIN) {
        spin_meet(&s->spin);
    } else if (wait == WAIT_BLOCK) {
        pthread_barrier_wait(&s->block);
    } else {
#ifdef _OPENMP
#pragma omp barrier
#endif
    }
}

static void member(const barrier_options *o, shared_state *s, unsigned self) {
    unsigned char *memory = barrier_memory(o);
    uint64_t result = self;
    meet(o->wait, s);
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC), last_ns = start_ns, done = 0;
    do {
        result = barrier_grain(o, self, done, memory, result);
        if (self == 0 && o->seconds > 0 && (double)(last_ns - start_ns) >= o->seconds * 1e9 &&
            atomic_load(&s->stop_at) == UINT64_MAX)
            atomic_store(&s->stop_at, done + 2);
        meet(o->wait, s);
        done++;
        if (self == 0) {
            uint64_t time_ns = now_ns(CLOCK_MONOTONIC);
            histogram_add(&s->times, time_ns - last_ns);
            last_ns = time_ns;
        }
    } while (done < atomic_load(&s->stop_at));
    if (self == 0) {
        s->iterations = done;
        s->main_phase_s = (double)(last_ns - start_ns) / 1e9;
    }
    meet(o->wait, s);
    if (done != s->iterations || !barrier_work_is_right(o, self, done, result)) atomic_fetch_add(&s->wrong, 1);
    free(memory);
}

#ifdef _OPENMP
static unsigned threads_usual(void) { return (unsigned)omp_get_max_threads(); }

static void all_members(const barrier_options *o, shared_state *s, unsigned threads) {
    int enough = 1;
    omp_set_dynamic(0); /* exactly this many */
#pragma omp parallel num_threads(threads)
    {
        if ((unsigned)omp_get_num_threads() != threads)
            enough = 0;
        else
            member(o, s, (unsigned)omp_get_thread_num());
    }
    if (!enough) failure("OpenMP gave fewer than the %u threads asked for (see OMP_THREAD_LIMIT)", threads);
}
#else
static unsigned threads_usual(void) {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) ? 1 : (unsigned)CPU_COUNT(&allowed);
}

typedef struct {
    const barrier_options *options;
    shared_state *shared;
    unsigned self;
    pthread_t thread;
} place;

static void *run_member(void *argument) {
    const place *own = argument;
    member(own->options, own->shared, own->self);
    return NULL;
}

static void all_members(const barrier_options *o, shared_state *s, unsigned threads) {
    place *places = calloc(threads, sizeof *places);
    if (!places) failure("no memory for %u threads", threads);
    for (unsigned i = 0; i < threads; i++) {
        places[i] = (place){.options = o, .shared = s, .self = i};
        if (pthread_create(&places[i].thread, NULL, run_member, &places[i]))
            failure("thread %u of %u cannot be started (see ulimit -u)", i + 1, threads);
    }
    for (unsigned i = 0; i < threads; i++) pthread_join(places[i].thread, NULL);
    free(places);
}
#endif

int main(int argc, char **argv) {
    barrier_options options;
    static shared_state shared;
    program_start(argv[0]);
    barrier_options_parse(&options, argc, argv, help, TEAM);
    barrier_calibrate(&options);
    unsigned threads = options.threads ? options.threads : threads_usual();
    if (options.footprint_bytes) memory_require("--footprint", (double)options.footprint_bytes * threads);
    histogram_clear(&shared.times);
    shared.spin.members = threads;
    atomic_store(&shared.stop_at, options.iterations ? options.iterations : UINT64_MAX);
    if (pthread_barrier_init(&shared.block, NULL, threads)) failure("no barrier for %u threads", threads);
    uint64_t cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    all_members(&options, &shared, threads);
    double cpu_s = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_ns) / 1e9;
    barrier_report(&options, NAME, threads, shared.iterations, shared.main_phase_s, cpu_s, &shared.times,
                   atomic_load(&shared.wrong));
    pthread_barrier_destroy(&shared.block);
    return atomic_load(&shared.wrong) ? EXIT_WRONG : 0;
}
