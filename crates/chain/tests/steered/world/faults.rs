//! Chance, and what goes wrong by it. What must always hold: a run follows from its seed.

/// SplitMix64.
pub(crate) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}

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
    };

    /// A switch that restarts again and again, while packets are lost that it has steered.
    pub(crate) const STORMS: Self = Self { loss: 80, restarts: 1_000, ..Self::ALL };
}
