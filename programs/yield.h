/* The work between yields, with one copy and with two. */
#ifndef YIELD_H
#define YIELD_H

#include "common.h"

typedef enum { BY_YIELD, BY_RR, BY_FUTEX } yield_by;

typedef struct {
    uint64_t yields, loops;
    double grain_us; /* asked for; 0 when the loops were given */
    int cpu;         /* -1: the first that it may run on */
    unsigned repetitions;
    yield_by by;
    int pair, json;
} yield_options;

/* The result of one copy. */
typedef struct {
    uint64_t start_ns, end_ns, cpu_ns, switches;
    int wrong; /* the result of its work is not that of its loops */
} yield_copy;

/* Pins this process to the CPU; chooses one and stores it when it is -1. */
void yield_pin(yield_options *o);

/* Loops and yields. `turn` and `self` say whose turn it is, for BY_FUTEX; `copies` is 1 or 2. */
void yield_work(const yield_options *o, unsigned *turn, unsigned self, unsigned copies, yield_copy *result);

/* Starts `copies` copies, 1 or 2, on the CPU at once and waits for them. */
void yield_copies(const yield_options *o, unsigned copies, yield_copy *results);

/* What --pair found: medians of the repetitions, in which one copy and two alternate. */
typedef struct {
    double t1_s, t2_s;
    double alpha_c_us;         /* by the switches that there really were */
    double alpha_c_yield_us;   /* (t2 - 2 t1) / (2 y) */
    double alpha_c_cpu_us;     /* from CPU times: not affected by other programs on the machine */
    double alpha_c_min_us, alpha_c_max_us; /* of the repetitions */
    double switches_per_yield; /* with two copies, less those of one */
    int wrong;
} yield_pair_result;

void yield_pair(const yield_options *o, yield_pair_result *result);

#endif
