/* One job: two tasks compute and meet at a barrier, again and again.
 *
 *     job FORM LOOPS ROUNDS [START_NS]    prints {"form": …, "seconds": …}
 *     job calibrate                       prints {"loops_per_us": …}
 *
 * FORM says how a task waits for the other one: spin (busily), futex (the kernel blocks its thread) or nosv (nOS-V pauses its
 * task; only if the program is compiled with -DNOSV). LOOPS is the work between two meetings. The tasks begin at START_NS of
 * CLOCK_MONOTONIC, and the seconds count from there, so that several jobs begin at once and their start-up does not count.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef NOSV
#include <nosv.h>
#include <nosv/compat.h>
#endif

enum { TASKS = 2 };
enum form { SPIN, FUTEX, PAUSE, FORMS };
static const char *const NAMES[FORMS] = {"spin", "futex", "nosv"};

static enum form form;
static uint64_t loops, rounds;
static pthread_barrier_t blocking;
static atomic_uint arrived, generation;
#ifdef NOSV
static nosv_barrier_t pausing;
#endif

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void compute(uint64_t count)
{
	uint64_t value = 1;
	for (uint64_t at = 0; at < count; at++) {
		value = value * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(value));
	}
}

static void spin_until_all_are_here(void)
{
	unsigned before = atomic_load(&generation);
	if (atomic_fetch_add(&arrived, 1) + 1 == TASKS) {
		atomic_store(&arrived, 0);
		atomic_store(&generation, before + 1);
		return;
	}
	while (atomic_load_explicit(&generation, memory_order_acquire) == before)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		;
#endif
}

static void meet(void)
{
	if (form == SPIN)
		spin_until_all_are_here();
	else if (form == FUTEX)
		pthread_barrier_wait(&blocking);
#ifdef NOSV
	else if (nosv_barrier_wait(&pausing) != 0)
		abort();
#endif
}

static void *task(void *nothing)
{
	for (uint64_t round = 0; round < rounds; round++) {
		compute(loops);
		meet();
	}
	return nothing;
}

static int started(pthread_t *thread)
{
#ifdef NOSV
	if (form == PAUSE)
		return nosv_pthread_create(thread, NULL, task, NULL);
#endif
	return pthread_create(thread, NULL, task, NULL);
}

/* What runs undisturbed counts: the fastest of many short runs. */
static int calibrate(void)
{
	uint64_t best = UINT64_MAX, count = 1000000;
	for (int run = 0; run < 200; run++) {
		uint64_t begin = now_ns();
		compute(count);
		uint64_t took = now_ns() - begin;
		best = took < best ? took : best;
	}
	printf("{\"loops_per_us\": %.3f}\n", (double)count * 1000.0 / (double)best);
	return 0;
}

static int run(uint64_t start)
{
	pthread_t threads[TASKS];
	pthread_barrier_init(&blocking, NULL, TASKS);
#ifdef NOSV
	if (form == PAUSE && (nosv_init() != 0 || nosv_barrier_init(&pausing, NULL, TASKS) != 0)) {
		fprintf(stderr, "job: nOS-V cannot be initialised\n");
		return 1;
	}
#endif
	struct timespec time = {.tv_sec = (time_t)(start / 1000000000u), .tv_nsec = (long)(start % 1000000000u)};
	if (start == 0)
		start = now_ns();
	else
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
			;
	for (int at = 0; at < TASKS; at++)
		if (started(&threads[at]) != 0)
			return 1;
	for (int at = 0; at < TASKS; at++)
		pthread_join(threads[at], NULL);
	printf("{\"form\": \"%s\", \"seconds\": %.6f}\n", NAMES[form], (double)(now_ns() - start) / 1e9);
	fflush(stdout);
#ifdef NOSV
	return form == PAUSE && nosv_shutdown() != 0;
#else
	return 0;
#endif
}

int main(int count, char **words)
{
	if (count == 2 && strcmp(words[1], "calibrate") == 0)
		return calibrate();
	for (form = SPIN; count >= 4 && form < FORMS && strcmp(words[1], NAMES[form]) != 0; form++)
		;
#ifndef NOSV
	form = form == PAUSE ? FORMS : form;
#endif
	if (count < 4 || form == FORMS) {
		fprintf(stderr, "usage: job calibrate, or job spin|futex|nosv LOOPS ROUNDS [START_NS]\n");
		return 2;
	}
	loops = strtoull(words[2], NULL, 10);
	rounds = strtoull(words[3], NULL, 10);
	return run(count > 4 ? strtoull(words[4], NULL, 10) : 0);
}
