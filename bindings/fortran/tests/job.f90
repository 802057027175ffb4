! The Fortran module with a real daemon (COSCHED_SOCKET): every subroutine once with valid and once with invalid arguments.
program test_job
    use, intrinsic :: iso_c_binding, only: c_int
    use, intrinsic :: iso_fortran_env, only: int64
    use cosched
    implicit none

    interface
        integer(c_int) function fork() bind(C, name='fork')
            import :: c_int
        end function
        integer(c_int) function getpid() bind(C, name='getpid')
            import :: c_int
        end function
        integer(c_int) function pause() bind(C, name='pause')
            import :: c_int
        end function
        integer(c_int) function alarm(seconds) bind(C, name='alarm')
            import :: c_int
            integer(c_int), value :: seconds
        end function
    end interface

    type(cosched_handle) :: handle, closed
    type(cosched_resources) :: one(1), two(2), none(0)
    type(cosched_job) :: facts
    type(cosched_use) :: used
    type(cosched_load) :: load
    integer(int64) :: job
    integer :: ierr, passed, failed, child, ignored

    passed = 0
    failed = 0
    ignored = alarm(60_c_int)
    call cosched_check_version(ierr)
    call check('check_version', ierr == 0 .and. cosched_version_number() == cosched_module_version_number)
    call cosched_open(closed, ierr, '/nowhere/cosched.sock')
    call check('open nowhere', ierr == cosched_err_no_daemon .and. index(cosched_last_error(), '/nowhere/cosched.sock') > 0)
    call check('strerror', cosched_strerror(ierr) == 'no daemon answers')
    call cosched_suspend(closed, 1_int64, ierr)
    call check('no handle', ierr == cosched_err_invalid .and. index(cosched_last_error(), 'the handle is NULL') > 0)
    call cosched_open(handle, ierr)
    call check('open', ierr == 0)

    two(2)%node = 'elsewhere'
    job = 77
    call cosched_register(handle, 'two nodes', cosched_class_batch, two, job, ierr)
    call check('two nodes', ierr == cosched_err_unsupported .and. job == 77)
    call cosched_register(handle, 'everything', 9, none, job, ierr)
    call check('no such class', ierr == cosched_err_invalid)
    call cosched_register(handle, 'everything   ', cosched_class_batch, none, job, ierr)
    call check('register all CPUs', ierr == 0)
    call cosched_kill(handle, job, 9, ierr)
    call check('kill', ierr == 0)

    one(1)%cpus = 1
    one(1)%memory_bytes = 5*1024_int64**2
    call cosched_register(handle, 'fortran', cosched_class_interactive, one, job, ierr)
    call check('register', ierr == 0 .and. job > 0)
    child = fork()
    if (child == 0) then
        do
            ignored = pause()
        end do
    end if
    call cosched_add_process(handle, job, child, ierr)
    call check('add_process', ierr == 0)
    call cosched_add_pidfd(handle, job, 0, ierr)
    call check('add_pidfd', ierr == cosched_err_invalid)
    call cosched_remove_process(handle, job, 0, ierr)
    call check('remove_process', ierr == cosched_err_not_found)
    call cosched_get_job(handle, job, facts, ierr)
    call check('get_job', ierr == 0 .and. facts%id == job .and. facts%name == 'fortran' .and. facts%cpus == 1 &
               .and. facts%pid == child .and. facts%memory_bytes == one(1)%memory_bytes &
               .and. facts%disk_bytes == cosched_unknown .and. facts%job_class == cosched_class_interactive)
    call cosched_get_use(handle, job, used, ierr)
    call check('get_use', ierr == 0 .and. used%processes == 1 .and. used%memory_bytes > 0)
    call cosched_node_load(handle, '', load, ierr)
    call check('node_load', ierr == 0 .and. load%cpus > 0 .and. load%jobs >= 1 .and. len_trim(load%node) > 0)
    one(1)%node = load%node
    one(1)%cpus = load%cpus
    call cosched_set_resources(handle, job, one, ierr)
    call check('set_resources', ierr == 0)
    call cosched_set_resources(handle, job, two, ierr)
    call check('set_resources of two nodes', ierr == cosched_err_unsupported)
    call cosched_node_load(handle, 'elsewhere', load, ierr)
    call check('load elsewhere', ierr == cosched_err_unsupported)
    call cosched_set_class(handle, job, cosched_class_standby, ierr)
    call check('set_class', ierr == 0)
    call cosched_suspend(handle, job, ierr)
    call check('suspend', ierr == 0)
    call cosched_get_job(handle, job, facts, ierr)
    call check('suspended', facts%state == cosched_state_suspended .and. facts%cpus == one(1)%cpus)
    call cosched_resume(handle, job, ierr)
    call check('resume', ierr == 0)
    call cosched_kill(handle, job, 9, ierr)
    call check('kill -9', ierr == 0)
    call cosched_close(handle, ierr)
    call check('close', ierr == 0)
    call cosched_get_use(handle, job, used, ierr)
    call check('closed', ierr == cosched_err_invalid)
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
end program test_job
