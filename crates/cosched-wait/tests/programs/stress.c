/* Behaviour that the wait library must not change: polls in many ways without waiting, in a crowd of its own making, and prints
 * the results. Every line is the same on every run, with and without the library. `stress NAME` runs one part. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what)                                                                  \
    do {                                                                             \
        if (!(what)) {                                                               \
            fprintf(stderr, "line %d: %s, errno %d\n", __LINE__, #what, errno);      \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

enum { MESSAGES = 200, THREADS = 4 };

static const struct timespec AT_ONCE = {0, 0};

static void pause_us(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR) {}
}

/* Sends one byte after the other, some immediately and some late. */
static void *sender(void *fd) {
    for (int i = 0; i < MESSAGES; i++) {
        if (i % 4 == 0) pause_us(300);
        char byte = (char)i;
        CHECK(send((int)(long)fd, &byte, 1, 0) == 1);
    }
    return NULL;
}

typedef int ask_function(int fd);

static int ask_poll(int fd) {
    struct pollfd one[2] = {{.fd = fd, .events = POLLIN}, {.fd = -1, .events = POLLIN, .revents = 77}};
    int ready = poll(one, 2, 0);
    CHECK(ready == 0 ? one[0].revents == 0 : one[0].revents == POLLIN);
    CHECK(one[1].revents == 0);
    return ready;
}

static int ask_ppoll(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    return ppoll(&one, 1, &AT_ONCE, &none);
}

static int ask_select(int fd) {
    fd_set read, write;
    struct timeval time = {0, 0};
    FD_ZERO(&read);
    FD_ZERO(&write);
    FD_SET(fd, &read);
    int ready = select(fd + 1, &read, &write, NULL, &time);
    CHECK(!!FD_ISSET(fd, &read) == ready);
    CHECK(time.tv_sec == 0 && time.tv_usec == 0);
    return ready;
}

static int ask_pselect(int fd) {
    fd_set read;
    FD_ZERO(&read);
    FD_SET(fd, &read);
    int ready = pselect(fd + 1, &read, NULL, NULL, &AT_ONCE, NULL);
    CHECK(!!FD_ISSET(fd, &read) == ready);
    return ready;
}

static __thread int epoll_of_thread = -1;
static __thread uint32_t epoll_flags;

static int epoll_on(int fd) {
    if (epoll_of_thread < 0) {
        struct epoll_event event = {.events = EPOLLIN | epoll_flags, .data.fd = fd};
        CHECK((epoll_of_thread = epoll_create1(0)) >= 0);
        CHECK(epoll_ctl(epoll_of_thread, EPOLL_CTL_ADD, fd, &event) == 0);
    }
    return epoll_of_thread;
}

static int ask_epoll(int fd) {
    struct epoll_event event = {.data.fd = -1};
    int ready = epoll_wait(epoll_on(fd), &event, 1, 0);
    CHECK(ready <= 0 || event.data.fd == fd);
    return ready;
}

static int ask_epoll_pwait(int fd) {
    struct epoll_event event;
    return epoll_pwait(epoll_on(fd), &event, 1, 0, NULL);
}

static int ask_epoll_pwait2(int fd) {
    struct epoll_event event;
    int ready = epoll_pwait2(epoll_on(fd), &event, 1, &AT_ONCE, NULL);
    return ready < 0 && errno == ENOSYS ? ask_epoll(fd) : ready;
}

static int always(int fd) {
    (void)fd;
    return 1;
}

/* Polls until there is something, then reads it; returns the sum of all bytes. */
static long receive_all(int fd, ask_function *ask) {
    long sum = 0;
    for (int got = 0; got < MESSAGES;) {
        errno = 12345;
        int ready = ask(fd);
        CHECK(ready >= 0 && errno == 12345);
        if (ready == 0) continue;
        char bytes[16];
        ssize_t length = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (length < 0) CHECK(errno == EAGAIN);
        for (ssize_t i = 0; i < length; i++) sum += (unsigned char)bytes[i] * (++got);
    }
    return sum;
}

