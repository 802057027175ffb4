/* An event loop: in each turn it does some work and asks a socket without waiting. Prints how often it gave its CPU away by itself in 2,000 turns with
   10 us of work, then without work for as long. With SLOW its getrusage, which the library calls too, takes 10 us, as a system call may. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 2000, WORK_NS = 10000 };

static int64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

#ifdef SLOW
int getrusage(__rusage_who_t who, struct rusage *usage) {
    for (int64_t end_ns = now_ns(CLOCK_MONOTONIC) + 10000; now_ns(CLOCK_MONOTONIC) < end_ns;)
        ;
    return (int)syscall(SYS_getrusage, who, usage);
}
#endif

static long given_away(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

int main(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct pollfd peer = {pair[0], POLLIN, 0};
    long before = given_away();
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t begin_ns = now_ns(CLOCK_MONOTONIC);
        while (now_ns(CLOCK_MONOTONIC) < begin_ns + WORK_NS)
            ;
        poll(&peer, 1, 0);
    }
    long between = given_away();
    for (int64_t end_ns = now_ns(CLOCK_MONOTONIC) + 500000000; now_ns(CLOCK_MONOTONIC) < end_ns;)
        poll(&peer, 1, 0);
    printf("%ld %ld\n", between - before, given_away() - between);
    return 0;
}
