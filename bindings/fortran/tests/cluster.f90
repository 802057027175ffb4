! The Fortran module in a cluster of two nodes: `cluster SOCKET1 SOCKET2`, the daemons of n1 and n2; bindings/c/tests/cluster.c is
! a longer test.
program test_cluster
    use, intrinsic :: iso_c_binding, only: c_int, c_ptr, c_null_ptr
    use, intrinsic :: iso_fortran_env, only: int64
    use cosched
    implicit none

    interface
        integer(c_int) function fork() bind(C, name='fork')
            import :: c_int
        end function
        integer(c_int) function pause() bind(C, name='pause')
            import :: c_int
        end function
        integer(c_int) function usleep(us) bind(C, name='usleep')
            import :: c_int
            integer(c_int), value :: us
        end function
        integer(c_int) function waitpid(pid, status, options) bind(C, name='waitpid')
            import :: c_int, c_ptr
            integer(c_int), value :: pid, options
            type(c_ptr), value :: status
        end function
        integer(c_int) function alarm(seconds) bind(C, name='alarm')
            import :: c_int
            integer(c_int), value :: seconds
        end function
    end interface

    integer(int64), parameter :: mib = 1024_int64**2
    type(cosched_handle) :: at(2)
    type(cosched_resources) :: wants(2)
    type(cosched_job) :: facts
    type(cosched_use) :: used
    type(cosched_load) :: load
    integer(int64) :: job
    integer :: ierr, passed, failed, n, tries, workers(2), ignored
    character(len=200) :: socket

    passed = 0
    failed = 0
    ignored = alarm(100_c_int)
    do n = 1, 2
        call get_command_argument(n, socket)
        call cosched_open(at(n), ierr, trim(socket))
        call check('open', ierr == 0)
        write (wants(n)%node, '(a, i0)') 'n', n
        wants(n)%cpus = 1
        wants(n)%memory_bytes = n*mib
    end do
    wants(2)%node = 'n9'
    job = 77
    call cosched_register(at(1), 'nowhere', cosched_class_batch, wants, job, ierr)
    call check('no such node', ierr == cosched_err_conflict .and. job == 77 .and. index(cosched_last_error(), 'n9') > 0)
    wants(2)%node = 'n2'
    call cosched_register(at(1), 'fortran', cosched_class_interactive, wants, job, ierr)
    call check('register', ierr == 0)
    do n = 1, 2
        call becomes(n, cosched_state_running)
        call check('facts', facts%cpus == 2 .and. facts%memory_bytes == 3*mib .and. facts%name == 'fortran')
        workers(n) = sleeper()
        do tries = 1, 500
            call cosched_add_process(at(n), job, workers(n), ierr)
            if (ierr /= cosched_err_conflict) exit
            ignored = usleep(20000_c_int)
        end do
        call check('add_process', ierr == 0)
    end do
    do n = 1, 2
        call cosched_get_use(at(n), job, used, ierr)
        call check('get_use', ierr == 0 .and. used%processes == 1 .and. used%memory_bytes > 0)
        call cosched_node_load(at(3 - n), wants(n)%node, load, ierr)
        call check('node_load', ierr == 0 .and. load%node == wants(n)%node .and. load%jobs == 1 .and. load%cpus == 1)
    end do
    call cosched_node_load(at(1), 'n9', load, ierr)
    call check('load of n9', ierr == cosched_err_not_found .and. index(cosched_last_error(), 'n1, n2') > 0)
    call cosched_set_class(at(2), job, cosched_class_standby, ierr)
    call check('set_class', ierr == 0)
    wants(1)%memory_bytes = 4*mib
    call cosched_set_resources(at(2), job, wants, ierr)
    call check('set_resources', ierr == 0)
    call cosched_suspend(at(2), job, ierr)
    call check('suspend', ierr == 0)
    call becomes(1, cosched_state_suspended)
    call check('seen', facts%job_class == cosched_class_standby .and. facts%memory_bytes == 6*mib)
    call cosched_resume(at(1), job, ierr)
    call check('resume', ierr == 0)
    call becomes(2, cosched_state_running)
    call cosched_kill(at(2), job, 15, ierr)
    call check('kill', ierr == 0)
    do n = 1, 2
        call check('gone', waitpid(workers(n), c_null_ptr, 0_c_int) == workers(n))
        call becomes(n, cosched_state_ended)
        call cosched_suspend(at(n), job, ierr)
        call check('ended', ierr == cosched_err_conflict)
        call cosched_close(at(n), ierr)
        call check('close', ierr == 0)
    end do
    print '(i0, a, i0, a)', passed, ' passed, ', failed, ' failed'
    if (failed > 0) error stop 1

contains

    subroutine check(what, holds)
        character(len=*), intent(in) :: what
        logical, intent(in) :: holds
        if (holds) then
            passed = passed + 1
            return
        end if
        failed = failed + 1
        print '(2a, i0, 2a)', what, ': ierr ', ierr, ', ', cosched_last_error()
    end subroutine

    ! The nodes learn of each other's changes with a delay.
    subroutine becomes(node, state)
        integer, intent(in) :: node, state
        integer :: turn
        do turn = 1, 1500
            call cosched_get_job(at(node), job, facts, ierr)
            if (ierr == 0 .and. facts%state == state) exit
            ignored = usleep(10000_c_int)
        end do
        call check('state', ierr == 0 .and. facts%state == state)
    end subroutine

    integer function sleeper()
        sleeper = fork()
        if (sleeper /= 0) return
        ignored = alarm(60_c_int)
        do
            ignored = pause()
        end do
    end function
end program test_cluster
