#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *name = "program";

void program_start(const char *argv0) {
    const char *slash = strrchr(argv0, '/');
    name = slash ? slash + 1 : argv0;
}

int program_is_first_rank(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *rank = getenv(variables[i]);
        if (rank) return atoi(rank) == 0;
    }
    return 1;
}

_Noreturn void usage_error(const char *format, ...) {
    if (program_is_first_rank()) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "%s: ", name);
        vfprintf(stderr, format, arguments);
        fprintf(stderr, "\nTry '%s --help'.\n", name);
        va_end(arguments);
    }
    exit(EXIT_USAGE);
}

_Noreturn void failure(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_WRONG);
}

_Noreturn void print_help(const char *text) {
    if (program_is_first_rank()) fputs(text, stdout);
    exit(0);
}

double parse_number(const char *option, const char *text, double min, double max, const char *unit) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(value))
        usage_error("%s: '%s' is not a number; give a number of %s", option, text, unit);
    if (value < min || value > max)
        usage_error("%s: %s is out of range; give %g to %g (%s)", option, text, min, max, unit);
    return value;
}

uint64_t parse_count(const char *option, const char *text, uint64_t min, uint64_t max) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end || strchr(text, '-')) usage_error("%s: '%s' is not a whole number", option, text);
    if (errno || value < min || value > max)
        usage_error("%s: %s is out of range; give %llu to %llu", option, text, (unsigned long long)min,
                    (unsigned long long)max);
    return value;
}

uint64_t parse_size_bytes(const char *option, const char *text) {
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    int shift = 0;
    if (end != text && *end) {
        const char *unit = strchr(units, *end & ~0x20);
        if (unit && *unit) {
            shift = 10 * (int)(unit - units + 1);
            end++;
            if (*end == 'i') end++;
            if (*end == 'B') end++;
        }
    }
    if (end == text || *end || strchr(text, '-'))
        usage_error("%s: '%s' is not a size; give bytes or 64K, 1M, 2G", option, text);
    if (errno || value > (UINT64_C(1) << 40) >> shift) usage_error("%s: %s is more than 1T", option, text);
    return (uint64_t)value << shift;
}

#define WORK_FACTOR UINT64_C(6364136223846793005)
#define WORK_TERM UINT64_C(1442695040888963407)

uint64_t work_loops(uint64_t loops, uint64_t seed) {
    uint64_t x = seed;
    for (uint64_t i = 0; i < loops; i++) {
        x = x * WORK_FACTOR + WORK_TERM;
        __asm__ volatile("" : "+r"(x)); /* keeps the compiler from closing the form */
    }
    return x;
}

uint64_t work_loops_result(uint64_t loops, uint64_t seed) {
    /* 2^i loops are again x -> factor x + term. */
    uint64_t factor = WORK_FACTOR, term = WORK_TERM;
    for (; loops; loops >>= 1) {
        if (loops & 1) seed = seed * factor + term;
        term = (factor + 1) * term;
        factor *= factor;
    }
    return seed;
}

void work_touch(volatile unsigned char *buffer, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) buffer[i]++;
}

double calibrate_loops_per_us(void) {
    enum { TRIES = 15 };
    const uint64_t loops = 500000;
    uint64_t best_ns = UINT64_MAX;
    for (int try = 0; try < TRIES; try++) {
        uint64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
        work_loops(loops, (uint64_t)try);
        uint64_t took_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
        if (took_ns < best_ns) best_ns = took_ns;
    }
    return (double)loops * 1000.0 / (double)(best_ns ? best_ns : 1);
}

double hash_symmetric(uint64_t a, uint64_t b) {
    /* splitmix64 */
    uint64_t z = a * UINT64_C(0x9E3779B97F4A7C15) + b * UINT64_C(0xD1B54A32D192ED03) + UINT64_C(0x2545F4914F6CDD1D);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1.0;
}

void histogram_clear(histogram *h) {
    memset(h, 0, sizeof *h);
    h->min_ns = UINT64_MAX;
}

static size_t bucket_of(uint64_t time_ns) {
    if (time_ns < HISTOGRAM_SUB) return (size_t)time_ns;
    int octave = 63 - __builtin_clzll(time_ns);  /* >= 6 */
    size_t sub = (size_t)(time_ns >> (octave - 6)) & (HISTOGRAM_SUB - 1);
    size_t index = (size_t)(octave - 5) * HISTOGRAM_SUB + sub;
    const size_t last = HISTOGRAM_OCTAVES * HISTOGRAM_SUB - 1;
    return index < last ? index : last;
}

void histogram_add(histogram *h, uint64_t time_ns) {
    h->count++;
    if (time_ns < h->min_ns) h->min_ns = time_ns;
    if (time_ns > h->max_ns) h->max_ns = time_ns;
    h->bucket[bucket_of(time_ns)]++;
}

double histogram_quantile_us(const histogram *h, double q) {
    if (!h->count) return 0;
    if (q <= 0) return (double)h->min_ns / 1000.0;
    if (q >= 1) return (double)h->max_ns / 1000.0;
    uint64_t rank = (uint64_t)(q * (double)(h->count - 1)), seen = 0;
    size_t i = 0;
    for (; i < HISTOGRAM_OCTAVES * HISTOGRAM_SUB; i++) {
        seen += h->bucket[i];
        if (seen > rank) break;
    }
    double low_ns = (double)i;
    if (i >= HISTOGRAM_SUB) low_ns = ldexp((double)(HISTOGRAM_SUB + i % HISTOGRAM_SUB), (int)(i / HISTOGRAM_SUB) - 1);
    if (low_ns < (double)h->min_ns) low_ns = (double)h->min_ns;
    return low_ns / 1000.0;
}
