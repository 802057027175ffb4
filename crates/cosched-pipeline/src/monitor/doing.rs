//! What a thread is doing at the moment, for the watchers: a single number that is stored and loaded
//! atomically.

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It works for no stage: it starts, ends, or waits as a worker.
    Nothing,
    /// It is in this stage's `init` or `cleanup`.
    Aside(usize),
    /// It has a buffer of this stage and works on it.
    Work(usize),
    /// It is a worker and is in this stage; for how long is known only after it has left the stage.
    Carry(usize),
    /// It waits for a buffer of the stage's predecessors.
    WaitIn(usize),
    /// It waits for an empty buffer, which the stage's successors hold.
    WaitOut(usize),
}

impl Doing {
    pub(super) fn encode(self) -> u64 {
        match self {
            Doing::Nothing => 0,
            Doing::Work(stage) => (stage as u64) << 3 | 1,
            Doing::WaitIn(stage) => (stage as u64) << 3 | 2,
            Doing::WaitOut(stage) => (stage as u64) << 3 | 3,
            Doing::Aside(stage) => (stage as u64) << 3 | 4,
            Doing::Carry(stage) => (stage as u64) << 3 | 5,
        }
    }

    pub(super) fn decode(code: u64) -> Doing {
        let stage = (code >> 3) as usize;
        match code & 7 {
            1 => Doing::Work(stage),
            2 => Doing::WaitIn(stage),
            3 => Doing::WaitOut(stage),
            4 => Doing::Aside(stage),
            5 => Doing::Carry(stage),
            _ => Doing::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Doing;

    #[test]
    fn what_is_stored_is_loaded() {
        for doing in
            [Doing::Nothing, Doing::Work(0), Doing::WaitIn(7), Doing::WaitOut(1000), Doing::Aside(3), Doing::Carry(9)]
        {
            assert_eq!(Doing::decode(doing.encode()), doing);
        }
    }
}
