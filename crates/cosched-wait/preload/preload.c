/* libcosched_preload.so: what LD_PRELOAD names in every program of a job. It loads libcosched_wait.so, which is beside
   it, into those programs that need it (rule.h), and costs the others a few microseconds.

   The functions of names.h are here, as symbols are bound before any constructor runs: each jumps to the function in its
   slot, which is libcosched_wait.so's, or the one that the program would have called without us. That library's thread-local
   memory is also here: for a library that is loaded late, it would have to be allocated, which a signal handler must not do,
   or be taken from the small reserve of the dynamic linker, which others need. decisions/0047.

   Freestanding: no C library, no relocations but three, two mappings. */
#include "objects.h"
#include "kernel.h"
#include "names.h"
#include "rule.h"

#define COUNT(name) +1
#define NAME(name) #name "\0"
enum { KERNEL_CALL_COUNT = KERNEL_CALLS(COUNT), CALL_COUNT = KERNEL_CALL_COUNT LIBRARY_CALLS(COUNT) };
static const char names[] = KERNEL_CALLS(NAME) LIBRARY_CALLS(NAME);

/* The target of each function's jump; null until it is known. */
__attribute__((visibility("hidden"))) void *cosched_slots[CALL_COUNT];

/* As `Front` in src/front.rs, where it is described. */
enum { VERSION = 1, LOADING = 1, READY = 2 };
__attribute__((visibility("protected"))) struct {
    uint32_t version, state;
    ptrdiff_t memory_offset;
    size_t memory_size;
    void *(*next)(void *dlsym, const char *name);
    const char *start, *end;
} cosched_wait_front;

static __thread char memory[1024] __attribute__((tls_model("initial-exec"), aligned(16)));
extern const char start_of_file[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
__attribute__((visibility("hidden"))) void *cosched_next(void *dlsym, const char *name);
__attribute__((visibility("hidden"), used)) void *cosched_find(unsigned index);
#include "jump.h"

static const char *name_of(unsigned index) {
    const char *name = names;
    while (index--) name += length(name) + 1;
    return name;
}

/* Opens libcosched_wait.so. It finds `cosched_wait_front` by its name, and reports there that it is ready. */
RARE static void *open_library(const struct link_map *own) {
    static const char file[] = "libcosched_wait.so";
    char path[4096];
    size_t directory = last_part(own->l_name) - own->l_name;
    if (directory + sizeof file > sizeof path) return NULL;
    for (size_t i = 0; i < directory; i++) path[i] = own->l_name[i];
    for (size_t i = 0; i < sizeof file; i++) path[directory + i] = file[i];
    void *(*open)(const char *, int) = find_from(own->l_next, "dlopen");
    /* Before glibc 2.34 dlopen is in a library that a program may not have loaded. */
    if (!open) open = find_from(own->l_next, "__libc_dlopen_mode");
    char *(*forget_error)(void) = find_from(own->l_next, "dlerror");
    const int now = 2, never_unloaded = 0x1000;
    void *library = open ? open(path, now | never_unloaded) : NULL;
    if (!library && forget_error) forget_error();
    return library;
}

/* Loads libcosched_wait.so, once, and lets our functions jump to those of that library. */
RARE static void load(const struct link_map *own) {
    static char begun;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL)) return;
    int *(*place_of_errno)(void) = find_from(own->l_next, "__errno_location");
    int error = place_of_errno ? *place_of_errno() : 0;
    cosched_wait_front.memory_offset = from_thread_pointer(memory);
    cosched_wait_front.memory_size = sizeof memory;
    cosched_wait_front.next = cosched_next;
    cosched_wait_front.start = start_of_file;
    cosched_wait_front.end = (const char *)_DYNAMIC;
    cosched_wait_front.version = VERSION;
    cosched_wait_front.state = LOADING;
    /* In glibc, a handle is the object's link map. */
    const struct link_map *library = open_library(own);
    const char *name = names;
    for (unsigned i = 0; library && cosched_wait_front.state == READY && i < CALL_COUNT; i++, name += length(name) + 1)
        __atomic_store_n(&cosched_slots[i], find_in(library, name), __ATOMIC_RELEASE);
    cosched_wait_front.state = 0;
    if (place_of_errno) *place_of_errno() = error;
}

static int absent(void) {
    return -1;
}

/* The target of function number `index` if its slot is empty: the program's next function of this name, if our constructor
   has not run yet or did not load the library. The C library's functions are in an object loaded at the start. MPI's can only
   be called here in a program that did not seem to load any MPI: then the library, which finds them, is loaded now. */
void *cosched_find(unsigned index) {
    const struct link_map *own = own_object();
    const char *name = name_of(index);
    void *address = own && index < KERNEL_CALL_COUNT ? find_from(own->l_next, name) : NULL;
    if (!address && own && &_r_debug) {
        load(own);
        address = __atomic_load_n(&cosched_slots[index], __ATOMIC_ACQUIRE);
    }
    if (!address && own) address = find_from(own->l_next, name);
    if (!address) return absent;
    __atomic_store_n(&cosched_slots[index], address, __ATOMIC_RELEASE);
    return address;
}

/* Whether this library, from another installation, is loaded before us, or libcosched_wait.so itself is preloaded, too. */
static int has_another(const struct link_map *own) {
    int before = 1;
    for (const struct link_map *map = first_object(); map; map = map->l_next) {
        const char *name = last_part(map->l_name);
        if (map == own) before = 0;
        else if (equal(name, "libcosched_wait.so") || (before && equal(name, last_part(own->l_name)))) return 1;
    }
    return 0;
}

/* Runs before `main`, after the other libraries' constructors, with the arguments that glibc passes to a constructor. */
__attribute__((visibility("hidden"), used)) void cosched_start(int count, char **arguments, char **environment) {
    (void)count, (void)arguments;
    const struct link_map *own = &_r_debug ? own_object() : NULL;
    if (own && !has_another(own) && (has_to_enter(environment) || can_wait())) load(own);
}
