#define _GNU_SOURCE
#include "mpi_memory.h"

#include "common.h"
#include "memory.h"

#include <mpi.h>
#include <stdlib.h>

void nodes_require_memory(const char *program, const char *what, double bytes) {
    const char *why;
    double available = (double)memory_available_bytes(&why), all = 0;
    int rank, ranks, here, first;
    MPI_Comm node;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Allreduce(&bytes, &all, 1, MPI_DOUBLE, MPI_SUM, node);
    /* Ranks of a node may be in different cgroups: each checks for itself, and the first one refused prints the message. */
    int refused = all > available ? rank : ranks;
    MPI_Allreduce(&refused, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Comm_free(&node);
    if (first == ranks) return;
    if (rank == first) {
        bytes_text need, have;
        fprintf(stderr,
                "%s: %s needs %s of memory for the %d ranks on a node, and %s %s; give a smaller one, or more nodes\n",
                program, what, bytes_as_text(need, all), here, why, bytes_as_text(have, available));
    }
    MPI_Finalize();
    exit(EXIT_USAGE);
}
