/* Blocks of rows or columns dealt out round and round: block b belongs to part b % parts. */
#ifndef CYCLIC_H
#define CYCLIC_H

/* How many of the first `count` indices belong to part i; also the local index of index `count`, if i owns it. */
static inline int owned(int count, int block, int i, int parts) {
    int blocks = count / block, whole = blocks / parts, extra = blocks % parts;
    return whole * block + (i < extra ? block : i == extra ? count % block : 0);
}

static inline int owner(int index, int block, int parts) { return index / block % parts; }

/* The global index of a local index of part i. */
static inline int global_index(int local, int block, int i, int parts) {
    return (local / block * parts + i) * block + local % block;
}

#endif
