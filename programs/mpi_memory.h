/* Checks the memory of all nodes, after MPI_Init and before anything large is allocated. */
#ifndef MPI_MEMORY_H
#define MPI_MEMORY_H

/* Every rank leaves with EXIT_USAGE when on one of the nodes its ranks together want more bytes than are available;
 * one of them says so. `what` is the option that requests it, as "--n 5000"; `bytes` is this rank's. */
void nodes_require_memory(const char *program, const char *what, double bytes);

#endif
