//! Settings of a stage: the scheduling of its threads.
//!
//! If the system refuses a setting, the report notes that, and the run continues.

use std::ffi::c_int;

use ::cosched_pipeline::Class;

use super::build::{change, set_of_stage};
use super::cosched_pipeline;

/// A scheduling class of Linux (man 7 sched).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_pipeline_class {
    /// SCHED_OTHER.
    NORMAL = 0,
    /// SCHED_BATCH: does not preempt others when it wakes up.
    BATCH = 1,
    /// SCHED_IDLE: what the others leave, nearly.
    IDLE = 2,
    /// SCHED_FIFO: before all others. Needs a right.
    FIFO = 3,
}

/// The nice value of the stage's threads, -20 (first) to 19 (last). Lower than the present one needs a right. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle, as for all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_nice(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    nice: c_int,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_nice", stage, |stage| {
            let nice = i8::try_from(nice).map_err(|_| format!("nice {nice}: a nice value is -20 to 19"))?;
            stage.settings.nice = Some(nice);
            Ok(())
        })
    }
}

/// The slice that the kernel grants to the stage's threads, 100 to 100000 microseconds: a short one for a thread that blocks
/// often gets it its CPU sooner. Linux 6.12; needs no right. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_nice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_slice_us(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    slice_us: u32,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        set_of_stage(pipeline, "cosched_pipeline_stage_slice_us", stage, |stage| {
            stage.settings.slice_us = Some(slice_us)
        })
    }
}

/// The scheduling class of the stage's threads, a cosched_pipeline_class; `fifo_priority` is for COSCHED_PIPELINE_CLASS_FIFO,
/// 1 to 99, and 0 for the others. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_nice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_class(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    class_: c_int,
    fifo_priority: c_int,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_class", stage, |stage| {
            stage.settings.class = Some(class(class_, fifo_priority)?);
            Ok(())
        })
    }
}

fn class(number: c_int, fifo_priority: c_int) -> Result<Class, String> {
    match (number, fifo_priority) {
        (0, 0) => Ok(Class::Normal),
        (1, 0) => Ok(Class::Batch),
        (2, 0) => Ok(Class::Idle),
        (3, 1..=99) => Ok(Class::Fifo(fifo_priority as u8)),
        (3, other) => Err(format!("fifo {other}: a priority of SCHED_FIFO is 1 to 99")),
        (0..=2, other) => Err(format!("priority {other}: only COSCHED_PIPELINE_CLASS_FIFO has one")),
        (other, _) => Err(format!("{other} is not a cosched_pipeline_class")),
    }
}

/// The CPUs that the stage's threads may use. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_nice; `cpus` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_cpus(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    cpus: *const c_int,
    count: usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_cpus", stage, |stage| {
            let numbers = match (cpus.is_null(), count) {
                (_, 0) => &[],
                (true, _) => return Err("the CPUs are NULL".into()),
                (false, count) => std::slice::from_raw_parts(cpus, count),
            };
            let cpu = |number: &c_int| usize::try_from(*number).map_err(|_| format!("{number} is not a CPU"));
            stage.settings.cpus = Some(numbers.iter().map(cpu).collect::<Result<_, _>>()?);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fifo_has_a_priority() {
        assert_eq!(class(cosched_pipeline_class::BATCH as c_int, 0), Ok(Class::Batch));
        assert_eq!(class(cosched_pipeline_class::FIFO as c_int, 99), Ok(Class::Fifo(99)));
        assert!(class(3, 0).is_err() && class(3, 100).is_err() && class(1, 5).is_err() && class(4, 0).is_err());
    }
}
