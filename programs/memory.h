/* How much memory this process could still get: asked before anything large is allocated. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdint.h>

/* Bytes: the least of MemAvailable and of what the limits of this process's cgroups leave, where page cache that can go
 * counts as left. `*why` says which it was. UINT64_MAX when the system does not tell. */
uint64_t memory_available_bytes(const char **why);

/* "1.5 GiB" into `text`, which is returned. */
typedef char bytes_text[32];
const char *bytes_as_text(bytes_text text, double bytes);

/* usage_error when one process needs more than there is; `what` is the option that asks for it, as "--n 5000". */
void memory_require(const char *what, double bytes);

#endif
