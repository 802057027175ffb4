//! A running graph as its monitor sees it.

use super::shared::Shared;
use crate::error::Cause;
use crate::monitor::{Watch, Watched};
use crate::report::Report;

impl Watched for Shared {
    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn queue_len(&self, stage: usize) -> usize {
        self.stages[stage].incoming.len()
    }

    fn fail(&self, stage: usize, cause: Cause) {
        Shared::fail(self, Some(stage), cause);
    }

    fn incarnations(&self, _stage: usize, _count: u32) -> Result<(), String> {
        Err("stages have the threads that they began with".to_owned())
    }

    fn report(&self) -> Report {
        Shared::report(self)
    }
}
