//! The measured round-trip time, smoothed as TCP does it (RFC 6298).

use wire::Nanos;

/// SRTT and RTTVAR of a node's requests.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RoundTrip {
    smoothed: Nanos,
    variation: Nanos,
}

impl RoundTrip {
    /// Takes in the round trip of a request that was sent once (Karn's rule).
    pub(crate) fn measured(&mut self, sample: Nanos) {
        if self.smoothed == Nanos::ZERO {
            self.smoothed = sample;
            self.variation = Nanos(sample.0 / 2);
            return;
        }
        let off = self.smoothed.0.abs_diff(sample.0);
        self.variation = Nanos((self.variation.0 * 3 + off) / 4);
        self.smoothed = Nanos((self.smoothed.0 * 7 + sample.0) / 8);
    }

    /// A time in which an answer should have come: SRTT + 4 RTTVAR.
    pub(crate) fn bound(&self) -> Nanos {
        self.smoothed + Nanos(4 * self.variation.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_settles_near_a_steady_round_trip_and_widens_with_jitter() {
        let mut steady = RoundTrip::default();
        let mut jittery = RoundTrip::default();
        for i in 0..100 {
            steady.measured(Nanos(1000));
            jittery.measured(Nanos(if i % 2 == 0 { 500 } else { 1500 }));
        }
        assert!((1000..1010).contains(&steady.bound().0), "{steady:?}");
        assert!(jittery.bound().0 > 2000, "{jittery:?}");
    }
}
