/* The C library's jobs with a real daemon (COSCHED_SOCKET): normal use, the errors for each misuse, forks and threads. */
#define _GNU_SOURCE
#include "check.h"
#include <cosched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OK = COSCHED_ERR_OK, INVALID = COSCHED_ERR_INVALID, NOT_FOUND = COSCHED_ERR_NOT_FOUND };

#define CHECK_CODE(call, code) check_code((call), (code), #call, __FILE__, __LINE__)

static void check_code(int got, int wanted, const char *what, const char *file, int line) {
    check(got == wanted, what, file, line);
    if (got != wanted)
        printf("    %d (%s) instead of %d: %s\n", got, cosched_strerror(got), wanted, cosched_last_error());
}

static cosched_t *handle(void) {
    cosched_t *opened = NULL;
    CHECK_CODE(cosched_open(NULL, &opened), OK);
    if (opened == NULL)
        exit(checks_end());
    return opened;
}

/* A child that sleeps until it is killed. */
static pid_t sleeper(void) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        for (;;)
            pause();
    }
    return pid;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Waits until the job is in that state; the daemon needs a moment to see a process end. */
static int becomes(cosched_t *cosched, uint64_t job, int state) {
    cosched_job facts;
    for (int i = 0; i < 1500; i++) {
        if (cosched_get_job(cosched, job, &facts) != 0)
            return 0;
        if (facts.state == state)
            return 1;
        usleep(10000);
    }
    return 0;
}

static void test_versions(void) {
    CHECK(cosched_version_number() == COSCHED_VERSION_NUMBER && !strcmp(cosched_version(), COSCHED_VERSION));
    CHECK_CODE(COSCHED_CHECK_VERSION(), OK);
    CHECK_CODE(cosched_check_version(COSCHED_VERSION_NUMBER + 1), COSCHED_ERR_VERSION);
    CHECK_TEXT(cosched_last_error(), "the program was compiled for libcosched 0.1.1, and this is 0.1.0");
    CHECK_CODE(cosched_check_version(5000000), COSCHED_ERR_VERSION);
}

