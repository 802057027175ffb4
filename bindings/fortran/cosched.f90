! cosched for programs in Fortran 2008: jobs that are scheduled as gangs. Compile this file together with the program, and link
! with libcosched:
!
!   gfortran $(pkg-config --variable=fortran_source cosched) program.f90 $(pkg-config --libs cosched)
!
! Each subroutine is the C function of the same name (man 3 cosched_register, ...). `ierr` is 0, or a negative cosched_err_...;
! on an error nothing has been changed or set, and cosched_last_error() returns this thread's error message. docs/api.md has
! examples.

! The C interface, for module cosched.
module cosched_c
    use, intrinsic :: iso_c_binding
    implicit none
    public

    type, bind(C) :: c_resources
        type(c_ptr) :: node = c_null_ptr
        integer(c_int32_t) :: cpus = 0, cpus_min = 0
        integer(c_int64_t) :: memory_bytes = 0, disk_bytes = 0
        integer(c_int64_t) :: reserved(4) = 0
    end type

    type, bind(C) :: c_use
        integer(c_int64_t) :: cpu_time_us, memory_bytes, memory_peak_bytes, processes
        integer(c_int64_t) :: reserved(4)
    end type

    type, bind(C) :: c_job
        integer(c_int64_t) :: id
        integer(c_int32_t) :: uid
        integer(c_int) :: state, job_class
        integer(c_int32_t) :: cpus, pid, unused
        integer(c_int64_t) :: memory_bytes, disk_bytes, submitted_unix_ms, ended_unix_ms
        character(kind=c_char) :: name(256)
        integer(c_int64_t) :: reserved(4)
    end type

    type, bind(C) :: c_load
        character(kind=c_char) :: node(256)
        integer(c_int32_t) :: cpus, runnable, jobs, job_cpus
        real(c_double) :: load_1min, load_5min, load_15min
        integer(c_int64_t) :: memory_bytes, memory_available_bytes, memory_declared_bytes, measured_unix_ms
        integer(c_int64_t) :: reserved(3)
    end type

    interface
        integer(c_int) function c_version_number() bind(C, name='cosched_version_number')
            import :: c_int
        end function

        integer(c_int) function c_check_version(header) bind(C, name='cosched_check_version')
            import :: c_int
            integer(c_int), value :: header
        end function

        type(c_ptr) function c_strerror(code) bind(C, name='cosched_strerror')
            import :: c_ptr, c_int
            integer(c_int), value :: code
        end function

        type(c_ptr) function c_last_error() bind(C, name='cosched_last_error')
            import :: c_ptr
        end function

        integer(c_int) function c_open(socket, handle) bind(C, name='cosched_open')
            import :: c_int, c_ptr, c_char
            character(kind=c_char), intent(in) :: socket(*)
            type(c_ptr), intent(inout) :: handle
        end function

        integer(c_int) function c_close(handle) bind(C, name='cosched_close')
            import :: c_int, c_ptr
            type(c_ptr), value :: handle
        end function

        integer(c_int) function c_register(handle, name, job_class, nodes, node_count, job) &
            bind(C, name='cosched_register')
            import :: c_int, c_ptr, c_char, c_size_t, c_int64_t, c_resources
            type(c_ptr), value :: handle
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: job_class
            type(c_resources), intent(in) :: nodes(*)
            integer(c_size_t), value :: node_count
            integer(c_int64_t), intent(inout) :: job
        end function

        integer(c_int) function c_set_resources(handle, job, nodes, node_count) bind(C, name='cosched_set_resources')
            import :: c_int, c_ptr, c_size_t, c_int64_t, c_resources
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            type(c_resources), intent(in) :: nodes(*)
            integer(c_size_t), value :: node_count
        end function

        integer(c_int) function c_add_process(handle, job, pid) bind(C, name='cosched_add_process')
            import :: c_int, c_ptr, c_int64_t
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            integer(c_int), value :: pid
        end function

        integer(c_int) function c_add_pidfd(handle, job, pidfd) bind(C, name='cosched_add_pidfd')
            import :: c_int, c_ptr, c_int64_t
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            integer(c_int), value :: pidfd
        end function

        integer(c_int) function c_remove_process(handle, job, pid) bind(C, name='cosched_remove_process')
            import :: c_int, c_ptr, c_int64_t
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            integer(c_int), value :: pid
        end function

        integer(c_int) function c_set_class(handle, job, job_class) bind(C, name='cosched_set_class')
            import :: c_int, c_ptr, c_int64_t
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            integer(c_int), value :: job_class
        end function

        integer(c_int) function c_suspend(handle, job) bind(C, name='cosched_suspend')
            import :: c_int, c_ptr, c_int64_t
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
        end function

        integer(c_int) function c_resume(handle, job) bind(C, name='cosched_resume')
            import :: c_int, c_ptr, c_int64_t
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
        end function

        integer(c_int) function c_kill(handle, job, signal) bind(C, name='cosched_kill')
            import :: c_int, c_ptr, c_int64_t
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            integer(c_int), value :: signal
        end function

        integer(c_int) function c_get_job(handle, job, facts) bind(C, name='cosched_get_job')
            import :: c_int, c_ptr, c_int64_t, c_job
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            type(c_job), intent(inout) :: facts
        end function

        integer(c_int) function c_get_use(handle, job, used) bind(C, name='cosched_get_use')
            import :: c_int, c_ptr, c_int64_t, c_use
            type(c_ptr), value :: handle
            integer(c_int64_t), value :: job
            type(c_use), intent(inout) :: used
        end function

        integer(c_int) function c_node_load(handle, node, load) bind(C, name='cosched_node_load')
            import :: c_int, c_ptr, c_char, c_load
            type(c_ptr), value :: handle
            character(kind=c_char), intent(in) :: node(*)
            type(c_load), intent(inout) :: load
        end function

        integer(c_size_t) function c_strlen(text) bind(C, name='strlen')
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
        end function
    end interface
