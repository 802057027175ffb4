/* The objects that the dynamic linker has loaded, read from its own list: nothing here calls the C library, takes a lock or
   allocates, so it may run in a signal handler and before any constructor. Objects loaded at the start are never unloaded. */
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* Most programs do not call these functions: not inlined, their variables take no stack on the common path. */
#define RARE __attribute__((noinline, cold))

extern struct r_debug _r_debug __attribute__((weak, visibility("default")));
/* musl's. */
extern struct r_debug *_dl_debug_addr __attribute__((weak, visibility("default")));
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The symbols and relocations of an object, from its dynamic section. */
struct object {
    ElfW(Addr) base;
    const ElfW(Sym) *symbols;
    const char *names;
    const uint16_t *versions;
    const uint32_t *gnu_hash, *hash;
    const ElfW(Rela) *lazy, *eager;
    size_t lazy_count, eager_count, relative_count;
};

static int equal(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static size_t length(const char *text) {
    size_t count = 0;
    while (text[count]) count++;
    return count;
}

static int begins(const char *text, const char *start) {
    while (*start && *text == *start) text++, start++;
    return !*start;
}

/* The part of a path after its last slash. */
static const char *last_part(const char *path) {
    const char *part = path;
    for (; *path; path++)
        if (*path == '/') part = path + 1;
    return part;
}

static const struct link_map *first_object(void) {
    const struct r_debug *debug = &_r_debug ? &_r_debug : &_dl_debug_addr ? _dl_debug_addr : NULL;
    return debug ? debug->r_map : NULL;
}

static const struct link_map *own_object(void) {
    const struct link_map *map = first_object();
    while (map && map->l_ld != _DYNAMIC) map = map->l_next;
    return map;
}

static struct object read_object(const struct link_map *map) {
    struct object object = {.base = map->l_addr};
    const ElfW(Dyn) *entry = map->l_ld;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) value = entry->d_un.d_val;
        /* glibc adds the base to addresses in place, but not in a section that cannot be written. */
        const void *place = (const void *)(value < map->l_addr ? value + map->l_addr : value);
        switch (entry->d_tag) {
        case DT_SYMTAB: object.symbols = place; break;
        case DT_STRTAB: object.names = place; break;
        case DT_VERSYM: object.versions = place; break;
        case DT_GNU_HASH: object.gnu_hash = place; break;
        case DT_HASH: object.hash = place; break;
        case DT_JMPREL: object.lazy = place; break;
        case DT_PLTRELSZ: object.lazy_count = value / sizeof(ElfW(Rela)); break;
        case DT_RELA: object.eager = place; break;
        case DT_RELASZ: object.eager_count = value / sizeof(ElfW(Rela)); break;
        case DT_RELACOUNT: object.relative_count = value; break;
        }
    }
    return object;
}

/* The address of symbol number `index` if it is a function of this name that the object defines, in its default version. */
static void *defined(const struct object *object, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &object->symbols[index];
    int type = symbol->st_info & 15, binding = symbol->st_info >> 4;
    if (!symbol->st_shndx || (type != STT_FUNC && type != STT_NOTYPE && type != STT_OBJECT)) return NULL;
    if (binding != STB_GLOBAL && binding != STB_WEAK) return NULL;
    if (object->versions && object->versions[index] & 0x8000) return NULL;
    return equal(object->names + symbol->st_name, name) ? (void *)(object->base + symbol->st_value) : NULL;
}

static void *find_by_gnu_hash(const struct object *object, const char *name) {
    const uint32_t *table = object->gnu_hash, buckets = table[0], first = table[1];
    const uint32_t *bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
    uint32_t hash = 5381, index;
    for (const char *at = name; *at; at++) hash = hash * 33 + (unsigned char)*at;
    index = buckets ? bucket[hash % buckets] : 0;
    if (index < first) return NULL;
    for (;; index++) {
        uint32_t other = chain[index - first];
        void *address = (hash | 1) == (other | 1) ? defined(object, index, name) : NULL;
        if (address || other & 1) return address;
    }
}

/* The function of this name that the object defines, or NULL. */
static void *find_in(const struct link_map *map, const char *name) {
    struct object object = read_object(map);
    if (!object.symbols || !object.names) return NULL;
    if (object.gnu_hash) return find_by_gnu_hash(&object, name);
    for (uint32_t index = 1; object.hash && index < object.hash[1]; index++) {
        void *address = defined(&object, index, name);
        if (address) return address;
    }
    return NULL;
}

/* The first such function in the objects from `map` on. */
static void *find_from(const struct link_map *map, const char *name) {
    void *address = NULL;
    for (; map && !address; map = map->l_next) address = find_in(map, name);
    return address;
}
