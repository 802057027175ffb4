/* A server: it sleeps until its timer is due, then asks an idle socket once, without waiting. Prints how many of these calls took longer than half
   of the timer's period. */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 3000000, ROUNDS = 100 };

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void) {
    int pair[2], late = 0;
    char byte;
    uint64_t ticks;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec each = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    /* The library looks at a thread after some hundred calls. */
    for (int call = 0; call < 600; call++)
        recv(pair[0], &byte, 1, MSG_DONTWAIT);
    timerfd_settime(timer, 0, &each, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        struct pollfd due = {timer, POLLIN, 0};
        poll(&due, 1, -1);
        if (read(timer, &ticks, sizeof ticks) < 0)
            return 1;
        int64_t begin_ns = now_ns();
        recv(pair[0], &byte, 1, MSG_DONTWAIT);
        late += now_ns() - begin_ns > PERIOD_NS / 2;
    }
    printf("%d\n", late);
    return 0;
}
