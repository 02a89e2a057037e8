//! How long things take in a store of chains, and how long what somebody knows of them counts: all of it follows from here.
//!
//! In all processes. What must always hold: a slot stays in quarantine for longer than anybody uses what was known of it.
//!
//! ```text
//!   lease      what a client knows of a chain counts for reads, from when it was known to be in use
//!   lifetime   what the switch knows of a slot counts, from when it has learned it
//!   in flight  a packet may be on its way, with all its repetitions
//!   decide after: then nothing of what a client asked is executed any more, and is decided what became of it
//!   quarantine a slot that is no tail any more is not used anew
//! ```

use wire::Nanos;

use crate::config::Steering;

/// Longer than a request of a client that is not held up is in flight: it is given up after a second
/// (a hundred repetitions of ten milliseconds).
pub(crate) const IN_FLIGHT: Nanos = Nanos::from_millis(1500);

/// How long the switch takes for true what it knows of slots. A key that is written to more often than twice in that time never loses
/// its tail, so it costs nothing that matters; and memory has to wait in quarantine for it.
pub(crate) const LIFETIME: Nanos = Nanos::from_millis(2000);

/// How long a tail counts that a metadata server has found, from when it began to look: less than what is in flight in any case.
pub(crate) const FOUND: Nanos = Nanos::from_millis(1000);
const _: () = assert!(FOUND.0 < IN_FLIGHT.0);

/// Whose entries slots have, it takes for true for so many lifetimes where it steers reads, so that those of old entries are steered, too:
/// for less than a slot's number takes to come round, which is 256 quarantines.
pub(crate) const SLOT_LIFETIMES: u32 = 16;

/// A client's append may go behind what it knew so many quarantines ago, where the switch steers: the number of a slot's use, which is compared,
/// comes round after 256 of them.
const QUARANTINES: u64 = 64;

/// The shortest time for which slots of a store must rest, on a rack that steers like this: longer than a cursor counts, by more than
/// clocks of nodes differ in so short a time.
///
/// Where reads are steered, a client may be sent to an entry that has ceased to be the tail as long ago as the switch knows it, and the
/// acknowledgement took from which it learned it; and follow what stands there, for as long as its own cursor counts.
pub fn least_quarantine(lease: Nanos, steering: Option<Steering>) -> Nanos {
    let cursors = lease + Nanos(lease.0 / 8) + Nanos::from_millis(1);
    match steering {
        Some(Steering { reads: true, .. }) => cursors + LIFETIME + IN_FLIGHT,
        // What the switch knows must be forgotten before the number of a slot's use comes round.
        Some(_) => cursors.max(Nanos(LIFETIME.0 / QUARANTINES)),
        None => cursors,
    }
}

/// How long nobody decides what became of a slot, where the switch steers: a node that is silent for `timeout` is dead, and until then its
/// process may only have been stopped.
pub(crate) fn decide_after(steering: Option<Steering>, timeout: Nanos) -> Nanos {
    if steering.is_some() { timeout + timeout + IN_FLIGHT } else { Nanos::ZERO }
}

/// How old a cursor of a client may be for its steered appends.
pub(crate) const fn old_cursors(quarantine: Nanos) -> Nanos {
    Nanos(quarantine.0.saturating_mul(QUARANTINES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_rest_for_longer_than_anything_that_is_known_of_them_counts() {
        let steers = |reads| Some(Steering { keys: 1, reads, preload: false });
        for lease in [1, 20, 400, 20_000].map(Nanos::from_millis) {
            let [native, appends, reads] =
                [None, steers(false), steers(true)].map(|how| least_quarantine(lease, how));
            assert!(native > lease && appends >= native);
            assert!(reads > lease + LIFETIME + IN_FLIGHT);
            // Numbers come round after 256 quarantines.
            assert!(LIFETIME.0 < 256 * appends.0 && old_cursors(appends).0 < 256 * appends.0);
            assert!(u64::from(SLOT_LIFETIMES) * LIFETIME.0 < 256 * reads.0);
        }
    }
}
