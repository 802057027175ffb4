/* A program that loads a library of MPI for itself alone, as Python's modules do, and calls it: each function must be the library's. */
#include <stdio.h>
#ifdef LIBRARY
int MPI_Barrier(long communicator) { return 40 + (int)communicator; }
int MPI_Test(long *request, int *flag, void *status) { return (void)status, *flag = 1, 60 + (int)*request; }
int barrier(void) { return MPI_Barrier(2); }
int test(void) {
    long request = 3;
    int flag = 0;
    return MPI_Test(&request, &flag, NULL) + flag;
}
#else
#include <dlfcn.h>

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 1;
    int (*barrier)(void) = (int (*)(void))dlsym(library, "barrier");
    int (*test)(void) = (int (*)(void))dlsym(library, "test");
    printf("%d %d\n", barrier(), test());
    return 0;
}
#endif
