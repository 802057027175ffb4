/* Waiting for MPI without taking the CPU all the time. */
#ifndef MPI_WAIT_H
#define MPI_WAIT_H

#include <mpi.h>
#include <sys/prctl.h>
#include <time.h>

/* Makes short sleeps end on time; otherwise each takes 50 us more. */
static inline void mpi_wait_start(void) { prctl(PR_SET_TIMERSLACK, 1UL); }

/* Completes the request: tests, with sleeps of 10 to 200 us between. */
static inline void mpi_wait_blocking(MPI_Request *request) {
    struct timespec pause = {0, 10000};
    for (int done = 0;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 200000) pause.tv_nsec *= 2;
        if (pause.tv_nsec > 200000) pause.tv_nsec = 200000;
    }
}

#endif