end module cosched_c

module cosched
    use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_size_t, c_ptr, c_null_ptr, c_null_char, c_char, c_loc, &
                                           c_f_pointer
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use cosched_c
    implicit none
    private

    ! The version of this file, in the form of cosched_version_number(): MAJOR * 1000000 + MINOR * 1000 + PATCH.
    integer, parameter, public :: cosched_module_version_number = 1000

    ! The values of `ierr`.
    integer, parameter, public :: cosched_err_ok = 0
    integer, parameter, public :: cosched_err_invalid = -1
    integer, parameter, public :: cosched_err_no_daemon = -2
    integer, parameter, public :: cosched_err_not_found = -3
    integer, parameter, public :: cosched_err_forbidden = -4
    integer, parameter, public :: cosched_err_conflict = -5
    integer, parameter, public :: cosched_err_unsupported = -6
    integer, parameter, public :: cosched_err_version = -7
    integer, parameter, public :: cosched_err_daemon = -8
    integer, parameter, public :: cosched_err_timeout = -9
    integer, parameter, public :: cosched_err_internal = -10

    ! Classes of jobs, from the most to the least urgent.
    integer, parameter, public :: cosched_class_default = 0
    integer, parameter, public :: cosched_class_express = 1
    integer, parameter, public :: cosched_class_interactive = 2
    integer, parameter, public :: cosched_class_batch = 3
    integer, parameter, public :: cosched_class_standby = 4

    ! States of jobs.
    integer, parameter, public :: cosched_state_running = 1
    integer, parameter, public :: cosched_state_asleep = 2
    integer, parameter, public :: cosched_state_suspended = 3
    integer, parameter, public :: cosched_state_ended = 4
    integer, parameter, public :: cosched_state_lost = 5
    integer, parameter, public :: cosched_state_dropped = 6
    integer, parameter, public :: cosched_state_waiting = 7

    ! The value of unknown numbers (UINT64_MAX in C).
    integer(int64), parameter, public :: cosched_unknown = -1_int64

    ! A connection to a daemon. Threads, and children after a fork, may share it.
    type, public :: cosched_handle
        private
        type(c_ptr) :: pointer = c_null_ptr
    end type

    ! The resources that a job requests of one node. 0 and blanks mean unspecified.
    type, public :: cosched_resources
        ! The node's name; blank for the daemon's node.
        character(len=256) :: node = ''
        ! The number of concurrent CPUs that are wanted, and the minimum.
        integer :: cpus = 0, cpus_min = 0
        integer(int64) :: memory_bytes = 0, disk_bytes = 0
    end type

    ! The usage of a job; cosched_unknown if the kernel does not provide a value.
    type, public :: cosched_use
        integer(int64) :: cpu_time_us = 0, memory_bytes = 0, memory_peak_bytes = 0, processes = 0
    end type

    ! The properties of a job.
    type, public :: cosched_job
        integer(int64) :: id = 0
        ! Its owner; a cosched_state_...; a cosched_class_...; the number of CPUs that it was given; its first process, 0 if
        ! there is none yet.
        integer :: uid = 0, state = 0, job_class = 0, cpus = 0, pid = 0
        ! The memory and disk space that it requests, and its times in milliseconds since 1970; cosched_unknown if there is
        ! none.
        integer(int64) :: memory_bytes = 0, disk_bytes = 0, submitted_unix_ms = 0, ended_unix_ms = 0
        character(len=256) :: name = ''
    end type

    ! The load of a node.
    type, public :: cosched_load
        character(len=256) :: node = ''
        ! The number of CPUs for jobs; of threads that run or wait for a CPU now; of jobs, and of the CPUs that they have
        ! together.
        integer :: cpus = 0, runnable = 0, jobs = 0, job_cpus = 0
        real(real64) :: load_1min = 0, load_5min = 0, load_15min = 0
        integer(int64) :: memory_bytes = 0, memory_available_bytes = 0, memory_declared_bytes = 0
        ! The time of the measurement, in ms since the Unix epoch, for a node other than the daemon's; cosched_unknown: now.
        integer(int64) :: measured_unix_ms = cosched_unknown
    end type

    public :: cosched_version_number, cosched_check_version, cosched_strerror, cosched_last_error
    public :: cosched_open, cosched_close, cosched_register, cosched_set_resources, cosched_add_process, cosched_add_pidfd
    public :: cosched_remove_process, cosched_set_class, cosched_suspend, cosched_resume, cosched_kill
    public :: cosched_get_job, cosched_get_use, cosched_node_load

