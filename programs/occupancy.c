/* Processes that spin on the wall clock and record when they really ran: a gap between two reads that is longer than a
 * clock read could take means that something else had the CPU. The switch benchmark is computed from these intervals. */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char help[] =
    "Spins, and notes the intervals of wall-clock time in which it really ran.\n\n"
    "Usage: occupancy --out PREFIX [OPTIONS]\n\n"
    "Options:\n"
    "      --out PREFIX       process I writes PREFIX.I: pairs of 64-bit little-endian numbers, begin\n"
    "                         and end of each interval in nanoseconds since the Unix epoch\n"
    "      --text             write the pairs as text, one in a line\n"
    "      --seconds S        how long [default: 5]\n"
    "      --processes N      how many processes [default: 1]\n"
    "      --cpus LIST        pin process I to the I-th CPU of the list, round and round (0,1)\n"
    "      --gap-us G         a longer gap between two clock reads ends an interval [default: 20]\n"
    "      --intervals-max N  room for N intervals per process [default: 1000000]\n"
    "  -h, --help             print this\n"
    "\nExamples:\n"
    "  occupancy --out /tmp/a --seconds 2 --text && head -3 /tmp/a.0\n"
    "  cosched run -- occupancy --out /tmp/job1 --processes 4 --cpus 0,1 --seconds 10\n"
    "\nThe intervals are written at the end, also after SIGTERM or SIGINT.\n"
    "Exit codes: 0 done, 1 a failure (a file, a CPU, no room for the intervals), 2 a wrong option.\n";

typedef struct {
    const char *out;
    int text;
    double seconds;
    unsigned processes;
    int cpus[CPU_SETSIZE];
    unsigned cpu_count;
    uint64_t gap_ns;
    uint64_t intervals_max;
} occupancy_options;

typedef struct {
    uint64_t begin_ns, end_ns;
} interval;

static volatile sig_atomic_t stopped;

static void on_signal(int signal) {
    (void)signal;
    stopped = 1;
}

static void parse_cpus(occupancy_options *o, const char *list) {
    char *copy = strdup(list), *rest = copy;
    if (!copy) failure("no memory");
    for (char *word; (word = strsep(&rest, ","));) {
        if (o->cpu_count == CPU_SETSIZE) usage_error("--cpus: more than %d CPUs", CPU_SETSIZE);
        o->cpus[o->cpu_count++] = (int)parse_count("--cpus", word, 0, CPU_SETSIZE - 1);
    }
    free(copy);
}

static void parse_options(occupancy_options *o, int argc, char **argv) {
    enum { OUT = 256, TEXT, SECONDS, PROCESSES, CPUS, GAP, MAX };
    static const struct option long_options[] = {
        {"out", required_argument, NULL, OUT},          {"text", no_argument, NULL, TEXT},
        {"seconds", required_argument, NULL, SECONDS},  {"processes", required_argument, NULL, PROCESSES},
        {"cpus", required_argument, NULL, CPUS},        {"gap-us", required_argument, NULL, GAP},
        {"intervals-max", required_argument, NULL, MAX}, {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (occupancy_options){.seconds = 5, .processes = 1, .gap_ns = 20000, .intervals_max = 1000000};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        switch (option) {
        case OUT: o->out = optarg; break;
        case TEXT: o->text = 1; break;
        case SECONDS: o->seconds = parse_number("--seconds", optarg, 0.001, 1e6, "seconds"); break;
        case PROCESSES: o->processes = (unsigned)parse_count("--processes", optarg, 1, 4096); break;
        case CPUS: parse_cpus(o, optarg); break;
        case GAP: o->gap_ns = (uint64_t)(parse_number("--gap-us", optarg, 1, 1e6, "microseconds") * 1000); break;
        case MAX: o->intervals_max = parse_count("--intervals-max", optarg, 1, UINT64_C(1) << 32); break;
        case 'h': print_help(help);
        default: usage_error("'%s' is no option or lacks its value", argv[optind - 1]);
        }
    }
    if (optind < argc) usage_error("'%s': this program takes options only", argv[optind]);
    if (!o->out) usage_error("--out PREFIX is missing: where to write the intervals");
}

/* Touched beforehand: a page fault in the loop would look like a loss of the CPU. */
static interval *allocate(uint64_t count) {
    size_t bytes = count * sizeof(interval);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) failure("no memory for %llu intervals", (unsigned long long)count);
    return memory;
}

/* Returns the number of intervals recorded; sets `*full` when there was no room for more. */
static uint64_t spin(const occupancy_options *o, interval *intervals, int *full) {
    uint64_t last_ns = now_ns(CLOCK_REALTIME), end_ns = last_ns + (uint64_t)(o->seconds * 1e9), count = 0;
    intervals[0].begin_ns = last_ns;
    while (!stopped && last_ns < end_ns) {
        uint64_t time_ns = now_ns(CLOCK_REALTIME);
        if (time_ns - last_ns > o->gap_ns) {
            intervals[count].end_ns = last_ns;
            if (++count == o->intervals_max) {
                *full = 1;
                return count;
            }
            intervals[count].begin_ns = time_ns;
        }
        last_ns = time_ns;
    }
    intervals[count].end_ns = last_ns;
    return count + 1;
}

static void write_intervals(const occupancy_options *o, unsigned self, const interval *intervals, uint64_t count) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s.%u", o->out, self) >= (int)sizeof path) failure("--out: the path is too long");
    FILE *file = fopen(path, "w");
    if (!file) failure("%s: %s", path, strerror(errno));
    for (uint64_t i = 0; i < count; i++) {
        unsigned long long begin_ns = intervals[i].begin_ns, end_ns = intervals[i].end_ns;
        if (o->text)
            fprintf(file, "%llu %llu\n", begin_ns, end_ns);
        else
            fwrite(&intervals[i], sizeof *intervals, 1, file);
    }
    int bad = ferror(file);
    if (fclose(file) || bad) failure("%s: the intervals could not be written", path);
}

static int process(const occupancy_options *o, unsigned self) {
    if (o->cpu_count) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)o->cpus[self % o->cpu_count], &set);
        if (sched_setaffinity(0, sizeof set, &set))
            failure("cannot run on CPU %d: %s", o->cpus[self % o->cpu_count], strerror(errno));
    }
    interval *intervals = allocate(o->intervals_max);
    int full = 0;
    uint64_t count = spin(o, intervals, &full);
    write_intervals(o, self, intervals, count);
    if (full) failure("no room after %llu intervals; give a larger --intervals-max", (unsigned long long)count);
    return 0;
}

int main(int argc, char **argv) {
    occupancy_options options;
    program_start(argv[0]);
    parse_options(&options, argc, argv);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pid_t *children = calloc(options.processes, sizeof *children);
    if (!children) failure("no memory");
    for (unsigned i = 1; i < options.processes; i++) {
        children[i] = fork();
        if (children[i] < 0) failure("fork: %s", strerror(errno));
        if (children[i] == 0) return process(&options, i);
    }
    int result = process(&options, 0);
    for (unsigned i = 1; i < options.processes; i++) {
        int status;
        if (stopped) kill(children[i], SIGTERM);
        while (waitpid(children[i], &status, 0) < 0 && errno == EINTR) kill(children[i], SIGTERM);
        if (!WIFEXITED(status) || WEXITSTATUS(status)) result = EXIT_WRONG;
    }
    free(children);
    return result;
}