static const struct {
    const char *name;
    ask_function *ask;
    uint32_t epoll_flags;
} WAYS[] = {
    {"poll", ask_poll, 0},         {"ppoll", ask_ppoll, 0},
    {"select", ask_select, 0},     {"pselect", ask_pselect, 0},
    {"epoll", ask_epoll, 0},       {"epoll-edge", ask_epoll, EPOLLET},
    {"epoll_pwait", ask_epoll_pwait, 0}, {"epoll_pwait2", ask_epoll_pwait2, 0},
    {"recv", always, 0},
};
enum { WAYS_COUNT = sizeof WAYS / sizeof *WAYS };

static long exchange(size_t way) {
    int ends[2];
    pthread_t thread;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(pthread_create(&thread, NULL, sender, (void *)(long)ends[1]) == 0);
    epoll_flags = WAYS[way].epoll_flags;
    long sum;
    if (epoll_flags & EPOLLET) {
        /* An edge is reported once, so everything available must be read each time. */
        sum = 0;
        for (int got = 0; got < MESSAGES;) {
            if (ask_epoll(ends[0]) == 0) continue;
            char byte;
            while (recv(ends[0], &byte, 1, MSG_DONTWAIT) == 1) sum += (unsigned char)byte * (++got);
        }
    } else {
        sum = receive_all(ends[0], WAYS[way].ask);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    close(ends[0]);
    close(ends[1]);
    if (epoll_of_thread >= 0) close(epoll_of_thread);
    epoll_of_thread = -1;
    return sum;
}

static void part_ways(void) {
    for (size_t way = 0; way < WAYS_COUNT; way++) printf("%s %ld\n", WAYS[way].name, exchange(way));
}

static void *all_ways(void *start) {
    long sum = 0;
    for (size_t i = 0; i < WAYS_COUNT; i++) sum += exchange((i + (size_t)start) % WAYS_COUNT);
    return (void *)sum;
}

static void part_threads(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, all_ways, (void *)i) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *sum;
        CHECK(pthread_join(threads[i], &sum) == 0);
        printf("thread %zu: %ld\n", i, (long)sum);
    }
}

static void *close_later(void *fd) {
    pause_us(20000);
    close((int)(long)fd);
    return NULL;
}

/* A descriptor is closed while another thread polls it: the next call must report that. */
static void part_closed(void) {
    for (int i = 0; i < 5; i++) {
        int ends[2];
        pthread_t thread;
        CHECK(pipe(ends) == 0);
        CHECK(pthread_create(&thread, NULL, close_later, (void *)(long)ends[0]) == 0);
        struct pollfd one = {.fd = ends[0], .events = POLLIN};
        int ready;
        while ((ready = poll(&one, 1, 0)) == 0) {}
        printf("closed: %d %#x\n", ready, (unsigned)one.revents);
        pthread_join(thread, NULL);
        close(ends[1]);
    }
}

static volatile sig_atomic_t handled;

/* Polls within the handler, too: it may have interrupted the library itself. */
static void on_alarm(int number) {
    (void)number;
    int saved = errno;
    struct pollfd one = {.fd = 0, .events = 0};
    for (int i = 0; i < 3; i++) poll(&one, 0, 0);
    sched_yield();
    handled++;
    errno = saved;
}

