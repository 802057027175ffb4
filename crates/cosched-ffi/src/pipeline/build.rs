//! Building a pipeline: its stages and paths.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use ::cosched_pipeline::{Kind, Resource, Settings};

use super::plan::{PathPlan, Plan, StagePlan};
use super::stage::{
    Callbacks, User, Work, cosched_pipeline_body_fn, cosched_pipeline_cleanup_fn, cosched_pipeline_free_fn,
    cosched_pipeline_init_fn, cosched_pipeline_round_fn,
};
use super::{build, cosched_pipeline};
use crate::border::text_from;

/// What a stage mostly uses.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_pipeline_resource {
    /// A CPU.
    COMPUTE = 0,
    /// The network.
    COMMUNICATE = 1,
    /// A disk.
    IO = 2,
}

/// How a stage runs.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cosched_pipeline_kind {
    /// On a thread of its own: for what blocks. What uses no CPU mostly is of this kind unless told otherwise.
    THREAD = 0,
    /// On the pipeline's workers, which carry a buffer through as many stages as they can. What computes is of this kind
    /// unless told otherwise.
    WORKER = 1,
}

fn resource(number: c_int) -> Result<Resource, String> {
    match number {
        0 => Ok(Resource::Compute),
        1 => Ok(Resource::Communicate),
        2 => Ok(Resource::Io),
        other => Err(format!("{other} is not a cosched_pipeline_resource")),
    }
}

/// The number of the element that was just added.
fn number_of_last(count: usize) -> Result<c_int, String> {
    c_int::try_from(count - 1).map_err(|_| "there are too many".into())
}

fn add(plan: &mut Plan, name: &str, resource: Resource, work: Work, user: *mut c_void) -> Result<c_int, String> {
    let user = Arc::new(User { pointer: user, free: None });
    plan.stages.push(StagePlan {
        name: name.to_owned(),
        resource,
        calls: Callbacks { work, init: None, cleanup: None, user },
        kind: None,
        incarnations: 1,
        ordered: true,
        thread: None,
        repeat: 1,
        replicable: 0,
        holds: None,
        settings: Settings::default(),
    });
    number_of_last(plan.stages.len())
}

/// Adds a stage that works on one buffer at a time. `resource` is a cosched_pipeline_resource; `user` goes to the callback,
/// on another thread than the caller's. Returns the stage's number, from 0, or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle, `name` NULL or a text of C; `round` keeps to what its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage(
    pipeline: *mut cosched_pipeline,
    name: *const c_char,
    resource: c_int,
    round: cosched_pipeline_round_fn,
    user: *mut c_void,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        build(pipeline, "cosched_pipeline_stage", |plan| {
            let name = text_from(name, "the stage's name")?;
            let round = round.ok_or_else(|| format!("the callback of stage '{name}' is NULL"))?;
            add(plan, name, self::resource(resource)?, Work::Round(round), user)
        })
    }
}

/// Adds a stage that accepts and conveys by itself, on a thread of its own: it may hold several buffers, and stand where
/// paths intersect. As cosched_pipeline_stage otherwise.
///
/// # Safety
/// As for cosched_pipeline_stage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_body(
    pipeline: *mut cosched_pipeline,
    name: *const c_char,
    resource: c_int,
    body: cosched_pipeline_body_fn,
    user: *mut c_void,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        build(pipeline, "cosched_pipeline_body", |plan| {
            let name = text_from(name, "the stage's name")?;
            let body = body.ok_or_else(|| format!("the callback of stage '{name}' is NULL"))?;
            add(plan, name, self::resource(resource)?, Work::Body(body), user)
        })
    }
}

/// Changes a stage.
///
/// # Safety
/// As for `build`.
pub(super) unsafe fn change(
    pipeline: *mut cosched_pipeline,
    place: &str,
    stage: c_int,
    change: impl FnOnce(&mut StagePlan) -> Result<(), String>,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { build(pipeline, place, |plan| change(plan.stage(stage)?).map(|()| 0)) }
}

/// Changes a stage in a way that only a wrong number of the stage can refuse.
///
/// # Safety
/// As for `build`.
pub(super) unsafe fn set_of_stage(
    pipeline: *mut cosched_pipeline,
    place: &str,
    stage: c_int,
    set: impl FnOnce(&mut StagePlan),
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { build(pipeline, place, |plan| plan.stage(stage).map(set).map(|()| 0)) }
}

/// Sets what is called before the stage's first buffer. Returns 0 or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle, as for all functions that change a stage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_init(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    init: cosched_pipeline_init_fn,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { set_of_stage(pipeline, "cosched_pipeline_stage_init", stage, |stage| stage.calls.init = init) }
}

