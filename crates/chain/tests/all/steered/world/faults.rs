//! What goes wrong, and how often. What must always hold: a run follows from its seed.

/// What goes wrong, per mille.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// Packets that take much longer than others.
    pub(crate) delay: u64,
    /// A packet's way takes up to so much more than another's.
    pub(crate) jitter: u64,
    /// Mishaps, out of a million, for each event.
    pub(crate) restarts: u64,
    pub(crate) forgets: u64,
    pub(crate) breaks: u64,
    pub(crate) naks: u64,
    pub(crate) deaths: u64,
    pub(crate) sleeps: u64,
    pub(crate) keys: u64,
    /// Memories die, where there are copies.
    pub(crate) memories: u64,
}

impl Faults {
    pub(crate) const ALL: Self = Self {
        loss: 10,
        duplication: 20,
        delay: 20,
        jitter: 20,
        restarts: 120,
        forgets: 120,
        breaks: 150,
        naks: 150,
        deaths: 150,
        sleeps: 200,
        keys: 300,
        memories: 150,
    };

    /// A switch that restarts again and again, while packets are lost that it has steered.
    pub(crate) const STORMS: Self = Self { loss: 80, restarts: 1_000, ..Self::ALL };
}
