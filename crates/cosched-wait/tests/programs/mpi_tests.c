/* A rank that computes and tests whether a message has come, in turns: it does not wait before its work is done. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    enum { TESTS = 1000000 };
    double worked = 1;
    int rank, received = 0, sent = 1, done;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(&received, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    for (int i = 0; i < TESTS; i++) {
        worked = worked * 1.0000001 + 1;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    MPI_Send(&sent, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0) printf("%d tests: %d, %g\n", TESTS, received, worked);
    MPI_Finalize();
    return 0;
}
