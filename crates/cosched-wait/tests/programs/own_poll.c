/* A program that defines its own poll: that one must be called, by the program and by its libraries. */
#include <poll.h>
#include <stdio.h>

static int calls;

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    calls++;
    for (nfds_t i = 0; i < count; i++) fds[i].revents = POLLIN;
    return timeout == 0 ? (int)count : -1;
}

int main(void) {
    struct pollfd one = {.fd = 0, .events = POLLIN};
    int ready = 0;
    for (int i = 0; i < 1000; i++) ready += poll(&one, 1, 0);
    printf("%d %d\n", calls, ready);
    return 0;
}
