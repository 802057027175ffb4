//! Two observers as one.

use crate::observe::{JobChange, Message, Observer, Slice};

/// Both receive all reports.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const TELL: bool = A::TELL || B::TELL;

    fn slice(&mut self, slice: Slice) {
        self.0.slice(slice);
        self.1.slice(slice);
    }

    fn message(&mut self, message: Message) {
        self.0.message(message);
        self.1.message(message);
    }

    fn job(&mut self, time_ns: u64, job: u32, change: JobChange, nodes: &[u32], row: Option<u32>) {
        self.0.job(time_ns, job, change, nodes, row);
        self.1.job(time_ns, job, change, nodes, row);
    }

    fn row(&mut self, time_ns: u64, row: u32) {
        self.0.row(time_ns, row);
        self.1.row(time_ns, row);
    }
}

/// It receives reports if it exists.
impl<A: Observer> Observer for Option<A> {
    const TELL: bool = A::TELL;

    fn slice(&mut self, slice: Slice) {
        if let Some(observer) = self {
            observer.slice(slice);
        }
    }

    fn message(&mut self, message: Message) {
        if let Some(observer) = self {
            observer.message(message);
        }
    }

    fn job(&mut self, time_ns: u64, job: u32, change: JobChange, nodes: &[u32], row: Option<u32>) {
        if let Some(observer) = self {
            observer.job(time_ns, job, change, nodes, row);
        }
    }

    fn row(&mut self, time_ns: u64, row: u32) {
        if let Some(observer) = self {
            observer.row(time_ns, row);
        }
    }
}
