//! Stages: the code that works on buffers, and how to run it.

use cosched_core::stage::Resource;

use super::kinds::{Flow, Kind};
use crate::buffer::Buffer;
use crate::error::BoxError;
use crate::exec::Port;
use crate::priority::Settings;

/// A stage that works on one buffer at a time.
pub trait Each: Send {
    /// Called once before the first buffer, on the thread that will call `round`; on workers, on any one of them.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn init(&mut self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Works on a buffer. In the first stage of a path the buffer is empty and has to be filled.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn round(&mut self, buffer: &mut Buffer) -> Result<Flow, BoxError>;

    /// Called once after the last buffer, also after a failure, if `init` succeeded.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn cleanup(&mut self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<F: FnMut(&mut Buffer) -> Result<Flow, BoxError> + Send> Each for F {
    fn round(&mut self, buffer: &mut Buffer) -> Result<Flow, BoxError> {
        self(buffer)
    }
}

/// A stage that accepts and conveys buffers itself: it may hold several of them, or be on several paths.
pub trait Body: Send {
    /// Called once before `run`, on the same thread.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn init(&mut self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Runs until its paths have ended. Every buffer that was accepted has to be conveyed.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn run(&mut self, port: &mut Port) -> Result<(), BoxError>;

    /// Called once after `run`, also after a failure, if `init` succeeded.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn cleanup(&mut self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<F: FnMut(&mut Port) -> Result<(), BoxError> + Send> Body for F {
    fn run(&mut self, port: &mut Port) -> Result<(), BoxError> {
        self(port)
    }
}

/// A stage's code; of an `Each`, one per incarnation.
pub(crate) enum Work {
    Each(Vec<Box<dyn Each>>),
    Body(Box<dyn Body>),
}

/// A stage and how to run it.
pub struct Stage {
    pub(crate) name: String,
    pub(crate) resource: Resource,
    pub(crate) work: Work,
    pub(crate) kind: Kind,
    pub(crate) ordered: bool,
    pub(crate) thread: Option<String>,
    pub(crate) repeat: usize,
    pub(crate) settings: Settings,
    /// The number of incarnations, the last ones, that are inactive until the graph's number of incarnations is raised.
    pub(crate) reserve: usize,
    /// The maximum number of incarnations, and the function that makes another one.
    pub(crate) replicable: usize,
    make: Option<Make>,
    /// The number of buffers of a path that it may have accepted while it waits for the next.
    pub(crate) holds: usize,
}

/// Makes the incarnation with the given index.
type Make = Box<dyn Fn(usize) -> Box<dyn Each> + Send>;

impl Stage {
    fn new(name: impl Into<String>, resource: Resource, work: Work, kind: Kind) -> Stage {
        Stage {
            name: name.into(),
            resource,
            work,
            kind,
            ordered: true,
            thread: None,
            repeat: 1,
            settings: Settings::default(),
            reserve: 0,
            replicable: 0,
            make: None,
            holds: 0,
        }
    }

    /// A stage that computes, on the graph's workers.
    pub fn compute(
        name: impl Into<String>,
        mut work: impl FnMut(&mut Buffer) -> Result<(), BoxError> + Send + 'static,
    ) -> Stage {
        let each = move |buffer: &mut Buffer| work(buffer).map(|()| Flow::Continue);
        Stage::new(name, Resource::Compute, Work::Each(vec![Box::new(each)]), Kind::Worker)
    }

    /// A stage that blocks, on a thread of its own.
    pub fn blocking(
        name: impl Into<String>,
        resource: Resource,
        mut work: impl FnMut(&mut Buffer) -> Result<(), BoxError> + Send + 'static,
    ) -> Stage {
        let each = move |buffer: &mut Buffer| work(buffer).map(|()| Flow::Continue);
        Stage::new(name, resource, Work::Each(vec![Box::new(each)]), Kind::Thread)
    }

    /// The first stage of a path: it fills empty buffers and says which one is the last. If it computes, it runs on the
    /// workers, otherwise on a thread of its own.
    pub fn source(name: impl Into<String>, resource: Resource, each: impl Each + 'static) -> Stage {
        Stage::each(name, resource, each)
    }

