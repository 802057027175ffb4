#define _GNU_SOURCE
#include "yield.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void yield_pin(yield_options *o) {
    cpu_set_t set;
    if (o->cpu < 0) {
        if (sched_getaffinity(0, sizeof set, &set)) failure("no CPUs: %s", strerror(errno));
        for (o->cpu = 0; !CPU_ISSET((size_t)o->cpu, &set);) o->cpu++;
    }
    CPU_ZERO(&set);
    CPU_SET((size_t)o->cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) failure("cannot run on CPU %d: %s", o->cpu, strerror(errno));
}

/* Gives the CPU to the other copy and waits for its turn: a wake-up and a wait, which returns at once with one copy. */
static void hand_over(unsigned *turn, unsigned self, unsigned copies) {
    unsigned next = (self + 1) % copies;
    __atomic_store_n(turn, next, __ATOMIC_RELEASE);
    syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (unsigned now = next;;) {
        /* With one copy the value is not the one to wait on, so that both cases make the same calls. */
        syscall(SYS_futex, turn, FUTEX_WAIT, copies == 1 ? ~now : now, NULL, NULL, 0);
        now = __atomic_load_n(turn, __ATOMIC_ACQUIRE);
        if (now == self || now >= copies) return; /* above: the other one has ended */
    }
}

static uint64_t switches_so_far(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

void yield_work(const yield_options *o, unsigned *turn, unsigned self, unsigned copies, yield_copy *result) {
    uint64_t x = 1, switches = switches_so_far();
    result->start_ns = now_ns(CLOCK_MONOTONIC);
    uint64_t cpu_start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; i < o->yields; i++) {
        x = work_loops(o->loops, x);
        if (o->by == BY_FUTEX)
            hand_over(turn, self, copies);
        else
            sched_yield();
    }
    result->cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_ns;
    result->end_ns = now_ns(CLOCK_MONOTONIC);
    result->switches = switches_so_far() - switches;
    result->wrong = x != work_loops_result(o->yields * o->loops, 1);
    if (o->by == BY_FUTEX) {
        __atomic_store_n(turn, copies, __ATOMIC_RELEASE);
        syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

/* Memory of the copies. */
typedef struct {
    yield_copy results[2];
    _Alignas(64) unsigned ready, go, turn;
} shared_state;

static void be_round_robin(void) {
    struct sched_param parameter = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &parameter))
        failure("--by rr: no real-time scheduling: %s; run as root, or give --by yield or futex", strerror(errno));
}

static _Noreturn void copy(const yield_options *o, shared_state *s, unsigned self, unsigned copies) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* ^C leaves none */
    if (o->by == BY_RR) be_round_robin();
    __atomic_add_fetch(&s->ready, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &s->ready, FUTEX_WAKE, 1, NULL, NULL, 0);
    while (!__atomic_load_n(&s->go, __ATOMIC_ACQUIRE)) syscall(SYS_futex, &s->go, FUTEX_WAIT, 0, NULL, NULL, 0);
    yield_work(o, &s->turn, self, copies, &s->results[self]);
    _exit(0);
}

void yield_copies(const yield_options *o, unsigned copies, yield_copy *results) {
    shared_state *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) failure("no memory");
    pid_t children[2];
    for (unsigned i = 0; i < copies; i++) {
        children[i] = fork();
        if (children[i] < 0) failure("fork: %s", strerror(errno));
        if (children[i] == 0) copy(o, s, i, copies);
    }
    for (unsigned ready; (ready = __atomic_load_n(&s->ready, __ATOMIC_ACQUIRE)) < copies;) {
        struct timespec pause = {0, 100000000};
        syscall(SYS_futex, &s->ready, FUTEX_WAIT, ready, &pause, NULL, 0);
        siginfo_t ended = {0};
        /* A copy that fails before it is ready has printed why. */
        if (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid) break;
    }
    __atomic_store_n(&s->go, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &s->go, FUTEX_WAKE, 2, NULL, NULL, 0);
    int bad = 0;
    for (unsigned i = 0; i < copies; i++) {
        int status;
        while (waitpid(children[i], &status, 0) < 0 && errno == EINTR) continue;
        bad |= !WIFEXITED(status) || WEXITSTATUS(status);
    }
    memcpy(results, s->results, copies * sizeof *results);
    munmap(s, sizeof *s);
    if (bad) exit(EXIT_WRONG);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void yield_pair(const yield_options *o, yield_pair_result *result) {
    size_t count = o->repetitions;
    double *memory = calloc(6 * count, sizeof *memory);
    if (!memory) failure("no memory");
    double *t1 = memory, *t2 = t1 + count, *by_switch = t2 + count, *cpu = by_switch + count, *per_yield = cpu + count;
    double *formula = per_yield + count;
    *result = (yield_pair_result){0};
    for (size_t i = 0; i < count; i++) {
        yield_copy one, two[2];
        yield_copies(o, 1, &one);
        yield_copies(o, 2, two);
        uint64_t start_ns = two[0].start_ns < two[1].start_ns ? two[0].start_ns : two[1].start_ns;
        uint64_t end_ns = two[0].end_ns > two[1].end_ns ? two[0].end_ns : two[1].end_ns;
        t1[i] = (double)(one.end_ns - one.start_ns) / 1e9;
        t2[i] = (double)(end_ns - start_ns) / 1e9;
        double switches = (double)(two[0].switches + two[1].switches) - 2 * (double)one.switches;
        double cpu_s = (double)(two[0].cpu_ns + two[1].cpu_ns) / 1e9 - 2 * (double)one.cpu_ns / 1e9;
        per_yield[i] = switches / (2 * (double)o->yields);
        by_switch[i] = switches > 0 ? (t2[i] - 2 * t1[i]) * 1e6 / switches : 0;
        cpu[i] = switches > 0 ? cpu_s * 1e6 / switches : 0;
        formula[i] = (t2[i] - 2 * t1[i]) * 1e6 / (2 * (double)o->yields);
        result->wrong |= one.wrong || two[0].wrong || two[1].wrong;
    }
    result->t1_s = median(t1, count);
    result->t2_s = median(t2, count);
    result->alpha_c_us = median(by_switch, count);
    result->alpha_c_min_us = by_switch[0];
    result->alpha_c_max_us = by_switch[count - 1];
    result->alpha_c_yield_us = median(formula, count);
    result->alpha_c_cpu_us = median(cpu, count);
    result->switches_per_yield = median(per_yield, count);
    free(memory);
}
