//! What threads of a rack that runs FlowCC do, and what may still happen there.

use crate::explore::world as rack;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    Idle,
    /// Waiting for its operation, in this slot.
    Waiting {
        slot: u8,
        turn: u8,
        /// The block that it reads has been written since: what was read before that will do, too.
        overtaken: bool,
    },
    /// Waiting for another thread's operation.
    Joining {
        slot: u8,
    },
    /// About to access a frame that is pinned for it.
    Pinned {
        frame: u8,
        turn: u8,
    },
    /// Holding a lock.
    Holding {
        slot: u8,
        turn: u8,
    },
}

/// What may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budgets {
    pub(super) losses: u8,
    pub(super) duplicates: u8,
    pub(super) premature: u8,
    pub(super) adds: u8,
    pub(super) removes: u8,
    pub(super) purges: u8,
}

/// A state.
pub(super) type World = rack::World<Doing, Budgets>;

impl rack::Budgets for Budgets {
    fn counts(self) -> [u8; 7] {
        let Self { losses, duplicates, premature, adds, removes, purges } = self;
        [losses, duplicates, premature, adds, removes, purges, 0]
    }

    fn of([losses, duplicates, premature, adds, removes, purges, _]: [u8; 7]) -> Self {
        Self { losses, duplicates, premature, adds, removes, purges }
    }
}

impl rack::Doing for Doing {
    const IDLE: Self = Self::Idle;

    fn encode(self) -> [u8; 3] {
        match self {
            Self::Idle => [0, 0, 0],
            Self::Waiting { slot, turn, overtaken: false } => [1, slot, turn],
            Self::Waiting { slot, turn, overtaken: true } => [5, slot, turn],
            Self::Joining { slot } => [2, slot, 0],
            Self::Pinned { frame, turn } => [3, frame, turn],
            Self::Holding { slot, turn } => [4, slot, turn],
        }
    }

    fn decode([kind, a, b]: [u8; 3]) -> Self {
        match kind {
            0 => Self::Idle,
            1 | 5 => Self::Waiting { slot: a, turn: b, overtaken: kind == 5 },
            2 => Self::Joining { slot: a },
            3 => Self::Pinned { frame: a, turn: b },
            _ => Self::Holding { slot: a, turn: b },
        }
    }
}
