/* Does a known number of operations of each kind, so that a recording can be checked. Ranks: 2 or more. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20
#define WORDS 100

static void compute(double seconds) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    double end = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec < end);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double in[WORDS] = {0}, out[WORDS] = {0}, sum[WORDS];
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    /* A round: 1 ms; two messages to the right, one of them received from any source; one collective operation. */
    for (int i = 0; i < ROUNDS; i++) {
        compute(1e-3);
        MPI_Request requests[2];
        MPI_Irecv(in, WORDS, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, WORDS, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Send(out, 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD);
        MPI_Recv(in, WORDS, MPI_DOUBLE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(out, sum, WORDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }

    /* In a communicator with the ranks in reverse order, the neighbours differ. One message to itself, one to MPI_PROC_NULL. */
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    int mine;
    MPI_Comm_rank(reversed, &mine);
    MPI_Sendrecv(out, 7, MPI_DOUBLE, (mine + 1) % ranks, 3, in, 7, MPI_DOUBLE, (mine + ranks - 1) % ranks, 3, reversed,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 1, MPI_DOUBLE, mine, 4, in, 1, MPI_DOUBLE, mine, 4, reversed, MPI_STATUS_IGNORE);
    MPI_Send(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 5, reversed);
    MPI_Bcast(out, 10, MPI_DOUBLE, 0, reversed);
    MPI_Comm_free(&reversed);

    /* A nonblocking barrier, tested repeatedly. */
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(2000);
    }

    /* A wait that MPI does not know about. */
    usleep(100000);
    if (argc > 1 && strcmp(argv[1], "persistent") == 0) {
        MPI_Request persistent;
        if (rank == 0) MPI_Send_init(out, 1, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD, &persistent);
        if (rank == 1) MPI_Recv_init(in, 1, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, &persistent);
        if (rank < 2) {
            MPI_Start(&persistent);
            MPI_Wait(&persistent, MPI_STATUS_IGNORE);
            MPI_Request_free(&persistent);
        }
    }
    if (argc > 1 && strcmp(argv[1], "dies") == 0) _exit(7);
    if (argc > 1 && strcmp(argv[1], "stays") == 0) {
        if (rank == 0) fprintf(stderr, "here\n");
        for (;;) pause();
    }
    MPI_Finalize();
    return 0;
}
