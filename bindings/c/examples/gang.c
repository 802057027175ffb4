/* A program of several processes that registers itself for gang scheduling: the appendix program of LLNL's paper on a gang scheduler for
 * clusters of Digital Alphas, written for cosched.
 *
 *   cc -std=c11 gang.c $(pkg-config --cflags --libs cosched) -o gang && ./gang [ROUNDS]
 *
 * The processes meet at a barrier in each round and spin there, which performs badly without gang scheduling.
 */
#define _DEFAULT_SOURCE
#include <cosched.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU_COUNT 2

struct barrier {
    atomic_int arrived;
    atomic_int round;
    /* A process could not be registered, so the others must not wait for it. */
    atomic_int failed;
};

/* Returns 0 when all have arrived, -1 if one of them never will. */
static int meet(struct barrier *barrier) {
    int round = atomic_load(&barrier->round);
    if (atomic_fetch_add(&barrier->arrived, 1) == CPU_COUNT - 1) {
        atomic_store(&barrier->arrived, 0);
        atomic_store(&barrier->round, round + 1);
    }
    while (atomic_load(&barrier->round) == round)
        if (atomic_load(&barrier->failed))
            return -1;
    return 0;
}

/* Sums up 1/i in `rounds` rounds of 10000. Returns a negative value if a process is missing. */
static double parallel_code(struct barrier *barrier, int rounds) {
    double sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 1; i <= 10000; i++)
            sum += 1.0 / (10000.0 * round + i);
        if (meet(barrier) != 0)
            return -1;
    }
    return sum;
}

/* Registers the program; exits on an error. */
static uint64_t register_program(cosched_t *cosched) {
    /* What the job requests of each computer. All other fields are 0, which means unspecified. */
    char host[256];
    gethostname(host, sizeof host);
    cosched_resources resources[1] = {{
        .node = host,                       /* the computer's name */
        .cpus = CPU_COUNT,                  /* CPUs wanted */
        .cpus_min = 1,                      /* CPUs at least */
        .memory_bytes = UINT64_C(5) << 20,  /* memory (optional) */
        .disk_bytes = UINT64_C(1) << 30,    /* disk (optional) */
    }};
    uint64_t job;
    int rc = cosched_register(cosched, "gang", COSCHED_CLASS_INTERACTIVE, resources, 1, &job);
    if (rc != 0) {
        fprintf(stderr, "gang: %s (%s)\n", cosched_last_error(), cosched_strerror(rc));
        exit(1);
    }
    printf("registered as job %" PRIu64 "\n", job);
    fflush(stdout);
    return job;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    cosched_t *cosched;

    struct barrier *barrier =
        mmap(NULL, sizeof *barrier, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (barrier == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    /* The library that is found at run time must match the header that this was compiled with. */
    if (COSCHED_CHECK_VERSION() != 0 || cosched_open(NULL, &cosched) != 0) {
        fprintf(stderr, "gang: %s\n", cosched_last_error());
        exit(1);
    }

    uint64_t job = register_program(cosched);

    /* Fork processes as needed. */
    int is_child = 0;
    for (int i = 1; i < CPU_COUNT && !is_child; i++) {
        switch (fork()) {
        case -1:
            perror("fork");
            atomic_store(&barrier->failed, 1);
            exit(1);
        case 0:
            is_child = 1;
            break;
        default:
            break;
        }
    }

    /* Register each process: the calling one, parent or child. The handle works in children too. */
    if (cosched_add_process(cosched, job, 0) != 0) {
        fprintf(stderr, "gang: %s\n", cosched_last_error());
        atomic_store(&barrier->failed, 1);
        exit(1);
    }

    /* Run each process. */
    printf("running process %d\n", (int)getpid());
    double sum = parallel_code(barrier, rounds);
    printf("process %d: the sum is %.6f\n", (int)getpid(), sum);
    fflush(stdout);
    int failed = sum < 0;
    if (is_child)
        exit(failed);

    int status;
    while (wait(&status) > 0)
        failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    cosched_use use;
    if (cosched_get_use(cosched, job, &use) == 0)
        printf("job %" PRIu64 " used %.3f s of CPU time\n", job, (double)use.cpu_time_us / 1e6);
    cosched_close(cosched);
    return failed;
}
