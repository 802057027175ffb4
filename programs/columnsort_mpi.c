/* The MPI functions that cosched-columnsort needs, as plain functions in a shared library: the program is built without MPI and loads
 * the library of the implementation that started it. Only bytes, lengths in 64 bits, and errors as return values.
 *
 * Waiting: a rank has several threads that compute, read and write while this one waits. MPI's own waits spin; these poll
 * for a moment, and then sleep between polls, so that the CPU is free for the other stages. */
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* The program checks this number first. */
#define INTERFACE 1
/* Errors of our own; MPI's are positive. */
#define TOO_LONG (-1)
#define NO_THREADS (-2)

#define LOOKS 200
#define SLEEP_NS_MIN 20000
#define SLEEP_NS_MAX 500000
#define MESSAGE_BYTES_MAX (1 << 30)

int cosched_mpi_interface(void);
int cosched_mpi_init(int32_t *rank, int32_t *size);
int cosched_mpi_all_to_all(const void *send, const int64_t *send_bytes, const int64_t *send_at, void *receive,
                           const int64_t *receive_bytes, const int64_t *receive_at, int32_t size);
int cosched_mpi_send_receive(const void *send, int64_t send_bytes, int32_t to, void *receive, int64_t receive_bytes, int32_t from);
int cosched_mpi_barrier(void);
int cosched_mpi_broadcast(void *bytes, int64_t length);
int cosched_mpi_sum(uint64_t *value);
void cosched_mpi_abort(int32_t code);
int cosched_mpi_finalize(void);
void cosched_mpi_error(int32_t code, char *text, int32_t length);

static int wait_for(MPI_Request *request) {
    struct timespec pause = {0, SLEEP_NS_MIN};
    for (int look = 0;; look++) {
        int done = 0;
        int error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done)
            return error;
        if (look < LOOKS)
            continue;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < SLEEP_NS_MAX)
            pause.tv_nsec *= 2;
    }
}

int cosched_mpi_interface(void) {
    return INTERFACE;
}

int cosched_mpi_init(int32_t *rank, int32_t *size) {
    int provided, mine, all;
    /* The passes come one after the other, each with a thread of its own that communicates. */
    int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (error != MPI_SUCCESS)
        return error;
    if (provided < MPI_THREAD_SERIALIZED)
        return NO_THREADS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    *rank = mine;
    *size = all;
    return 0;
}

int cosched_mpi_all_to_all(const void *send, const int64_t *send_bytes, const int64_t *send_at, void *receive,
                           const int64_t *receive_bytes, const int64_t *receive_at, int32_t size) {
    int counts[4 * size];
    int *sends = counts, *from = counts + size, *receives = counts + 2 * size, *to = counts + 3 * size;
    for (int i = 0; i < size; i++) {
        if (send_bytes[i] > INT_MAX || send_at[i] > INT_MAX || receive_bytes[i] > INT_MAX || receive_at[i] > INT_MAX)
            return TOO_LONG;
        sends[i] = (int)send_bytes[i];
        from[i] = (int)send_at[i];
        receives[i] = (int)receive_bytes[i];
        to[i] = (int)receive_at[i];
    }
    MPI_Request request;
    int error = MPI_Ialltoallv(send, sends, from, MPI_BYTE, receive, receives, to, MPI_BYTE, MPI_COMM_WORLD, &request);
    return error != MPI_SUCCESS ? error : wait_for(&request);
}

int cosched_mpi_send_receive(const void *send, int64_t send_bytes, int32_t to, void *receive, int64_t receive_bytes, int32_t from) {
    const char *out = send;
    char *in = receive;
    while (send_bytes > 0 || receive_bytes > 0) {
        int going = (int)(send_bytes < MESSAGE_BYTES_MAX ? send_bytes : MESSAGE_BYTES_MAX);
        int coming = (int)(receive_bytes < MESSAGE_BYTES_MAX ? receive_bytes : MESSAGE_BYTES_MAX);
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int error = MPI_SUCCESS;
        if (coming > 0)
            error = MPI_Irecv(in, coming, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[0]);
        if (error == MPI_SUCCESS && going > 0)
            error = MPI_Isend(out, going, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[1]);
        for (int i = 0; i < 2 && error == MPI_SUCCESS; i++)
            error = wait_for(&requests[i]);
        if (error != MPI_SUCCESS)
            return error;
        out += going, in += coming;
        send_bytes -= going, receive_bytes -= coming;
    }
    return 0;
}

int cosched_mpi_barrier(void) {
    MPI_Request request;
    int error = MPI_Ibarrier(MPI_COMM_WORLD, &request);
    return error != MPI_SUCCESS ? error : wait_for(&request);
}

int cosched_mpi_broadcast(void *bytes, int64_t length) {
    MPI_Request request;
    if (length > INT_MAX)
        return TOO_LONG;
    int error = MPI_Ibcast(bytes, (int)length, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    return error != MPI_SUCCESS ? error : wait_for(&request);
}

int cosched_mpi_sum(uint64_t *value) {
    MPI_Request request;
    uint64_t mine = *value;
    int error = MPI_Iallreduce(&mine, value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    return error != MPI_SUCCESS ? error : wait_for(&request);
}

void cosched_mpi_abort(int32_t code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}

int cosched_mpi_finalize(void) {
    return MPI_Finalize();
}

void cosched_mpi_error(int32_t code, char *text, int32_t length) {
    char message[MPI_MAX_ERROR_STRING];
    int used = 0;
    if (length <= 0)
        return;
    if (code == TOO_LONG)
        strcpy(message, "a block has 2 GiB or more; take smaller ones");
    else if (code == NO_THREADS)
        strcpy(message, "this MPI cannot be used from several threads one after the other (MPI_THREAD_SERIALIZED)");
    else if (MPI_Error_string(code, message, &used) != MPI_SUCCESS)
        strcpy(message, "unknown error");
    strncpy(text, message, (size_t)length - 1);
    text[length - 1] = 0;
}
