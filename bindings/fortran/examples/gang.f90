! A program of several processes that registers itself for gang scheduling: the appendix program of LLNL's paper on a gang
! scheduler for clusters of Digital Alphas, for cosched, in Fortran. bindings/c/examples/gang.c is the same in C.
!
!   gfortran $(pkg-config --variable=fortran_source cosched) gang.f90 $(pkg-config --libs cosched) -o gang && ./gang
program gang
    use, intrinsic :: iso_c_binding, only: c_int, c_ptr, c_null_ptr
    use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit, output_unit
    use cosched
    implicit none

    interface
        integer(c_int) function fork() bind(C, name='fork')
            import :: c_int
        end function
        integer(c_int) function getpid() bind(C, name='getpid')
            import :: c_int
        end function
        integer(c_int) function wait(status) bind(C, name='wait')
            import :: c_int, c_ptr
            type(c_ptr), value :: status
        end function
    end interface

    integer, parameter :: cpu_count = 2
    type(cosched_handle) :: handle
    type(cosched_resources) :: resources(1)
    type(cosched_use) :: used
    integer(int64) :: job
    integer :: ierr, i
    logical :: is_child

    ! The library that is found at run time must match the module that this was compiled with.
    call cosched_check_version(ierr)
    if (ierr == 0) call cosched_open(handle, ierr)
    call need('cosched_open')

    ! What the job requests of each computer. The name is blank: the computer that this runs on.
    resources(1)%cpus = cpu_count                     ! CPUs wanted
    resources(1)%cpus_min = 1                         ! CPUs at least
    resources(1)%memory_bytes = 5*1024_int64**2       ! memory (optional)
    resources(1)%disk_bytes = 1024_int64**3           ! disk (optional)

    ! Register the program.
    call cosched_register(handle, 'gang', cosched_class_interactive, resources, job, ierr)
    call need('cosched_register')
    write (output_unit, '(a, i0)') 'registered as job ', job
    flush (output_unit)

    ! Fork processes as needed.
    is_child = .false.
    do i = 2, cpu_count
        select case (fork())
        case (-1)
            error stop 'cannot fork'
        case (0)
            is_child = .true.
            exit
        end select
    end do

    ! Register each process: the calling one, parent or child. The handle works in children too.
    call cosched_add_process(handle, job, 0, ierr)
    call need('cosched_add_process')

    ! Run each process.
    write (output_unit, '(a, i0)') 'running process ', getpid()
    call parallel_code()
    if (is_child) stop

    do while (wait(c_null_ptr) > 0)
    end do
    call cosched_get_use(handle, job, used, ierr)
    call need('cosched_get_use')
    write (output_unit, '(a, i0, a, f0.3, a)') 'job ', job, ' used ', real(used%cpu_time_us, real64)/1e6_real64, &
        ' s of CPU time'
    call cosched_close(handle, ierr)

contains

    subroutine need(what)
        character(len=*), intent(in) :: what
        if (ierr == 0) return
        write (error_unit, '(5a)') what, ': ', cosched_last_error(), ' / ', cosched_strerror(ierr)
        error stop 1
    end subroutine

    ! Computes pi by the midpoint rule, in each process separately.
    subroutine parallel_code()
        integer, parameter :: steps = 5000000
        real(real64) :: total, x
        integer :: step
        total = 0
        do step = 1, steps
            x = (step - 0.5_real64)/steps
            total = total + 4/(1 + x*x)
        end do
        write (output_unit, '(a, f0.10)') 'pi is ', total/steps
    end subroutine
end program gang
