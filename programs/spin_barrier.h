/* A barrier of threads that never yields the CPU: the wait of a tightly synchronised program. */
#ifndef SPIN_BARRIER_H
#define SPIN_BARRIER_H

#include <stdatomic.h>

typedef struct {
    _Alignas(64) atomic_uint arrived;
    _Alignas(64) atomic_uint generation;
    unsigned members; /* set before the first meeting */
} spin_barrier;

static inline void spin_meet(spin_barrier *b) {
    unsigned generation = atomic_load_explicit(&b->generation, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == b->members) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&b->generation, generation + 1, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&b->generation, memory_order_acquire) == generation) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
}

#endif
