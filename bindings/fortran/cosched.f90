! cosched for programs in Fortran 2008: jobs that are scheduled as gangs. Compile this file with the program, and link with
! libcosched:
!
!   gfortran $(pkg-config --variable=fortran_source cosched) program.f90 $(pkg-config --libs cosched)
!
! Each subroutine is the C function of its name (man 3 cosched_register, ...). `ierr` is 0, or a negative cosched_err_... :
! nothing was changed or set then, cosched_last_error() says what happened in this thread. docs/api.md has examples.

! What C has, as it is: for module cosched.
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

    ! The version that this file belongs to, as cosched_version_number() counts: MAJOR * 1000000 + MINOR * 1000 + PATCH.
    integer, parameter, public :: cosched_module_version_number = 1000

    ! What `ierr` is.
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

    ! A number that is not known (UINT64_MAX in C).
    integer(int64), parameter, public :: cosched_unknown = -1_int64

    ! A connection to a daemon. Threads, and children after a fork, may share it.
    type, public :: cosched_handle
        private
        type(c_ptr) :: pointer = c_null_ptr
    end type

    ! What a job wants of one node. 0 and blanks: not said.
    type, public :: cosched_resources
        ! The node's name; blank for the daemon's.
        character(len=256) :: node = ''
        ! CPUs at a time, and at least.
        integer :: cpus = 0, cpus_min = 0
        integer(int64) :: memory_bytes = 0, disk_bytes = 0
    end type

    ! What a job uses; cosched_unknown where the kernel does not tell.
    type, public :: cosched_use
        integer(int64) :: cpu_time_us = 0, memory_bytes = 0, memory_peak_bytes = 0, processes = 0
    end type

    ! What a job is.
    type, public :: cosched_job
        integer(int64) :: id = 0
        ! Its owner; a cosched_state_...; a cosched_class_...; the CPUs that it was given; its first process, 0 for none yet.
        integer :: uid = 0, state = 0, job_class = 0, cpus = 0, pid = 0
        ! What it says it needs, and its times in milliseconds since 1970; cosched_unknown where there is none.
        integer(int64) :: memory_bytes = 0, disk_bytes = 0, submitted_unix_ms = 0, ended_unix_ms = 0
        character(len=256) :: name = ''
    end type

    ! How busy a node is.
    type, public :: cosched_load
        character(len=256) :: node = ''
        ! The CPUs that it gives to jobs; threads that run or wait for one now; jobs, and the CPUs that they have together.
        integer :: cpus = 0, runnable = 0, jobs = 0, job_cpus = 0
        real(real64) :: load_1min = 0, load_5min = 0, load_15min = 0
        integer(int64) :: memory_bytes = 0, memory_available_bytes = 0, memory_declared_bytes = 0
        ! When that was measured, in ms since the Unix epoch, on another node than the daemon's; cosched_unknown: now.
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

    ! Whether that library is what this file is for.
    subroutine cosched_check_version(ierr)
        integer, intent(out) :: ierr
        ierr = int(c_check_version(int(cosched_module_version_number, c_int)))
    end subroutine

    ! What a code means.
    function cosched_strerror(code) result(text)
        integer, intent(in) :: code
        character(len=:), allocatable :: text
        text = text_of(c_strerror(int(code, c_int)))
    end function

    ! Why the last call that failed in this thread did.
    function cosched_last_error() result(text)
        character(len=:), allocatable :: text
        text = text_of(c_last_error())
    end function

    ! Connects to the daemon; without `socket` to that of COSCHED_SOCKET, the system's, or the user's own.
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

    ! Closes the handle; jobs go on.
    subroutine cosched_close(handle, ierr)
        type(cosched_handle), intent(inout) :: handle
        integer, intent(out) :: ierr
        ierr = int(c_close(handle%pointer))
        if (ierr == 0) handle%pointer = c_null_ptr
    end subroutine

    ! Registers a job without processes: one entry of `nodes` for each node; an array of size 0 for the daemon's with all CPUs.
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

    ! Changes what a job wants.
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

    ! Puts a process into a job; 0 is the calling one.
    subroutine cosched_add_process(handle, job, pid, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: pid
        integer, intent(out) :: ierr
        ierr = int(c_add_process(handle%pointer, job, int(pid, c_int)))
    end subroutine

    ! The same by a descriptor of pidfd_open(2).
    subroutine cosched_add_pidfd(handle, job, pidfd, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: pidfd
        integer, intent(out) :: ierr
        ierr = int(c_add_pidfd(handle%pointer, job, int(pidfd, c_int)))
    end subroutine

    ! Takes a process out of a job; 0 is the calling one.
    subroutine cosched_remove_process(handle, job, pid, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: pid
        integer, intent(out) :: ierr
        ierr = int(c_remove_process(handle%pointer, job, int(pid, c_int)))
    end subroutine

    ! Gives a job another class, a cosched_class_... .
    subroutine cosched_set_class(handle, job, job_class, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: job_class
        integer, intent(out) :: ierr
        ierr = int(c_set_class(handle%pointer, job, int(job_class, c_int)))
    end subroutine

    ! Stops a job until it is resumed.
    subroutine cosched_suspend(handle, job, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(out) :: ierr
        ierr = int(c_suspend(handle%pointer, job))
    end subroutine

    ! Lets a suspended job go on.
    subroutine cosched_resume(handle, job, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(out) :: ierr
        ierr = int(c_resume(handle%pointer, job))
    end subroutine

    ! Sends a signal to every process of a job: 15 asks it to end, 9 forces it.
    subroutine cosched_kill(handle, job, signal, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        integer, intent(in) :: signal
        integer, intent(out) :: ierr
        ierr = int(c_kill(handle%pointer, job, int(signal, c_int)))
    end subroutine

    ! What a job is.
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

    ! What a job uses.
    subroutine cosched_get_use(handle, job, used, ierr)
        type(cosched_handle), intent(in) :: handle
        integer(int64), intent(in) :: job
        type(cosched_use), intent(inout) :: used
        integer, intent(out) :: ierr
        type(c_use) :: c
        ierr = int(c_get_use(handle%pointer, job, c))
        if (ierr == 0) used = cosched_use(c%cpu_time_us, c%memory_bytes, c%memory_peak_bytes, c%processes)
    end subroutine

    ! How busy a node is; blank for the daemon's.
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

    ! Text for C: without the blanks behind it, ended by NUL.
    pure function to_c(text) result(c)
        character(len=*), intent(in) :: text
        character(kind=c_char, len=len_trim(text) + 1) :: c
        c = trim(text)//c_null_char
    end function

    ! Text of an array of C.
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

    ! A copy of a text that C keeps.
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

    ! What C is to be told of each node; `names` keeps the texts.
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