/// Sets what is called after the stage's last buffer. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_cleanup(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    cleanup: cosched_pipeline_cleanup_fn,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { set_of_stage(pipeline, "cosched_pipeline_stage_cleanup", stage, |stage| stage.calls.cleanup = cleanup) }
}

/// Sets what frees the stage's user pointer: called once, also when the pipeline never runs. Returns 0, or -1: then it is
/// not called.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_free(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    free: cosched_pipeline_free_fn,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_free", stage, |stage| {
            let user = Arc::get_mut(&mut stage.calls.user).ok_or("the pipeline is being inspected at this moment")?;
            user.free = free;
            Ok(())
        })
    }
}

/// Sets how a stage runs, a cosched_pipeline_kind. A body always has a thread of its own. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_kind(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    kind: c_int,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_kind", stage, |stage| {
            stage.kind = Some(match kind {
                0 => Kind::Thread,
                1 => Kind::Worker,
                other => return Err(format!("{other} is not a cosched_pipeline_kind")),
            });
            Ok(())
        })
    }
}

/// Fork and join: this number of copies of the stage run at once, each on buffers of its own. They share the user pointer, unless the
/// stage's init callback gives each one a state of its own. Not for bodies. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_incarnations(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    count: usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_incarnations", stage, |stage| {
            stage.refuse_body()?;
            stage.incarnations = count;
            Ok(())
        })
    }
}

/// Autotune (see cosched_pipeline_set_priorities) may add incarnations, up to this number, where the stage is the bottleneck. Not for bodies.
/// Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_replicable(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    count_max: usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_replicable", stage, |stage| {
            stage.refuse_body()?;
            stage.replicable = count_max;
            Ok(())
        })
    }
}

/// Whether the buffers leave several incarnations in the order in which they came; they do unless told otherwise. Returns 0
/// or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_ordered(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    ordered: bool,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { set_of_stage(pipeline, "cosched_pipeline_stage_ordered", stage, |stage| stage.ordered = ordered) }
}

/// Multistage thread: all stages with this thread's name share a thread and work in turn, in the order in which they were
/// added. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init; `thread` is NULL or a text of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_on_thread(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    thread: *const c_char,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_on_thread", stage, |stage| {
            stage.thread = Some(text_from(thread, "the thread's name")?.to_owned());
            Ok(())
        })
    }
}

/// Multistage repeat: in its turn on a shared thread the stage processes this number of buffers. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_repeat(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    times: usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { set_of_stage(pipeline, "cosched_pipeline_stage_repeat", stage, |stage| stage.repeat = times) }
}

/// For a body: while it waits for a buffer of a path it may hold at most this number of others of it. A path with no more buffers
/// than that is refused, as the body could wait for ever. Returns 0 or -1.
///
/// # Safety
/// As for cosched_pipeline_stage_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_stage_holds(
    pipeline: *mut cosched_pipeline,
    stage: c_int,
    buffers: usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        change(pipeline, "cosched_pipeline_stage_holds", stage, |stage| match stage.calls.work {
            Work::Body(_) => {
                stage.holds = Some(buffers);
                Ok(())
            }
            Work::Round(_) => Err(format!("stage '{}' is not a body: it holds one buffer", stage.name)),
        })
    }
}

/// Adds a path: a pool of `buffers` buffers of `size_bytes`, which go through the stages with these numbers, in this order,
/// and back to the pool. Returns the path's number, from 0, or -1.
///
/// # Safety
/// `pipeline` is NULL or a handle, `name` NULL or a text of C, `stages` points to `stage_count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cosched_pipeline_path(
    pipeline: *mut cosched_pipeline,
    name: *const c_char,
    buffers: usize,
    size_bytes: usize,
    stages: *const c_int,
    stage_count: usize,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        build(pipeline, "cosched_pipeline_path", |plan| {
            let name = text_from(name, "the path's name")?.to_owned();
            let numbers = match (stages.is_null(), stage_count) {
                (_, 0) => &[],
                (true, _) => return Err(format!("the stages of path '{name}' are NULL")),
                (false, count) => std::slice::from_raw_parts(stages, count),
            };
            let known = |number: &c_int| plan.stage(*number).map(|_| *number as usize);
            let stages = numbers.iter().map(known).collect::<Result<_, _>>()?;
            plan.paths.push(PathPlan { name, buffers, size_bytes, stages });
            number_of_last(plan.paths.len())
        })
    }
}