static void test_life(void) {
    cosched_t *cosched = handle();
    char host[256];
    gethostname(host, sizeof host);
    cosched_resources wants = {.node = host, .cpus = 1, .memory_bytes = 5 << 20, .disk_bytes = 1 << 30};
    uint64_t job = 0;
    CHECK_CODE(cosched_register(cosched, "life", COSCHED_CLASS_INTERACTIVE, &wants, 1, &job), OK);
    CHECK(job > 0);
    cosched_job facts;
    CHECK_CODE(cosched_get_job(cosched, job, &facts), OK);
    CHECK(facts.id == job && facts.uid == getuid() && facts.state == COSCHED_STATE_RUNNING && facts.pid == 0);
    CHECK(facts.job_class == COSCHED_CLASS_INTERACTIVE && facts.cpus == 1 && !strcmp(facts.name, "life"));
    CHECK(facts.memory_bytes == 5 << 20 && facts.disk_bytes == 1 << 30 && facts.ended_unix_ms == COSCHED_UNKNOWN);

    pid_t one = sleeper(), two = sleeper();
    CHECK_CODE(cosched_add_process(cosched, job, one), OK);
    CHECK_CODE(cosched_add_process(cosched, job, one), OK);
    int pidfd = (int)syscall(SYS_pidfd_open, two, 0);
    CHECK_CODE(cosched_add_pidfd(cosched, job, pidfd), OK);
    cosched_use use;
    CHECK_CODE(cosched_get_use(cosched, job, &use), OK);
    CHECK(use.processes == 2 && use.memory_bytes > 0);
    CHECK_CODE(cosched_remove_process(cosched, job, two), OK);
    CHECK_CODE(cosched_remove_process(cosched, job, two), NOT_FOUND);
    CHECK_TEXT(cosched_last_error(), "is not in job");
    CHECK_CODE(cosched_get_use(cosched, job, &use), OK);
    CHECK(use.processes == 1);

    wants.cpus = 0;
    CHECK_CODE(cosched_set_resources(cosched, job, &wants, 1), OK);
    cosched_load load;
    CHECK_CODE(cosched_node_load(cosched, host, &load), OK);
    CHECK(!strcmp(load.node, host) && load.cpus > 0 && load.jobs >= 1 && load.memory_bytes > load.memory_available_bytes);
    CHECK_CODE(cosched_get_job(cosched, job, &facts), OK);
    CHECK(facts.cpus == load.cpus && facts.pid == one);

    CHECK_CODE(cosched_set_class(cosched, job, COSCHED_CLASS_STANDBY), OK);
    CHECK_CODE(cosched_suspend(cosched, job), OK);
    CHECK_CODE(cosched_get_job(cosched, job, &facts), OK);
    CHECK(facts.state == COSCHED_STATE_SUSPENDED && facts.job_class == COSCHED_CLASS_STANDBY);
    CHECK_CODE(cosched_resume(cosched, job), OK);
    CHECK_CODE(cosched_kill(cosched, job, SIGTERM), OK);
    int status = 0;
    CHECK(waitpid(one, &status, 0) == one && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(waitpid(two, &status, WNOHANG) == 0);
    CHECK(becomes(cosched, job, COSCHED_STATE_ENDED));
    CHECK_CODE(cosched_suspend(cosched, job), COSCHED_ERR_CONFLICT);
    CHECK_CODE(cosched_add_process(cosched, job, two), COSCHED_ERR_CONFLICT);
    end(two);
    CHECK_CODE(cosched_add_pidfd(cosched, job, pidfd), NOT_FOUND);
    close(pidfd);
    CHECK_CODE(cosched_close(cosched), OK);
}

static void test_limits(void) {
    cosched_t *cosched = handle();
    uint64_t job = 77;
    cosched_resources two[2] = {{.cpus = 1}, {.node = "elsewhere", .cpus = 1}};
    CHECK_CODE(cosched_register(cosched, NULL, 0, two, 2, &job), COSCHED_ERR_UNSUPPORTED);
    CHECK_TEXT(cosched_last_error(), "its only node is ");
    CHECK_CODE(cosched_register(cosched, NULL, 0, two + 1, 1, &job), COSCHED_ERR_UNSUPPORTED);
    CHECK_TEXT(cosched_last_error(), "no node `elsewhere`");
    CHECK_CODE(cosched_node_load(cosched, "elsewhere", &(cosched_load){.cpus = 0}), COSCHED_ERR_UNSUPPORTED);
    two[0].cpus = 1u << 30;
    CHECK_CODE(cosched_register(cosched, NULL, 0, two, 1, &job), INVALID);
    two[0].cpus_min = 1;
    two[0].memory_bytes = UINT64_MAX;
    CHECK_CODE(cosched_register(cosched, NULL, 0, two, 1, &job), INVALID);
    two[0].memory_bytes = 0;
    two[0].reserved[3] = 1;
    CHECK_CODE(cosched_register(cosched, NULL, 0, two, 1, &job), INVALID);
    CHECK_TEXT(cosched_last_error(), "nodes[0].reserved is not 0");
    two[0].reserved[3] = 0;
    CHECK(job == 77);
    CHECK_CODE(cosched_register(cosched, NULL, 0, two, 1, &job), OK);
    cosched_job facts;
    cosched_load load;
    CHECK_CODE(cosched_get_job(cosched, job, &facts), OK);
    CHECK_CODE(cosched_node_load(cosched, NULL, &load), OK);
    CHECK(facts.cpus == load.cpus);
    CHECK_CODE(cosched_kill(cosched, job, 9), OK);
    cosched_close(cosched);
}

static const char bad[] = "\xff\xfe";
static char long_text[100000];

/* Calls each function with invalid handles. Nothing may crash. */
static void test_wrong_handles(void) {
    cosched_t *none = NULL;
    uint64_t zeros[16] = {0}, job = 7;
    char bytes[64] = "these are not the bytes of a handle";
    cosched_t *wrong[] = {none, (cosched_t *)zeros, (cosched_t *)(bytes + 1), (cosched_t *)(void *)bytes, (cosched_t *)stdout};
    cosched_job facts;
    cosched_use use;
    cosched_load load;
    cosched_resources one = {.cpus = 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cosched_t *w = wrong[i];
        CHECK_CODE(cosched_register(w, "x", 0, &one, 1, &job), INVALID);
        CHECK_CODE(cosched_add_process(w, 1, 0), INVALID);
        CHECK_CODE(cosched_add_pidfd(w, 1, 0), INVALID);
        CHECK_CODE(cosched_remove_process(w, 1, 0), INVALID);
        CHECK_CODE(cosched_set_resources(w, 1, &one, 1), INVALID);
        CHECK_CODE(cosched_set_class(w, 1, COSCHED_CLASS_BATCH), INVALID);
        CHECK_CODE(cosched_suspend(w, 1), INVALID);
        CHECK_CODE(cosched_resume(w, 1), INVALID);
        CHECK_CODE(cosched_kill(w, 1, SIGKILL), INVALID);
        CHECK_CODE(cosched_get_job(w, 1, &facts), INVALID);
        CHECK_CODE(cosched_get_use(w, 1, &use), INVALID);
        CHECK_CODE(cosched_node_load(w, NULL, &load), INVALID);
        CHECK_CODE(cosched_close(w), w == NULL ? OK : INVALID);
    }
    CHECK(job == 7);
}

/* Calls each function with invalid arguments. Nothing may crash, and nothing may be changed. */
static void test_wrong_places(void) {
    cosched_t *cosched = handle(), *opened = NULL;
    uint64_t job = 7, bytes[16] = {0};
    cosched_resources one = {.cpus = 1};
    memset(long_text, 'x', sizeof long_text - 1);
    CHECK_CODE(cosched_open(NULL, NULL), INVALID);
    CHECK_CODE(cosched_open(bad, &opened), INVALID);
    CHECK_CODE(cosched_open("/nowhere/cosched.sock", &opened), COSCHED_ERR_NO_DAEMON);
    CHECK_CODE(cosched_open(long_text, &opened), COSCHED_ERR_NO_DAEMON);
    CHECK(opened == NULL);

    CHECK_CODE(cosched_register(cosched, "x", 0, &one, 1, NULL), INVALID);
    CHECK_CODE(cosched_register(cosched, bad, 0, &one, 1, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", 5, &one, 1, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", -1, &one, 1, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", 0, NULL, 1, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", 0, &one, SIZE_MAX, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", 0, &one, 65537, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", 0, (cosched_resources *)(void *)((char *)bytes + 1), 1, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", 0, &(cosched_resources){.node = bad}, 1, &job), INVALID);
    CHECK_CODE(cosched_register(cosched, "x", 0, &(cosched_resources){.node = long_text}, 1, &job), INVALID);
    CHECK_CODE(cosched_set_resources(cosched, 1, &one, SIZE_MAX), INVALID);
    CHECK(job == 7);
    CHECK_CODE(cosched_get_job(cosched, 1, NULL), INVALID);
    CHECK_CODE(cosched_get_use(cosched, 1, NULL), INVALID);
    CHECK_CODE(cosched_node_load(cosched, NULL, NULL), INVALID);
    CHECK_CODE(cosched_close(cosched), OK);
}

static void test_wrong_numbers(void) {
    cosched_t *cosched = handle();
    cosched_job facts;
    cosched_use use;
    cosched_load load;
    cosched_resources one = {.cpus = 1};
    int pids[] = {-1, -2147483647 - 1};
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(cosched_add_process(cosched, 1, pids[i]), INVALID);
        CHECK_CODE(cosched_remove_process(cosched, 1, pids[i]), INVALID);
        CHECK_CODE(cosched_add_pidfd(cosched, 1, pids[i]), INVALID);
    }
    CHECK_CODE(cosched_add_process(cosched, UINT64_MAX, 0), NOT_FOUND);
    CHECK_CODE(cosched_add_process(cosched, 1, 2147483647), NOT_FOUND);
    CHECK_CODE(cosched_add_pidfd(cosched, 1, 2147483647), INVALID);
    CHECK_CODE(cosched_add_pidfd(cosched, 1, 1), INVALID);
    uint64_t ids[] = {0, 999999, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        CHECK_CODE(cosched_set_resources(cosched, ids[i], &one, 1), NOT_FOUND);
        CHECK_CODE(cosched_set_class(cosched, ids[i], COSCHED_CLASS_BATCH), NOT_FOUND);
        CHECK_CODE(cosched_set_class(cosched, ids[i], COSCHED_CLASS_DEFAULT), INVALID);
        CHECK_CODE(cosched_suspend(cosched, ids[i]), NOT_FOUND);
        CHECK_CODE(cosched_resume(cosched, ids[i]), NOT_FOUND);
        CHECK_CODE(cosched_kill(cosched, ids[i], 9), NOT_FOUND);
        CHECK_CODE(cosched_kill(cosched, ids[i], -9), INVALID);
        CHECK_CODE(cosched_get_job(cosched, ids[i], &facts), NOT_FOUND);
        CHECK_CODE(cosched_get_use(cosched, ids[i], &use), NOT_FOUND);
    }
    CHECK_CODE(cosched_node_load(cosched, bad, &load), INVALID);
    CHECK_CODE(cosched_node_load(cosched, "a&b=c d/../#?%", &load), COSCHED_ERR_UNSUPPORTED);
    CHECK_CODE(cosched_node_load(cosched, long_text, &load), INVALID);
    for (int code = -2000; code < 2000; code++)
        CHECK(cosched_strerror(code) != NULL);
    CHECK_TEXT(cosched_strerror(-1000000), "not a code");
    CHECK_CODE(cosched_close(cosched), OK);
}

/* The parent's handle in a child that runs as another user. */
static void test_fork(void) {
    cosched_t *cosched = handle();
    uint64_t job;
    CHECK_CODE(cosched_register(cosched, "fork", 0, NULL, 0, &job), OK);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        checks_passed = checks_failed = 0;
        CHECK_CODE(cosched_add_process(cosched, job, 0), OK);
        if (getuid() == 0) {
            CHECK(setuid(65534) == 0);
            CHECK_CODE(cosched_suspend(cosched, job), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_set_class(cosched, job, COSCHED_CLASS_STANDBY), COSCHED_ERR_FORBIDDEN);
            uint64_t own = 0;
            CHECK_CODE(cosched_register(cosched, "own", COSCHED_CLASS_EXPRESS, NULL, 0, &own), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_register(cosched, "own", COSCHED_CLASS_BATCH, NULL, 0, &own), OK);
            CHECK_CODE(cosched_set_class(cosched, own, COSCHED_CLASS_INTERACTIVE), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_add_process(cosched, own, getppid()), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_add_process(cosched, own, 1), COSCHED_ERR_FORBIDDEN);
            CHECK_CODE(cosched_kill(cosched, own, 9), OK);
        }
        fflush(stdout);
        _exit(checks_failed != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(becomes(cosched, job, COSCHED_STATE_ENDED));
    cosched_close(cosched);
}

struct shared {
    cosched_t *cosched;
    uint64_t job;
};

static void *ask_and_err(void *argument) {
    struct shared *shared = argument;
    char wanted[32];
    uint64_t missing = 1000000 + (uint64_t)(uintptr_t)pthread_self() % 1000000;
    snprintf(wanted, sizeof wanted, "there is no job %llu:", (unsigned long long)missing);
    for (int i = 0; i < 40; i++) {
        cosched_use use;
        cosched_load load;
        CHECK_CODE(cosched_get_use(shared->cosched, shared->job, &use), OK);
        CHECK_CODE(cosched_suspend(shared->cosched, missing), NOT_FOUND);
        CHECK_CODE(cosched_node_load(shared->cosched, NULL, &load), OK);
        /* This thread's last error, regardless of those of the other threads. */
        CHECK_TEXT(cosched_last_error(), wanted);
    }
    return NULL;
}

static void test_threads(void) {
    struct shared shared = {handle(), 0};
    pid_t child = sleeper();
    CHECK_CODE(cosched_register(shared.cosched, "threads", 0, NULL, 0, &shared.job), OK);
    CHECK_CODE(cosched_add_process(shared.cosched, shared.job, child), OK);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, ask_and_err, &shared);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    cosched_kill(shared.cosched, shared.job, SIGKILL);
    end(child);
    cosched_close(shared.cosched);
}

/* Gives each connection one prepared answer and closes it: a daemon of another version, or one that closes connections. */
struct false_daemon {
    int listener;
    const char *answers[4];
};

static void *serve(void *argument) {
    struct false_daemon *daemon = argument;
    char request[4096];
    for (int i = 0; i < 4 && daemon->answers[i] != NULL; i++) {
        int connection = accept(daemon->listener, NULL, NULL);
        if (recv(connection, request, sizeof request, 0) > 0)
            send(connection, daemon->answers[i], strlen(daemon->answers[i]), MSG_NOSIGNAL);
        close(connection);
    }
    return NULL;
}

#define ANSWER(status, header, length, body) "HTTP/1.1 " status "\r\n" header "Content-Length: " length "\r\n\r\n" body
#define VERSION_1 ANSWER("200 OK", "Cosched-Api: 1.1\r\n", "43", "{\"api\":\"1.1\",\"version\":\"0.1.0\",\"node\":\"nn\"}")

static void test_false_daemons(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/cst-false-%d.sock", (int)getpid());
    struct false_daemon daemon = {.listener = socket(AF_UNIX, SOCK_STREAM, 0), .answers = {
        ANSWER("404 Not Found", "", "84", "{\"code\":\"not-found\",\"what\":\"w\",\"why\":\"The API has no such path or method\",\"hint\":\"\"}"),
        ANSWER("422 Unprocessable", "Cosched-Api: 2.0\r\n", "54", "{\"code\":\"unsupported\",\"what\":\"w\",\"why\":\"y\",\"hint\":\"h\"}"),
        VERSION_1,
    }};
    CHECK(bind(daemon.listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(daemon.listener, 4) == 0);
    pthread_t server;
    pthread_create(&server, NULL, serve, &daemon);
    cosched_t *cosched = NULL;
    CHECK_CODE(cosched_open(address.sun_path, &cosched), COSCHED_ERR_VERSION);
    CHECK_TEXT(cosched_last_error(), "the daemon is older than this program");
    CHECK_CODE(cosched_open(address.sun_path, &cosched), COSCHED_ERR_VERSION);
    CHECK_TEXT(cosched_last_error(), "version 2.0 of the interface");
    CHECK_CODE(cosched_open(address.sun_path, &cosched), OK);
    pthread_join(server, NULL);
    close(daemon.listener);
    /* The daemon has closed the connection: an error, and no SIGPIPE. */
    CHECK_CODE(cosched_suspend(cosched, 1), COSCHED_ERR_NO_DAEMON);
    CHECK_CODE(cosched_close(cosched), OK);
    unlink(address.sun_path);
}

int main(int argc, char **argv) {
    alarm(100);
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        test_threads();
        return checks_end();
    }
    test_versions();
    test_wrong_handles();
    test_wrong_places();
    test_wrong_numbers();
    test_limits();
    test_life();
    test_fork();
    test_threads();
    test_false_daemons();
    return checks_end();
}
