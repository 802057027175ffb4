/* Loads a library with STATIC_BYTES of thread-local memory, for which the dynamic linker has only a small reserve. Compiled as
   that library (-DLIBRARY), its constructor polls, too. */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>

#ifdef LIBRARY
__thread char memory[STATIC_BYTES] __attribute__((tls_model("initial-exec")));
int polled = -9;
__attribute__((constructor)) static void start(void) { polled = poll(NULL, 0, 0) + memory[STATIC_BYTES - 1]; }
#else
int main(int count, char **arguments) {
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    int *polled = library ? dlsym(library, "polled") : NULL;
    printf("%s %d\n", library ? "loaded" : "not loaded", polled ? *polled : -8);
    return 0;
}
#endif