static void part_signals(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval storm = {{0, 300}, {0, 300}}, calm = {{0, 0}, {0, 0}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(setitimer(ITIMER_REAL, &storm, NULL) == 0);
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    while (handled < 300) {
        int ready = poll(&one, 1, 0);
        /* Linux itself returns EINTR here when a signal arrives at that moment. */
        CHECK(ready == 0 || (ready == -1 && errno == EINTR));
        char byte;
        CHECK(recv(ends[0], &byte, 1, MSG_DONTWAIT) == -1 && errno == ENOTSOCK);
        sched_yield();
    }
    CHECK(setitimer(ITIMER_REAL, &calm, NULL) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    printf("signals: %d\n", poll(&one, 1, 0));
}

/* Only ppoll's own mask lets the signal in; and signals that the mask blocks stay blocked. */
static void part_masks(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigset_t alarm_only, none;
    sigemptyset(&none);
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    struct itimerval once = {{0, 0}, {0, 20000}};
    handled = 0;
    CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        sigprocmask(SIG_BLOCK, &alarm_only, NULL);
        for (int k = 0; k < 10; k++) ppoll(&one, 1, &AT_ONCE, &alarm_only);
        CHECK(handled == 0);
        pause_us(300);
    }
    while (!handled) CHECK(ppoll(&one, 1, &AT_ONCE, &none) <= 0);
    printf("masks: %d\n", (int)handled);
}

/* A child of a fork continues without exec, and so does its own child. */
static void part_fork(void) {
    printf("parent %ld\n", exchange(0));
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            printf("child %ld\n", exchange((size_t)i));
            fflush(stdout);
            pid_t grandchild = fork();
            if (grandchild == 0) {
                printf("grandchild %ld\n", exchange((size_t)i + 4));
                exit(0);
            }
            int status;
            CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    pid_t quick = vfork();
    if (quick == 0) {
        struct pollfd one = {.fd = 0, .events = 0};
        for (int i = 0; i < 50; i++) poll(&one, 1, 0);
        _exit(7);
    }
    int status;
    CHECK(waitpid(quick, &status, 0) == quick);
    printf("vfork %d\n", WEXITSTATUS(status));
}

static atomic_int turn;

static void *take_turns(void *number) {
    for (int i = 0; i < 500; i++) {
        while (atomic_load(&turn) % THREADS != (int)(long)number) sched_yield();
        atomic_fetch_add(&turn, 1);
    }
    return NULL;
}

static void part_yields(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("turns %d\n", atomic_load(&turn));
}

static void *ask_for_ever(void *fd) {
    struct pollfd one = {.fd = (int)(long)fd, .events = POLLIN};
    for (;;) poll(&one, 1, 0);
    return NULL;
}

/* poll is a cancellation point, also where the library blocks in its place. */
static void part_cancel(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, ask_for_ever, (void *)(long)ends[0]) == 0);
        pause_us(20000);
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
        printf("cancelled %d\n", result == PTHREAD_CANCELED);
    }
}

static void part_errors(void) {
    struct pollfd none = {.fd = -1};
    char byte;
    printf("none %d %d\n", poll(NULL, 0, 0), poll(&none, 1, 0));
    struct pollfd shut = {.fd = 999, .events = POLLIN};
    int ready = poll(&shut, 1, 0);
    printf("shut %d %#x\n", ready, (unsigned)shut.revents);
    struct epoll_event event;
    for (int i = 0; i < 100; i++) {
        errno = 0;
        CHECK(epoll_wait(999, &event, 1, 0) == -1 && errno == EBADF);
        CHECK(epoll_wait(0, &event, 0, 0) == -1);
        CHECK(recv(999, &byte, 1, MSG_DONTWAIT) == -1 && errno == EBADF);
        CHECK(poll((struct pollfd *)8, 1, 0) == -1 && errno == EFAULT);
        struct timeval time = {0, 0};
        CHECK(select(-1, NULL, NULL, NULL, &time) == -1 && errno == EINVAL);
        CHECK(select(0, NULL, NULL, NULL, &time) == 0);
    }
    printf("errors as ever\n");
}

static void part_idle(void) {
    /* Half a second in which nothing arrives: the cost is measured from outside. */
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        CHECK(poll(&one, 1, 0) == 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 500);
    printf("idle\n");
}

static const struct {
    const char *name;
    void (*run)(void);
} PARTS[] = {
    {"ways", part_ways},     {"threads", part_threads}, {"closed", part_closed}, {"signals", part_signals},
    {"masks", part_masks},   {"fork", part_fork},       {"yields", part_yields}, {"cancel", part_cancel},
    {"errors", part_errors}, {"idle", part_idle},
};

int main(int argc, char **argv) {
    alarm(0);
    for (size_t i = 0; argc == 2 && i < sizeof PARTS / sizeof *PARTS; i++) {
        if (!strcmp(argv[1], PARTS[i].name)) {
            PARTS[i].run();
            return 0;
        }
    }
    fprintf(stderr, "stress: give one part\n");
    return 2;
}
