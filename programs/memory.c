#define _GNU_SOURCE
#include "memory.h"

#include "common.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The number after `key` in a file of lines such as "MemAvailable: 123 kB" or "inactive_file 123"; returns 0 when missing. */
static int file_number(const char *path, const char *key, uint64_t *value) {
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    char line[256];
    int found = 0;
    size_t length = strlen(key);
    while (!found && fgets(line, sizeof line, file))
        if (!strncmp(line, key, length)) {
            char *end;
            *value = strtoull(line + length, &end, 10);
            found = end != line + length;
        }
    fclose(file);
    return found;
}

/* The files of a memory cgroup, version 1 and 2. */
typedef struct {
    const char *limit, *usage, *reclaimable;
} cgroup_files;
static const cgroup_files files_v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
static const cgroup_files files_v2 = {"memory.max", "memory.current", "inactive_file "};

/* The memory left in the single cgroup at `directory`. */
static uint64_t cgroup_left_bytes(const char *directory, const cgroup_files *files) {
    char path[2 * PATH_MAX + 64];
    uint64_t limit, usage, cache = 0;
    snprintf(path, sizeof path, "%s/%s", directory, files->limit);
    if (!file_number(path, "", &limit)) return UINT64_MAX; /* also "max" */
    snprintf(path, sizeof path, "%s/%s", directory, files->usage);
    if (!file_number(path, "", &usage)) return UINT64_MAX;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    file_number(path, files->reclaimable, &cache);
    usage -= cache < usage ? cache : usage;
    return limit > usage ? limit - usage : 0;
}

/* This process's path in the hierarchy of version 1 with the memory controller, or of version 2. */
static int own_cgroup(int v2, char *path, size_t size) {
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (!file) return 0;
    char line[PATH_MAX + 64];
    int found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *at = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!at) continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        controllers++;
        char list[sizeof line + 2];
        snprintf(list, sizeof list, ",%s,", controllers);
        found = v2 ? !*controllers : strstr(list, ",memory,") != NULL;
        if (found && snprintf(path, size, "%s", at) >= (int)size) found = 0;
    }
    fclose(file);
    return found;
}

/* The least memory that the cgroups from `path` up to the mount leave. */
static uint64_t cgroups_left_bytes(const char *mount, const char *root, const char *path, const cgroup_files *files) {
    size_t skip = strcmp(root, "/") ? strlen(root) : 0;
    if (strncmp(path, root, skip)) return UINT64_MAX;
    char directory[2 * PATH_MAX];
    snprintf(directory, sizeof directory, "%s%s", mount, path + skip);
    size_t shortest = strlen(mount);
    uint64_t least = UINT64_MAX;
    for (;;) {
        uint64_t left = cgroup_left_bytes(directory, files);
        if (left < least) least = left;
        char *slash = strrchr(directory, '/');
        if (!slash || (size_t)(slash - directory) < shortest) return least;
        *slash = '\0';
    }
}

static uint64_t all_cgroups_left_bytes(void) {
    FILE *file = fopen("/proc/self/mountinfo", "r");
    if (!file) return UINT64_MAX;
    char line[4 * PATH_MAX], root[PATH_MAX], mount[PATH_MAX], path[PATH_MAX];
    uint64_t least = UINT64_MAX;
    while (fgets(line, sizeof line, file)) {
        const char *type = strstr(line, " - ");
        if (!type || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2) continue;
        int v2 = !strncmp(type + 3, "cgroup2 ", 8), v1 = !strncmp(type + 3, "cgroup ", 7) && strstr(type, "memory");
        if ((!v1 && !v2) || !own_cgroup(v2, path, sizeof path)) continue;
        uint64_t left = cgroups_left_bytes(mount, root, path, v2 ? &files_v2 : &files_v1);
        if (left < least) least = left;
    }
    fclose(file);
    return least;
}

uint64_t memory_available_bytes(const char **why) {
    uint64_t available = UINT64_MAX, kib, left = all_cgroups_left_bytes();
    *why = "the machine has";
    if (file_number("/proc/meminfo", "MemAvailable:", &kib)) available = kib * 1024;
    if (left >= available) return available;
    *why = "the limit of its cgroup leaves";
    return left;
}

const char *bytes_as_text(bytes_text text, double bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++) bytes /= 1024;
    snprintf(text, sizeof(bytes_text), unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

void memory_require(const char *what, double bytes) {
    const char *why;
    uint64_t available = memory_available_bytes(&why);
    bytes_text need, have;
    if (bytes > (double)available)
        usage_error("%s needs %s of memory, and %s %s; give a smaller one", what, bytes_as_text(need, bytes), why,
                    bytes_as_text(have, (double)available));
}
