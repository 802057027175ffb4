/* Each process of a communicator has a segment, and all processes get all segments: the broadcasts of the matrix multiply
 * of Strazdins and Uhlmann (2004), section 5.2 and 5.3, and of Tan and Strazdins (2002). */
#ifndef BROADCAST_H
#define BROADCAST_H

#include <mpi.h>

typedef enum { BROADCAST_RING, BROADCAST_TREE, BROADCAST_PIPELINED } broadcast_kind;

/* The kind with this name; a usage error when the name is unknown. */
broadcast_kind broadcast_parse(const char *name);
const char *broadcast_name(broadcast_kind kind);

/* Segment i has counts[i] numbers at all + offsets[i]; this process's own is there before the call, all are there after it.
 *   ring       segments go round: each step every process sends on what came in the step before; P - 1 messages each
 *   tree       one binomial tree for each segment: lg P steps for each
 *   pipelined  one chain for each segment, which passes in pieces of 64 KiB, so that all links work at once
 * With one process, or where a segment is empty, nothing is sent. */
void broadcast_all(broadcast_kind kind, double *all, const int *counts, const int *offsets, MPI_Comm comm);

#endif