    /// A stage with `init` and `cleanup`. If it computes, it runs on the workers, otherwise on a thread of its own.
    pub fn each(name: impl Into<String>, resource: Resource, each: impl Each + 'static) -> Stage {
        Stage::new(name, resource, Work::Each(vec![Box::new(each)]), default_kind(resource))
    }

    /// Fork and join: `incarnations` of a stage run concurrently, each on buffers of its own. After them the buffers are in
    /// order again, unless [`ordered(false)`](Stage::ordered).
    pub fn replicated<E: Each + 'static>(
        name: impl Into<String>,
        incarnations: usize,
        resource: Resource,
        make: impl Fn(usize) -> E + Send + 'static,
    ) -> Stage {
        let make = move |incarnation| Box::new(make(incarnation)) as Box<dyn Each>;
        let all = (0..incarnations).map(&make).collect();
        let stage = Stage::new(name, resource, Work::Each(all), default_kind(resource));
        Stage { make: Some(Box::new(make)), ..stage }
    }

    /// A stage that accepts and conveys buffers itself, on a thread of its own.
    pub fn body(name: impl Into<String>, resource: Resource, body: impl Body + 'static) -> Stage {
        Stage::new(name, resource, Work::Body(Box::new(body)), Kind::Thread)
    }

    /// Sets on what it runs. A [`Body`] always has a thread of its own.
    pub fn kind(mut self, kind: Kind) -> Stage {
        self.kind = if matches!(self.work, Work::Body(_)) { Kind::Thread } else { kind };
        self
    }

    /// Sets whether the buffers leave several incarnations in the order in which they arrived. The default is true.
    pub fn ordered(mut self, ordered: bool) -> Stage {
        self.ordered = ordered;
        self
    }

    /// Sets how its threads are scheduled, from before `init` on. A stage with settings gets a thread of its own, because
    /// the workers are shared by all stages.
    pub fn with(mut self, settings: Settings) -> Stage {
        if !settings.is_empty() {
            self.kind = Kind::Thread;
        }
        self.settings = settings;
        self
    }

    /// Multistage thread: all stages with this thread name share one thread and take turns on it, in the order of the graph.
    pub fn on_thread(mut self, thread: impl Into<String>) -> Stage {
        self.thread = Some(thread.into());
        self.kind = Kind::Thread;
        self
    }

    /// Multistage repeat: the number of buffers that it processes in its turn on a shared thread.
    pub fn repeat(mut self, times: usize) -> Stage {
        self.repeat = times;
        self
    }

    /// Sets the maximum number of incarnations of a [`replicated`](Stage::replicated) stage: autotune adds incarnations
    /// while the graph runs if the stage limits it. They are made now, and initialised (`init`) when they are added.
    pub fn replicable(mut self, incarnations_max: usize) -> Stage {
        self.replicable = incarnations_max;
        if let (Work::Each(all), Some(make)) = (&mut self.work, &self.make) {
            let more = all.len()..incarnations_max;
            self.reserve += more.len();
            all.extend(more.map(make));
        }
        self
    }

    /// For a [`Body`]: the number of other buffers of a path that it may hold while it waits for a buffer of that path, e.g.
    /// the last column while it merges the next. A path without at least one buffer more than that is refused; it would wait
    /// forever.
    pub fn holds(mut self, buffers: usize) -> Stage {
        self.holds = buffers;
        self
    }

    /// Whether it runs on workers: a stage that shares a thread with others does not.
    pub(crate) fn on_workers(&self) -> bool {
        self.kind == Kind::Worker && self.thread.is_none() && matches!(self.work, Work::Each(_))
    }

    /// The maximum number of its incarnations that run concurrently.
    pub(crate) fn incarnations(&self) -> usize {
        match &self.work {
            Work::Each(all) => all.len(),
            Work::Body(_) => 1,
        }
    }
}

fn default_kind(resource: Resource) -> Kind {
    if resource == Resource::Compute { Kind::Worker } else { Kind::Thread }
}
