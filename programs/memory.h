/* How much memory this process could still get: asked before anything large is allocated. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdint.h>

/* Bytes: the minimum of MemAvailable and of what the limits of this process's cgroups leave, where reclaimable page cache
 * counts as left. `*why` says which one it was. UINT64_MAX when the system does not tell. */
uint64_t memory_available_bytes(const char **why);

/* "1.5 GiB" into `text`, which is returned. */
typedef char bytes_text[32];
const char *bytes_as_text(bytes_text text, double bytes);

/* usage_error when one process needs more than is available; `what` is the option that requests it, as "--n 5000". */
void memory_require(const char *what, double bytes);

#endif
