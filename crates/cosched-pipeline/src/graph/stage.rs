//! Stages: what works on buffers, and how it is to run.

use cosched_core::stage::Resource;

use crate::buffer::Buffer;
use crate::error::BoxError;
use crate::exec::Port;
use crate::priority::Settings;

/// The number of a stage in its graph, from 0 in the order of [`Graph::stage`](crate::Graph::stage).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub(crate) usize);

impl StageId {
    /// The number.
    pub fn index(self) -> usize {
        self.0
    }
}

/// What a source says with a buffer. All other stages say `Continue`: the caboose ends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// There are more.
    Continue,
    /// This buffer is the last.
    Last,
    /// This buffer carries nothing; the one before was the last.
    End,
}

/// How a stage runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// On a thread of its own: for what blocks (I/O, messages, foreign calls).
    Thread,
    /// On the graph's workers, which carry a buffer through as many stages as they can: for what computes.
    Worker,
}

/// A stage that works on one buffer at a time.
pub trait Each: Send {
    /// Called once before the first buffer, on the thread that will work.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn init(&mut self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Works on a buffer. At the beginning of a path the buffer is empty and to be filled.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn round(&mut self, buffer: &mut Buffer) -> Result<Flow, BoxError>;

    /// Called once after the last buffer, and after a failure, if `init` went well.
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

/// A stage that accepts and conveys by itself: it may hold several buffers, or stand on several paths.
pub trait Body: Send {
    /// Called once before `run`, on the same thread.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn init(&mut self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Works until its paths have ended. Every buffer that was accepted has to be conveyed.
    ///
    /// # Errors
    /// Ends the pipeline.
    fn run(&mut self, port: &mut Port) -> Result<(), BoxError>;

    /// Called once after `run`, and after a failure, if `init` went well.
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

/// What a stage does, one entry per incarnation.
pub(crate) enum Work {
    Each(Vec<Box<dyn Each>>),
    Body(Box<dyn Body>),
}

/// A stage and how it is to run.
pub struct Stage {
    pub(crate) name: String,
    pub(crate) resource: Resource,
    pub(crate) work: Work,
    pub(crate) kind: Kind,
    pub(crate) ordered: bool,
    pub(crate) thread: Option<String>,
    pub(crate) repeat: usize,
    pub(crate) settings: Settings,
    /// How many of the incarnations, the last ones, work only when the graph is told to have more.
    pub(crate) reserve: usize,
    /// How many incarnations there may be, and what makes another one.
    pub(crate) replicable: usize,
    make: Option<Make>,
    /// How many buffers of a path it may have accepted while it waits for the next.
    pub(crate) holds: usize,
}

/// Makes the incarnation with a number.
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

    /// A stage that computes, on the workers.
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

    /// The beginning of a path: it fills empty buffers and says which is the last. What computes goes to the workers, the
    /// rest to a thread of its own.
    pub fn source(name: impl Into<String>, resource: Resource, each: impl Each + 'static) -> Stage {
        Stage::each(name, resource, each)
    }

    /// A stage with `init` and `cleanup`. What computes goes to the workers, the rest to a thread of its own.
    pub fn each(name: impl Into<String>, resource: Resource, each: impl Each + 'static) -> Stage {
        Stage::new(name, resource, Work::Each(vec![Box::new(each)]), default_kind(resource))
    }

    /// Fork and join: `incarnations` of a stage run at once, each on buffers of its own. Behind them the buffers are in
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

    /// A stage that accepts and conveys by itself, on a thread of its own.
    pub fn body(name: impl Into<String>, resource: Resource, body: impl Body + 'static) -> Stage {
        Stage::new(name, resource, Work::Body(Box::new(body)), Kind::Thread)
    }

    /// How it runs. A [`Body`] always has a thread of its own.
    pub fn kind(mut self, kind: Kind) -> Stage {
        self.kind = if matches!(self.work, Work::Body(_)) { Kind::Thread } else { kind };
        self
    }

    /// Whether the buffers leave several incarnations in the order in which they came. They do, unless told otherwise.
    pub fn ordered(mut self, ordered: bool) -> Stage {
        self.ordered = ordered;
        self
    }

    /// How its threads are to be scheduled, from before `init` on. A stage that asks for something gets a thread of its own:
    /// the workers are everybody's.
    pub fn with(mut self, settings: Settings) -> Stage {
        if !settings.is_empty() {
            self.kind = Kind::Thread;
        }
        self.settings = settings;
        self
    }

    /// Multistage thread: all stages with this thread's name share it and work in turn, in the order of the graph.
    pub fn on_thread(mut self, thread: impl Into<String>) -> Stage {
        self.thread = Some(thread.into());
        self.kind = Kind::Thread;
        self
    }

    /// Multistage repeat: in its turn on a shared thread it does so many buffers.
    pub fn repeat(mut self, times: usize) -> Stage {
        self.repeat = times;
        self
    }

    /// A [`replicated`](Stage::replicated) stage may have up to so many incarnations as the graph runs: autotune adds them
    /// where the stage limits. They are made now and begin (`init`) when they are added.
    pub fn replicable(mut self, incarnations_max: usize) -> Stage {
        self.replicable = incarnations_max;
        if let (Work::Each(all), Some(make)) = (&mut self.work, &self.make) {
            let more = all.len()..incarnations_max;
            self.reserve += more.len();
            all.extend(more.map(make));
        }
        self
    }

    /// For a [`Body`]: while it waits for a buffer of a path it may hold so many others of it, e.g. the last column while it
    /// merges the next. A path with fewer buffers than that and one more is refused; it would wait for ever.
    pub fn holds(mut self, buffers: usize) -> Stage {
        self.holds = buffers;
        self
    }

    /// Whether it runs on workers: a stage that shares a thread with others does not.
    pub(crate) fn on_workers(&self) -> bool {
        self.kind == Kind::Worker && self.thread.is_none() && matches!(self.work, Work::Each(_))
    }

    /// How many of it run at once at most.
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
