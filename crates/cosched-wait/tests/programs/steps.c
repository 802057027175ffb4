/* Calls functions of a library of MPI (late_mpi.c) in single steps: after each instruction a signal handler polls, so that it comes between any two
 * instructions of the wait library. x86-64 only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int empty[2], full[2];
static long steps;

/* Ends a row of calls, and begins another one. */
static void ask(void) {
    struct pollfd found = {.fd = full[0], .events = POLLIN}, nothing = {.fd = empty[0], .events = POLLIN};
    if (poll(&found, 1, 0) != 1 || poll(&nothing, 1, 0) || poll(&nothing, 1, 0)) _exit(3);
}

static void on_step(int signal) {
    (void)signal;
    steps++;
    ask();
}

static void in_steps(int (*call)(void)) {
    /* The trap flag: each following instruction ends with a SIGTRAP. */
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    call();
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
    if (!library || pipe(empty) || pipe(full) || write(full[1], "x", 1) != 1) return 1;
    signal(SIGTRAP, on_step);
    for (int i = 0; i < 1000; i++) ask();
    const char *names[] = {"barrier", "test"};
    for (int i = 0; i < 2; i++) {
        int (*call)(void) = (int (*)(void))dlsym(library, names[i]);
        call();
        ask();
        in_steps(call);
    }
    printf("%s\n", steps > 500 ? "many steps" : "few steps");
    return 0;
}
