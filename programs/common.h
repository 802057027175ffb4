/* Shared by the test programs: clear errors for options, repeatable CPU work, a distribution of times. */
#ifndef COMMON_H
#define COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { EXIT_WRONG = 1, EXIT_USAGE = 2 };

/* The name that messages start with. */
void program_start(const char *argv0);

/* Under a launcher only the first rank prints, so that a wrong option gives one message and not one per rank. */
int program_is_first_rank(void);

/* "NAME: message" and a pointer to --help on stderr; exit code 2. */
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "NAME: message" on stderr; exit code 1. */
_Noreturn void failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the help (first rank only) and exits with 0. */
_Noreturn void print_help(const char *text);

/* A number in [min, max]; `unit` completes "give a number of …". */
double parse_number(const char *option, const char *text, double min, double max, const char *unit);
/* A whole number in [min, max]. */
uint64_t parse_count(const char *option, const char *text, uint64_t min, uint64_t max);
/* A size in bytes: 4096, 64K, 1M, 2G (powers of 1024). */
uint64_t parse_size_bytes(const char *option, const char *text);

static inline uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A chain of dependent multiplications: the same loops are the same work, whatever else runs. */
uint64_t work_loops(uint64_t loops, uint64_t seed);
/* The result of work_loops, computed in a few steps: checks that the work was done. */
uint64_t work_loops_result(uint64_t loops, uint64_t seed);
/* Reads and writes every cache line of the buffer. */
void work_touch(volatile unsigned char *buffer, size_t bytes);
/* Loops of work_loops in a microsecond of this thread's CPU time. Uses CPU time and the best of several short tries, so
 * that other load on the machine does not change it. */
double calibrate_loops_per_us(void);
/* Uniform in [-1, 1); the same arguments give the same number. */
double hash_symmetric(uint64_t a, uint64_t b);

/* Times in logarithmic buckets, 64 to the octave (1.1 % wide): fixed memory, so that recording never allocates. */
enum { HISTOGRAM_SUB = 64, HISTOGRAM_OCTAVES = 48 };
typedef struct {
    uint64_t count;
    uint64_t min_ns, max_ns;
    uint64_t bucket[HISTOGRAM_OCTAVES * HISTOGRAM_SUB];
} histogram;

void histogram_clear(histogram *h);
void histogram_add(histogram *h, uint64_t time_ns);
/* The time in microseconds under which the share q of all lies; min and max are exact. */
double histogram_quantile_us(const histogram *h, double q);

#endif
