/* System calls without the C library. */
#include <fcntl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static long system_call(long number, long a, long b, long c, long d) {
    register long fourth __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long system_call(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                                x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#endif

/* Reads the start of a file; how much, or less than 0. */
static long read_file(const char *path, char *bytes, long size) {
    long file = system_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return file;
    long length = system_call(SYS_read, file, (long)bytes, size, 0);
    system_call(SYS_close, file, 0, 0, 0);
    return length;
}

/* Reads a link; how much, or less than 0. */
static long read_link(const char *path, char *bytes, long size) {
    return system_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)bytes, size);
}
