#define _GNU_SOURCE
#include "broadcast.h"

#include "common.h"

#include <string.h>

enum { TAG = 7, PIECE_WORDS = 8192 };

static const char *const names[] = {"ring", "tree", "pipelined"};

broadcast_kind broadcast_parse(const char *name) {
    for (int kind = BROADCAST_RING; kind <= BROADCAST_PIPELINED; kind++)
        if (!strcmp(name, names[kind])) return (broadcast_kind)kind;
    usage_error("--broadcast: '%s' is unknown; give ring, tree or pipelined", name);
}

const char *broadcast_name(broadcast_kind kind) { return names[kind]; }

static void ring(double *all, const int *counts, const int *offsets, int self, int size, MPI_Comm comm) {
    int next = (self + 1) % size, previous = (self + size - 1) % size;
    for (int step = 0; step < size - 1; step++) {
        int out = (self + size - step) % size, in = (self + 2 * size - step - 1) % size;
        MPI_Sendrecv(all + offsets[out], counts[out], MPI_DOUBLE, next, TAG, all + offsets[in], counts[in], MPI_DOUBLE,
                     previous, TAG, comm, MPI_STATUS_IGNORE);
    }
}

/* Process i, counted from the root, gets the segment from i without its highest bit, then passes it to i + 2^b. */
static void tree(double *segment, int count, int root, int self, int size, MPI_Comm comm) {
    int i = (self + size - root) % size, bit = 1;
    for (; bit <= i; bit *= 2)
        if (i < 2 * bit)
            MPI_Recv(segment, count, MPI_DOUBLE, (i - bit + root) % size, TAG, comm, MPI_STATUS_IGNORE);
    for (; i + bit < size; bit *= 2) MPI_Send(segment, count, MPI_DOUBLE, (i + bit + root) % size, TAG, comm);
}

/* A piece is passed on while the next one arrives. */
static void chain(double *segment, int count, int root, int self, int size, MPI_Comm comm) {
    int i = (self + size - root) % size, next = (self + 1) % size, previous = (self + size - 1) % size;
    MPI_Request out = MPI_REQUEST_NULL;
    for (int begin = 0; begin < count; begin += PIECE_WORDS) {
        int words = count - begin < PIECE_WORDS ? count - begin : PIECE_WORDS;
        if (i > 0) MPI_Recv(segment + begin, words, MPI_DOUBLE, previous, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&out, MPI_STATUS_IGNORE);
        if (i < size - 1) MPI_Isend(segment + begin, words, MPI_DOUBLE, next, TAG, comm, &out);
    }
    MPI_Wait(&out, MPI_STATUS_IGNORE);
}

void broadcast_all(broadcast_kind kind, double *all, const int *counts, const int *offsets, MPI_Comm comm) {
    int self, size;
    MPI_Comm_rank(comm, &self);
    MPI_Comm_size(comm, &size);
    if (kind == BROADCAST_RING) {
        ring(all, counts, offsets, self, size, comm);
        return;
    }
    for (int root = 0; root < size; root++) {
        if (!counts[root]) continue;
        if (kind == BROADCAST_TREE)
            tree(all + offsets[root], counts[root], root, self, size, comm);
        else
            chain(all + offsets[root], counts[root], root, self, size, comm);
    }
}
