/* Every kind of MPI call that the wait library marks, with results that do not depend on time; rank 0 prints them. */
#include <mpi.h>
#include <stdio.h>

enum { N = 1000 };

static long hash(const int *words, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) sum = (sum * 31 + words[i]) % 1000000007;
    return sum;
}

int main(int argc, char **argv) {
    int rank, ranks;
    static int in[N], out[8 * N];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    long sum = 0;
    for (int turn = 0; turn < 20; turn++) {
        MPI_Request requests[2];
        MPI_Status status;
        int flag = 0, count;
        for (int i = 0; i < N; i++) in[i] = rank * 7 + i * turn;
        MPI_Sendrecv(in, N, MPI_INT, next, 1, out, N, MPI_INT, last, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        sum += hash(out, N) + count + status.MPI_SOURCE;
        MPI_Isend(in, N, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(out, N, MPI_INT, last, 2, MPI_COMM_WORLD, &requests[1]);
        while (!flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        sum += hash(out, N);
        MPI_Isend(in, N / 2, MPI_INT, last, 3, MPI_COMM_WORLD, &requests[0]);
        for (flag = 0; !flag;) MPI_Iprobe(next, 3, MPI_COMM_WORLD, &flag, &status);
        MPI_Recv(out, N, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        sum += hash(out, N / 2);
        MPI_Bcast(in, N, MPI_INT, turn % ranks, MPI_COMM_WORLD);
        MPI_Allreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum += hash(out, N);
        MPI_Allgather(in + rank, 100, MPI_INT, out, 100, MPI_INT, MPI_COMM_WORLD);
        sum += hash(out, 100 * ranks);
        MPI_Alltoall(in, 50, MPI_INT, out, 50, MPI_INT, MPI_COMM_WORLD);
        sum += hash(out, 50 * ranks);
        MPI_Scan(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum += hash(out, N);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    long all = 0;
    MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks: %ld\n", ranks, all);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
