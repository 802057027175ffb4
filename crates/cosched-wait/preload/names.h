/* The functions that libcosched_wait.so interposes. Those that wait in the kernel come first: they are the C library's.
   The others are MPI's, Open MPI's and UCX's. The library exports exactly these (tests/front.rs). */
#define KERNEL_CALLS(X) \
    X(poll) X(ppoll) X(select) X(pselect) X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) X(sched_yield) X(recv) \
    X(recvfrom) X(recvmsg) X(__poll_chk) X(__ppoll_chk) X(__recv_chk) X(__recvfrom_chk)

#define LIBRARY_CALLS(X) \
    X(opal_progress) X(opal_progress_set_yield_when_idle) X(ucp_worker_progress) \
    X(MPI_Send) X(MPI_Ssend) X(MPI_Rsend) X(MPI_Bsend) X(MPI_Recv) X(MPI_Sendrecv) X(MPI_Sendrecv_replace) \
    X(MPI_Isend) X(MPI_Issend) X(MPI_Irsend) X(MPI_Ibsend) X(MPI_Start) X(MPI_Startall) X(MPI_Wait) X(MPI_Waitall) \
    X(MPI_Waitany) X(MPI_Waitsome) X(MPI_Probe) X(MPI_Mprobe) X(MPI_Mrecv) X(MPI_Barrier) X(MPI_Bcast) X(MPI_Reduce) \
    X(MPI_Allreduce) X(MPI_Gather) X(MPI_Gatherv) X(MPI_Scatter) X(MPI_Scatterv) X(MPI_Allgather) X(MPI_Allgatherv) \
    X(MPI_Alltoall) X(MPI_Alltoallv) X(MPI_Alltoallw) X(MPI_Reduce_scatter) X(MPI_Reduce_scatter_block) X(MPI_Scan) \
    X(MPI_Exscan) X(MPI_Win_fence) X(MPI_Win_lock) X(MPI_Win_unlock) X(MPI_Win_lock_all) X(MPI_Win_unlock_all) \
    X(MPI_Win_flush) X(MPI_Win_flush_all) X(MPI_Win_start) X(MPI_Win_complete) X(MPI_Win_post) X(MPI_Win_wait) \
    X(MPI_Comm_split) X(MPI_Comm_dup) X(MPI_Comm_create) X(MPI_Comm_free) X(MPI_Neighbor_allgather) \
    X(MPI_Neighbor_alltoall) X(MPI_Neighbor_alltoallv) X(MPI_Neighbor_allgatherv) \
    X(MPI_Test) X(MPI_Testall) X(MPI_Testany) X(MPI_Testsome) X(MPI_Iprobe) X(MPI_Improbe)
