//! What threads of a rack of locks do, and what may still happen there.

use crate::explore::world as rack;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    Idle,
    /// Waiting until it may enter.
    Waiting {
        turn: u8,
    },
    /// Inside.
    Inside {
        turn: u8,
    },
    /// Waiting for the lock's end.
    Ending {
        turn: u8,
    },
}

/// What may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budgets {
    pub(super) losses: u8,
    pub(super) duplicates: u8,
    pub(super) premature: u8,
    pub(super) cancels: u8,
    pub(super) leaves: u8,
    pub(super) restarts: u8,
    pub(super) vacancies: u8,
}

/// A state.
pub(super) type World = rack::World<Doing, Budgets>;

impl rack::Budgets for Budgets {
    fn counts(self) -> [u8; 7] {
        let Self { losses, duplicates, premature, cancels, leaves, restarts, vacancies } = self;
        [losses, duplicates, premature, cancels, leaves, restarts, vacancies]
    }

    fn of([losses, duplicates, premature, cancels, leaves, restarts, vacancies]: [u8; 7]) -> Self {
        Self { losses, duplicates, premature, cancels, leaves, restarts, vacancies }
    }
}

impl rack::Doing for Doing {
    const IDLE: Self = Self::Idle;

    fn encode(self) -> [u8; 3] {
        match self {
            Self::Idle => [0, 0, 0],
            Self::Waiting { turn } => [1, turn, 0],
            Self::Inside { turn } => [2, turn, 0],
            Self::Ending { turn } => [3, turn, 0],
        }
    }

    fn decode([kind, turn, _]: [u8; 3]) -> Self {
        match kind {
            0 => Self::Idle,
            1 => Self::Waiting { turn },
            2 => Self::Inside { turn },
            _ => Self::Ending { turn },
        }
    }
}
