/* The job API in a cluster of two nodes: `cluster SOCKET1 SOCKET2`, the daemons of n1 and n2. One program has handles to both, which is
 * possible in a cluster of namespaces on one machine, so that it can check on each node what the other one reports. */
#define _GNU_SOURCE
#include "check.h"
#include <cosched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OK = COSCHED_ERR_OK, MIB = 1 << 20 };

#define CHECK_CODE(call, code) check_code((call), (code), #call, __FILE__, __LINE__)

static void check_code(int got, int wanted, const char *what, const char *file, int line) {
    check(got == wanted, what, file, line);
    if (got != wanted)
        printf("    %d (%s) instead of %d: %s\n", got, cosched_strerror(got), wanted, cosched_last_error());
}

static const char *const names[2] = {"n1", "n2"};
static cosched_t *at[2];

/* A child that computes until it is killed; an alarm ends it at the latest. */
static pid_t worker(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        for (volatile unsigned turns = 0;; turns++)
            if (turns % 100000 == 0)
                usleep(1000);
    }
    return pid;
}

static cosched_job facts(int node, uint64_t job) {
    cosched_job facts = {.state = -1};
    CHECK_CODE(cosched_get_job(at[node], job, &facts), OK);
    return facts;
}

/* The nodes learn of each other's changes with a delay. Waits until `holds` is true for the job on this node. */
#define BECOMES(node, job, holds)                                                                                                \
    do {                                                                                                                         \
        cosched_job seen = {.state = -1};                                                                                        \
        int is = 0;                                                                                                              \
        for (int look = 0; look < 1500 && !is; look++) {                                                                         \
            is = cosched_get_job(at[node], job, &seen) == 0 && (holds);                                                          \
            if (!is)                                                                                                             \
                usleep(10000);                                                                                                   \
        }                                                                                                                        \
        check(is, #holds, __FILE__, __LINE__);                                                                                   \
        if (!is)                                                                                                                 \
            printf("    on n%d: state %d, class %d, %u CPUs, %llu bytes\n", node + 1, seen.state, seen.job_class, seen.cpus,     \
                   (unsigned long long)seen.memory_bytes);                                                                       \
    } while (0)

/* Adds a process on a node, whose part of the job begins with the plan: a moment after the job counts as running. */
static void add(int node, uint64_t job, pid_t pid) {
    for (int tries = 0; tries < 500 && cosched_add_process(at[node], job, pid) == COSCHED_ERR_CONFLICT; tries++)
        usleep(20000);
    CHECK_CODE(cosched_add_process(at[node], job, pid), OK);
}

static uint64_t cpu_time_us(int node, uint64_t job) {
    cosched_use use = {0};
    CHECK_CODE(cosched_get_use(at[node], job, &use), OK);
    CHECK(use.processes == 1 && use.memory_bytes > 0);
    return use.cpu_time_us;
}

/* Whether the job's part on a node gets CPU time. */
static int computes(int node, uint64_t job) {
    uint64_t before = cpu_time_us(node, job);
    for (int i = 0; i < 500; i++) {
        usleep(20000);
        if (cpu_time_us(node, job) > before + 1000)
            return 1;
    }
    return 0;
}

/* Whether it stops: with the next plan, which takes effect at a slot that all nodes can learn of in time. */
static int stands(int node, uint64_t job) {
    for (int i = 0; i < 30; i++) {
        uint64_t before = cpu_time_us(node, job);
        usleep(300000);
        if (cpu_time_us(node, job) == before)
            return 1;
    }
    return 0;
}

static void test_life(void) {
    cosched_resources wants[2] = {
        {.node = names[0], .cpus = 1, .memory_bytes = 5 * MIB, .disk_bytes = MIB},
        {.node = names[1], .cpus = 8, .cpus_min = 1, .memory_bytes = 6 * MIB},
    };
    uint64_t job = 0;
    CHECK_CODE(cosched_register(at[0], "life", COSCHED_CLASS_INTERACTIVE, wants, 2, &job), OK);
    for (int n = 0; n < 2; n++) {
        BECOMES(n, job, seen.state == COSCHED_STATE_RUNNING);
        cosched_job f = facts(n, job);
        CHECK(f.id == job && f.uid == getuid() && f.job_class == COSCHED_CLASS_INTERACTIVE && f.cpus == 2);
        CHECK(f.memory_bytes == 11 * MIB && f.disk_bytes == MIB && !strcmp(f.name, "life"));
    }
    pid_t workers[2] = {worker(), worker()};
    for (int n = 0; n < 2; n++)
        add(n, job, workers[n]);
    CHECK(computes(0, job) && computes(1, job));

    cosched_load load;
    for (int n = 0; n < 2; n++) {
        /* The load of a node as seen by the other one: the last reported value, at most half a minute old. */
        CHECK_CODE(cosched_node_load(at[1 - n], names[n], &load), OK);
        CHECK(!strcmp(load.node, names[n]) && load.measured_unix_ms != COSCHED_UNKNOWN);
        CHECK(load.cpus == 1 && load.jobs == 1 && load.job_cpus == 1);
    }
    CHECK_CODE(cosched_node_load(at[0], "n9", &load), COSCHED_ERR_NOT_FOUND);
    CHECK_TEXT(cosched_last_error(), "n1, n2");

    CHECK_CODE(cosched_set_class(at[1], job, COSCHED_CLASS_STANDBY), OK);
    BECOMES(0, job, seen.job_class == COSCHED_CLASS_STANDBY);
    wants[0].memory_bytes = 7 * MIB;
    CHECK_CODE(cosched_set_resources(at[1], job, wants, 2), OK);
    BECOMES(0, job, seen.memory_bytes == 13 * MIB);
    BECOMES(1, job, seen.memory_bytes == 13 * MIB);

    CHECK_CODE(cosched_suspend(at[1], job), OK);
    for (int n = 0; n < 2; n++)
        BECOMES(n, job, seen.state == COSCHED_STATE_SUSPENDED);
    CHECK(stands(0, job) && stands(1, job));
    CHECK_CODE(cosched_resume(at[0], job), OK);
    CHECK(computes(0, job) && computes(1, job));

    /* A process that leaves the job continues, and is not killed with it. */
    pid_t leaves = worker();
    CHECK_CODE(cosched_add_process(at[1], job, leaves), OK);
    CHECK_CODE(cosched_remove_process(at[1], job, leaves), OK);
    CHECK_CODE(cosched_remove_process(at[1], job, leaves), COSCHED_ERR_NOT_FOUND);
    CHECK_CODE(cosched_kill(at[1], job, SIGTERM), OK);
    int status = 0;
    for (int n = 0; n < 2; n++)
        CHECK(waitpid(workers[n], &status, 0) == workers[n] && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    for (int n = 0; n < 2; n++) {
        BECOMES(n, job, seen.state == COSCHED_STATE_ENDED);
        CHECK_CODE(cosched_suspend(at[n], job), COSCHED_ERR_CONFLICT);
        CHECK_CODE(cosched_add_process(at[n], job, leaves), COSCHED_ERR_CONFLICT);
    }
    CHECK(waitpid(leaves, &status, WNOHANG) == 0);
    kill(leaves, SIGKILL);
    waitpid(leaves, &status, 0);
}

static void test_refusals(void) {
    cosched_resources wants[2] = {{.node = "n1", .cpus = 1}, {.node = "n9", .cpus = 1}};
    uint64_t job = 77;
    CHECK_CODE(cosched_register(at[0], NULL, 0, wants, 2, &job), COSCHED_ERR_CONFLICT);
    CHECK_TEXT(cosched_last_error(), "there is no node n9");
    wants[1].node = "n1";
    CHECK_CODE(cosched_register(at[0], NULL, 0, wants, 2, &job), COSCHED_ERR_CONFLICT);
    CHECK_TEXT(cosched_last_error(), "node n1 is named twice");
    wants[1] = (cosched_resources){.node = "n2", .cpus = 2};
    CHECK_CODE(cosched_register(at[0], NULL, 0, wants, 2, &job), COSCHED_ERR_CONFLICT);
    CHECK_TEXT(cosched_last_error(), "n2");
    wants[1] = (cosched_resources){.node = "n2", .cpus = 1, .memory_bytes = UINT64_MAX};
    wants[0].memory_bytes = UINT64_MAX;
    CHECK_CODE(cosched_register(at[0], NULL, 0, wants, 2, &job), COSCHED_ERR_CONFLICT);
    CHECK(job == 77);
    for (int n = 0; n < 2; n++) {
        CHECK_CODE(cosched_suspend(at[n], 999999), COSCHED_ERR_NOT_FOUND);
        CHECK_CODE(cosched_kill(at[n], 999999, 9), COSCHED_ERR_NOT_FOUND);
        CHECK_CODE(cosched_add_process(at[n], 999999, 0), COSCHED_ERR_NOT_FOUND);
    }
}

/* A user's permissions are checked on each node. */
static void test_another_user(void) {
    cosched_resources here = {.node = "n1", .cpus = 1};
    uint64_t job = 0, own = 0;
    CHECK_CODE(cosched_register(at[0], "roots", COSCHED_CLASS_BATCH, &here, 1, &job), OK);
    BECOMES(1, job, seen.state == COSCHED_STATE_RUNNING);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        checks_passed = checks_failed = 0;
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        for (int n = 0; n < 2; n++) {
            CHECK_CODE(cosched_suspend(at[n], job), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_kill(at[n], job, 9), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_set_class(at[n], job, COSCHED_CLASS_STANDBY), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_set_resources(at[n], job, &here, 1), COSCHED_ERR_FORBIDDEN);
        }
        CHECK_CODE(cosched_register(at[1], "own", COSCHED_CLASS_EXPRESS, &here, 1, &own), COSCHED_ERR_FORBIDDEN);
        CHECK_CODE(cosched_register(at[1], "own", COSCHED_CLASS_BATCH, &here, 1, &own), OK);
        BECOMES(0, own, seen.state == COSCHED_STATE_RUNNING);
        CHECK_CODE(cosched_add_process(at[0], own, getppid()), COSCHED_ERR_FORBIDDEN);
        CHECK_CODE(cosched_set_class(at[0], own, COSCHED_CLASS_INTERACTIVE), COSCHED_ERR_FORBIDDEN);
        CHECK_CODE(cosched_kill(at[0], own, 9), OK);
        BECOMES(1, own, seen.state == COSCHED_STATE_ENDED);
        fflush(stdout);
        _exit(checks_failed != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_CODE(cosched_kill(at[1], job, 9), OK);
    BECOMES(0, job, seen.state == COSCHED_STATE_ENDED);
}

/* The whole lifetime of a job in one thread, while the other thread has its own job, with the same handles. */
static void *lives(void *argument) {
    int node = *(int *)argument;
    for (int i = 0; i < 3; i++) {
        char wanted[64];
        uint64_t job = 0, missing = 1000000 + 10 * (uint64_t)i + (uint64_t)node;
        cosched_resources wants = {.node = names[1 - node], .cpus = 1};
        CHECK_CODE(cosched_register(at[node], "thread", COSCHED_CLASS_BATCH, &wants, 1, &job), OK);
        CHECK_CODE(cosched_suspend(at[1 - node], missing), COSCHED_ERR_NOT_FOUND);
        BECOMES(1 - node, job, seen.state == COSCHED_STATE_RUNNING);
        pid_t child = worker();
        add(1 - node, job, child);
        CHECK_CODE(cosched_set_class(at[node], job, COSCHED_CLASS_STANDBY), OK);
        CHECK_CODE(cosched_kill(at[node], job, SIGKILL), OK);
        waitpid(child, NULL, 0);
        BECOMES(1 - node, job, seen.state == COSCHED_STATE_ENDED && seen.job_class == COSCHED_CLASS_STANDBY);
        /* This thread's last error, regardless of those of the other thread. */
        snprintf(wanted, sizeof wanted, "there is no job %llu:", (unsigned long long)missing);
        CHECK_TEXT(cosched_last_error(), wanted);
    }
    return NULL;
}

static void test_threads(void) {
    pthread_t threads[2];
    int nodes[2] = {0, 1};
    for (int n = 0; n < 2; n++)
        pthread_create(&threads[n], NULL, lives, &nodes[n]);
    for (int n = 0; n < 2; n++)
        pthread_join(threads[n], NULL);
}

int main(int argc, char **argv) {
    alarm(100);
    if (argc != 3)
        return 2;
    for (int n = 0; n < 2; n++)
        if (cosched_open(argv[n + 1], &at[n]) != 0) {
            printf("%s: %s\n", argv[n + 1], cosched_last_error());
            return 1;
        }
    test_refusals();
    test_life();
    test_another_user();
    test_threads();
    for (int n = 0; n < 2; n++)
        CHECK_CODE(cosched_close(at[n]), OK);
    return checks_end();
}