contains

    ! The version of the library that was found at run time.
    integer function cosched_version_number()
        cosched_version_number = int(c_version_number())
    end function

    ! Checks that the library is compatible with this file.
    subroutine cosched_check_version(ierr)
        integer, intent(out) :: ierr
        ierr = int(c_check_version(int(cosched_module_version_number, c_int)))
    end subroutine

    ! The meaning of a code.
    function cosched_strerror(code) result(text)
        integer, intent(in) :: code
        character(len=:), allocatable :: text
        text = text_of(c_strerror(int(code, c_int)))
    end function

    ! The message of the last failed call in this thread.
    function cosched_last_error() result(text)
        character(len=:), allocatable :: text
        text = text_of(c_last_error())
    end function

    ! Connects to the daemon; without `socket` to the one at COSCHED_SOCKET, the system's, or the user's own.
    subroutine cosched_open(handle, ierr, socket)
        type(cosched_handle), intent(inout) :: handle
        integer, intent(out) :: ierr
        character(len=*), intent(in), optional :: socket
        if (present(socket)) then
            ierr = int(c_open(to_c(socket), handle%pointer))
        else
            ierr = int(c_open(to_c(''), handle%pointer))
        end if
    end subroutine

    ! Closes the handle; jobs continue.
    subroutine cosched_close(handle, ierr)
        type(cosched_handle), intent(inout) :: handle
        integer, intent(out) :: ierr
        ierr = int(c_close(handle%pointer))
        if (ierr == 0) handle%pointer = c_null_ptr
    end subroutine

    ! Registers a job without processes: one entry of `nodes` for each node; an array of size 0 for the daemon's node with all
    ! CPUs.
    subroutine cosched_register(handle, name, job_class, nodes, job, ierr)
        type(cosched_handle), intent(in) :: handle
        character(len=*), intent(in) :: name
        integer, intent(in) :: job_class
        type(cosched_resources), intent(in) :: nodes(:)
        integer(int64), intent(inout) :: job
        integer, intent(out) :: ierr
        type(c_resources) :: wanted(size(nodes))
        character(kind=c_char), target :: names(257, size(nodes))
        call fill(nodes, names, wanted)
        ierr = int(c_register(handle%pointer, to_c(name), int(job_class, c_int), wanted, size(nodes, kind=c_size_t), job))
    end subroutine

    ! Changes the resources that a job requests.
    subroutine cosched_set_resources(handle, job, nodes, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        type(cosched_resources), intent(in) :: nodes(:)
        integer, intent(out) :: ierr
        type(c_resources) :: wanted(size(nodes))
        character(kind=c_char), target :: names(257, size(nodes))
        call fill(nodes, names, wanted)
        ierr = int(c_set_resources(handle%pointer, job, wanted, size(nodes, kind=c_size_t)))
    end subroutine

    ! Adds a process to a job; 0 is the calling process.
    subroutine cosched_add_process(handle, job, pid, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: pid
        integer, intent(out) :: ierr
        ierr = int(c_add_process(handle%pointer, job, int(pid, c_int)))
    end subroutine

    ! The same, by a descriptor of pidfd_open(2).
    subroutine cosched_add_pidfd(handle, job, pidfd, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: pidfd
        integer, intent(out) :: ierr
        ierr = int(c_add_pidfd(handle%pointer, job, int(pidfd, c_int)))
    end subroutine

    ! Removes a process from a job; 0 is the calling process.
    subroutine cosched_remove_process(handle, job, pid, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: pid
        integer, intent(out) :: ierr
        ierr = int(c_remove_process(handle%pointer, job, int(pid, c_int)))
    end subroutine

    ! Changes the class of a job to a cosched_class_... .
    subroutine cosched_set_class(handle, job, job_class, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: job_class
        integer, intent(out) :: ierr
        ierr = int(c_set_class(handle%pointer, job, int(job_class, c_int)))
    end subroutine

    ! Suspends a job until it is resumed.
    subroutine cosched_suspend(handle, job, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(out) :: ierr
        ierr = int(c_suspend(handle%pointer, job))
    end subroutine

    ! Resumes a suspended job.
    subroutine cosched_resume(handle, job, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(out) :: ierr
        ierr = int(c_resume(handle%pointer, job))
    end subroutine

    ! Sends a signal to every process of a job: 15 (SIGTERM) requests it to end, 9 (SIGKILL) forces it.
    subroutine cosched_kill(handle, job, signal, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: signal
        integer, intent(out) :: ierr
        ierr = int(c_kill(handle%pointer, job, int(signal, c_int)))
    end subroutine

    ! Gets the properties of a job.
    subroutine cosched_get_job(handle, job, facts, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        type(cosched_job), intent(inout) :: facts
        integer, intent(out) :: ierr
        type(c_job) :: c
        ierr = int(c_get_job(handle%pointer, job, c))
        if (ierr /= 0) return
        facts = cosched_job(c%id, c%uid, c%state, c%job_class, c%cpus, c%pid, c%memory_bytes, c%disk_bytes, &
                            c%submitted_unix_ms, c%ended_unix_ms, from_c(c%name))
    end subroutine

    ! Gets the usage of a job.
    subroutine cosched_get_use(handle, job, used, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        type(cosched_use), intent(inout) :: used
        integer, intent(out) :: ierr
        type(c_use) :: c
        ierr = int(c_get_use(handle%pointer, job, c))
        if (ierr == 0) used = cosched_use(c%cpu_time_us, c%memory_bytes, c%memory_peak_bytes, c%processes)
    end subroutine

    ! Gets the load of a node; a blank name means the daemon's node.
    subroutine cosched_node_load(handle, node, load, ierr)
        type(cosched_handle), intent(in) :: handle
        character(len=*), intent(in) :: node
        type(cosched_load), intent(inout) :: load
        integer, intent(out) :: ierr
        type(c_load) :: c
        ierr = int(c_node_load(handle%pointer, to_c(node), c))
        if (ierr /= 0) return
        load = cosched_load(from_c(c%node), c%cpus, c%runnable, c%jobs, c%job_cpus, c%load_1min, c%load_5min, &
                            c%load_15min, c%memory_bytes, c%memory_available_bytes, c%memory_declared_bytes, &
                            c%measured_unix_ms)
    end subroutine

    ! Text for C: without trailing blanks, terminated by NUL.
    pure function to_c(text) result(c)
        character(len=*), intent(in) :: text
        character(kind=c_char, len=len_trim(text) + 1) :: c
        c = trim(text)//c_null_char
    end function

    ! Text from a C array.
    pure function from_c(c) result(text)
        character(kind=c_char), intent(in) :: c(256)
        character(len=256) :: text
        integer :: i
        text = ''
        do i = 1, 256
            if (c(i) == c_null_char) exit
            text(i:i) = c(i)
        end do
    end function

    ! A copy of a text in C memory.
    function text_of(c) result(text)
        type(c_ptr), intent(in) :: c
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i
        call c_f_pointer(c, letters, [c_strlen(c)])
        allocate (character(len=size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function

    ! Fills in C's structs from the nodes; `names` keeps the texts.
    subroutine fill(nodes, names, wanted)
        type(cosched_resources), intent(in) :: nodes(:)
        character(kind=c_char), target, intent(out) :: names(:, :)
        type(c_resources), intent(out) :: wanted(:)
        integer :: i, j
        do i = 1, size(nodes)
            do j = 1, len_trim(nodes(i)%node)
                names(j, i) = nodes(i)%node(j:j)
            end do
            names(len_trim(nodes(i)%node) + 1, i) = c_null_char
            wanted(i)%node = c_loc(names(1, i))
            wanted(i)%cpus = nodes(i)%cpus
            wanted(i)%cpus_min = nodes(i)%cpus_min
            wanted(i)%memory_bytes = nodes(i)%memory_bytes
            wanted(i)%disk_bytes = nodes(i)%disk_bytes
        end do
    end subroutine
end module cosched
