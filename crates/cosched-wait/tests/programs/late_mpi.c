/* A program that loads a library of MPI for itself alone, as Python's modules do, and calls it: each function must be the library's. With OTHER it watches
 * how they are looked up: meanwhile another thread loads a library, and what does not exist is looked up once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#ifdef LIBRARY
int MPI_Barrier(long communicator) { return 40 + (int)communicator; }
int MPI_Test(long *request, int *flag, void *status) { return (void)status, *flag = 1, 60 + (int)*request; }
/* Open MPI's, without the variable of other versions. */
long opal_progress(void) { return sched_yield(); }
int barrier(void) { return MPI_Barrier(2); }
int test(void) {
    long request = 3;
    int flag = 0;
    return MPI_Test(&request, &flag, NULL) + flag;
}
int progress(void) { return (int)opal_progress(); }
#else

#ifdef OTHER
typedef int visit(struct dl_phdr_info *, size_t, void *);
struct lookup {
    visit *look;
    void *data;
};
static int lookups;
static sem_t looks;

static void *load(void *path) {
    sem_wait(&looks);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static int slowly(struct dl_phdr_info *info, size_t size, void *data) {
    struct lookup *lookup = data;
    static int first = 1;
    if (first) {
        first = 0;
        sem_post(&looks);
        /* The other thread gets as far as it can, while the linker's list is locked for us. */
        usleep(100000);
    }
    return lookup->look(info, size, lookup->data);
}

/* Called by the wait library, too. */
int dl_iterate_phdr(visit *look, void *data) {
    static int (*next)(visit *, void *);
    if (!next) next = (int (*)(visit *, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    struct lookup lookup = {look, data};
    lookups++;
    return next(slowly, &lookup);
}

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* The number of look-ups in a tenth of a second. */
static int lookups_of(int (*progress)(void)) {
    for (int i = 0; i < 1000; i++) progress();
    int before = lookups;
    for (long end_ns = now_ns() + 100000000; now_ns() < end_ns;) progress();
    return lookups - before;
}
#endif

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 1;
    int (*barrier)(void) = (int (*)(void))dlsym(library, "barrier");
    int (*test)(void) = (int (*)(void))dlsym(library, "test");
#ifdef OTHER
    pthread_t other;
    void *loaded = NULL;
    sem_init(&looks, 0, 0);
    pthread_create(&other, NULL, load, argv[2]);
#endif
    printf("%d %d\n", barrier(), test());
#ifdef OTHER
    pthread_join(other, &loaded);
    printf("%s, %d more\n", loaded ? "loaded" : "not loaded", lookups_of((int (*)(void))dlsym(library, "progress")));
#endif
    return 0;
}
#endif
