//! A process's clock: it starts anywhere, and runs up to 200 ppm too fast or too slow.

use wire::Nanos;

use super::Random;

#[derive(Clone, Copy)]
pub(crate) struct Clock {
    offset: u64,
    ppm: i64,
}

impl Clock {
    pub(crate) fn draw(random: &mut Random) -> Self {
        // The extremes are what matters.
        let ppm = [-200, 200, 0, random.below(401) as i64 - 200][random.below(4) as usize];
        Self { offset: random.below(1 << 40), ppm }
    }

    /// What it shows at this moment.
    pub(crate) fn at(self, now: u64) -> Nanos {
        Nanos(self.offset + (now as i128 * i128::from(1_000_000 + self.ppm) / 1_000_000) as u64)
    }

    /// The first moment at which it shows this.
    pub(crate) fn when(self, shown: Nanos) -> u64 {
        if shown == Nanos::MAX {
            return u64::MAX;
        }
        let span = shown.0.saturating_sub(self.offset);
        let mut now = (i128::from(span) * 1_000_000 / i128::from(1_000_000 + self.ppm)) as u64;
        while self.at(now) < shown {
            now += 1;
        }
        now
    }
}
