//! Replaces the library's `buffer.rs`: the parts of a buffer that the workers' lists use.

use loom::sync::atomic::AtomicPtr;

pub(crate) struct Buffer(pub(crate) Box<Inner>);

pub(crate) struct Inner {
    token: Token,
    pub(crate) behind: AtomicPtr<Inner>,
    /// Loom reports a buffer that is leaked in a model.
    _tracked: loom::alloc::Track<()>,
}

pub(crate) struct Token {
    pub(crate) number: u64,
    pub(crate) incarnation: u32,
}

impl Buffer {
    pub(crate) fn new(number: u64) -> Buffer {
        let token = Token { number, incarnation: u32::MAX };
        Buffer(Box::new(Inner { token, behind: AtomicPtr::default(), _tracked: loom::alloc::Track::new(()) }))
    }

    pub(crate) fn token(&self) -> &Token {
        &self.0.token
    }

    pub(crate) fn token_mut(&mut self) -> &mut Token {
        &mut self.0.token
    }
}
