/* Which programs get libcosched_wait.so: those that have a job to enter, and those that can call one of its functions.
   A program can call one if it imports the name, itself or in one of its libraries, or in a library that it loads
   later: then it imports dlopen. */

#define WORD(name) #name "\0"

/* The system's libraries that import such names for other purposes. Many small programs have them; one that may wait for
   messages has others, too. The starts of their names. */
static const char system_libraries[] =
    WORD(libc.) WORD(ld-linux) WORD(libpthread.) WORD(libdl.) WORD(libstdc++.) WORD(libtinfo.) WORD(libncurses)
    WORD(libreadline.) WORD(libselinux.) WORD(libcap.) WORD(libaudit.) WORD(libcrypto.) WORD(libgcrypt.)
    WORD(libgpg-error.) WORD(libsmartcols.) WORD(libmount.) WORD(libblkid.) WORD(libproc2.) WORD(libsystemd.)
    WORD(libudev.) WORD(libgettext) WORD(libbfd) WORD(libjansson.);

/* Programs that import them, are started by the thousand, and never wait for messages. Their libraries are still examined. */
static const char system_programs[] = WORD(bash) WORD(make) WORD(git) WORD(cc1) WORD(cc1plus) WORD(ld.bfd);

/* Whether calls of this name concern the library. */
static int concerns(const char *name) {
    static const char others[] = WORD(dlopen) WORD(dlmopen) WORD(poll) WORD(ppoll) WORD(select) WORD(pselect) WORD(sched_yield)
        WORD(__poll_chk) WORD(__ppoll_chk);
    switch (*name) {
    case 'M': return begins(name, "MPI_");
    case 'e': return begins(name, "epoll_") && name[6] != 'c';
    case 'o': return begins(name, "opal_progress");
    case 'u': return begins(name, "ucp_worker_progress");
    case 'r': return begins(name, "recv");
    case '_': if (begins(name, "__recv")) return 1; break;
    case 'd': case 'p': case 's': break;
    default: return 0;
    }
    for (const char *other = others; *other; other += length(other) + 1)
        if (equal(name, other)) return 1;
    return 0;
}

static int imports(const struct object *object, const ElfW(Rela) *relocation, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation[i].r_info)];
        if (!symbol->st_shndx && concerns(object->names + symbol->st_name)) return 1;
    }
    return 0;
}

static int can_wait_in(const struct link_map *map) {
    struct object object = read_object(map);
    size_t skipped = object.relative_count < object.eager_count ? object.relative_count : object.eager_count;
    if (!object.symbols || !object.names) return 0;
    return (object.lazy && imports(&object, object.lazy, object.lazy_count))
        || (object.eager && imports(&object, object.eager + skipped, object.eager_count - skipped));
}

static int is_system_library(const char *path) {
    const char *name = last_part(path);
    for (const char *start = system_libraries; *start; start += length(start) + 1)
        if (begins(name, start)) return 1;
    return 0;
}

RARE static int is_system_program(void) {
    char path[4096];
    long size = read_link("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    const char *name = last_part(path);
    /* The names of compilers' programs may begin with the machine's: x86_64-linux-gnu-ld.bfd. */
    for (const char *end = system_programs; *end; end += length(end) + 1) {
        size_t rest = length(name), own = length(end);
        if (rest >= own && equal(name + rest - own, end) && (rest == own || name[rest - own - 1] == '-')) return 1;
    }
    return 0;
}

/* Whether the program or one of its libraries can call one of our functions. The program is the first object. */
static int can_wait(void) {
    const struct link_map *program = first_object();
    if (can_wait_in(program) && !is_system_program()) return 1;
    for (const struct link_map *map = program->l_next; map; map = map->l_next)
        if (map->l_ld != _DYNAMIC && !is_system_library(map->l_name) && can_wait_in(map)) return 1;
    return 0;
}

/* Whether this process is not in the cgroup of the job with this id; if that is unknown, it counts as outside. */
__attribute__((noinline)) static int is_outside(const char *id) {
    char component[32] = "/job-", bytes[1024];
    size_t end = 5;
    for (; *id >= '0' && *id <= '9' && end < 25; id++) component[end++] = *id;
    long size = read_file("/proc/self/cgroup", bytes, sizeof bytes - 1);
    if (*id || size <= 0 || size == sizeof bytes - 1) return 1;
    bytes[size] = 0;
    for (const char *at = bytes; *at; at++)
        if (*at == '/' && begins(at, component) && (at[end] == '/' || at[end] == '\n')) return 0;
    return 1;
}

/* Takes a number, and the character behind it, from a text; returns whether both are the wanted ones. */
static int takes(const char **text, uint64_t wanted, char behind) {
    uint64_t number = 0;
    const char *start = *text;
    for (; **text >= '0' && **text <= '9'; ++*text) number = number * 10 + (uint64_t)(**text - '0');
    return *text > start && number == wanted && *(*text)++ == behind;
}

/* Whether the page is the same file that `cosched run` saw when it put the job's command into the job: then this process is a
   descendant of that command, on the same node. Reading its own cgroup costs a short program more than all the rest. */
static int is_the_jobs(const char *page, const char *seen) {
    struct statx facts;
    return page && seen && *page && look_at(page, &facts) && takes(&seen, facts.stx_ino, '-')
        && takes(&seen, (uint64_t)facts.stx_btime.tv_sec, '-') && takes(&seen, facts.stx_btime.tv_nsec, 0);
}

/* The value of the variable, if `word` is its definition; otherwise NULL. */
static const char *value_of(const char *word, const char *start) {
    return begins(word, start) ? word + length(start) : NULL;
}

/* Whether COSCHED_JOB names a job that this process has to enter. */
static int has_to_enter(char **environment) {
    const char *id = NULL, *page = NULL, *seen = NULL, *value;
    for (; *environment; environment++) {
        if (!begins(*environment, "COSCHED_")) continue;
        if ((value = value_of(*environment, "COSCHED_JOB=")) && !id) id = value;
        if ((value = value_of(*environment, "COSCHED_WAIT_PAGE=")) && !page) page = value;
        if ((value = value_of(*environment, "COSCHED_WAIT_PAGE_SEEN=")) && !seen) seen = value;
    }
    return id && *id && !is_the_jobs(page, seen) && is_outside(id);
}
