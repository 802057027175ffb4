! The sizes of C's structs, and numbers, according to the module; tests/capi/run compares them with C's
! (layout.c).
program layout
    use, intrinsic :: iso_c_binding, only: c_sizeof
    use cosched
    use cosched_c
    implicit none
    type(c_resources) :: resources
    type(c_use) :: used
    type(c_job) :: job
    type(c_load) :: load
    print '(a, i0)', 'version ', cosched_module_version_number
    print '(a, 4(1x, i0))', 'sizes', c_sizeof(resources), c_sizeof(used), c_sizeof(job), c_sizeof(load)
    print '(a, 11(1x, i0))', 'errors', cosched_err_ok, cosched_err_invalid, cosched_err_no_daemon, cosched_err_not_found, &
        cosched_err_forbidden, cosched_err_conflict, cosched_err_unsupported, cosched_err_version, cosched_err_daemon, &
        cosched_err_timeout, cosched_err_internal
    print '(a, 5(1x, i0))', 'classes', cosched_class_default, cosched_class_express, cosched_class_interactive, &
        cosched_class_batch, cosched_class_standby
    print '(a, 7(1x, i0))', 'states', cosched_state_running, cosched_state_asleep, cosched_state_suspended, &
        cosched_state_ended, cosched_state_lost, cosched_state_dropped, &
        cosched_state_waiting
    print '(a, i0)', 'unknown ', cosched_unknown
end program layout
