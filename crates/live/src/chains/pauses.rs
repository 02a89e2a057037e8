//! How long a client waits before it asks the same thing again: whoever was told that its question cannot be answered yet.
//!
//! On the client's thread. What the metadata server does not know yet may take a walk, some microseconds, or as long as an indeterminate append takes to be decided, some seconds: nobody
//! is helped by a thousand questions. What must always hold: each pause is at most twice as long as the one before, and at most
//! [`LONGEST`]; and nobody asks for ever.

use wire::Nanos;

/// The first pause, and the longest.
const FIRST: Nanos = Nanos::from_micros(5);
const LONGEST: Nanos = Nanos::from_millis(5);

/// How long something is tried that fails again and again.
pub(super) const TIMEOUT: Nanos = Nanos(60_000_000_000);

/// The pauses of one question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    began: Nanos,
    next: Nanos,
}

impl Pauses {
    /// It is asked for the first time.
    pub(super) const fn new(now: Nanos) -> Self {
        Self { began: now, next: FIRST }
    }

    /// There was no answer: when it is asked again. None: never, it has been tried for long enough.
    pub(super) fn after(&mut self, now: Nanos) -> Option<Nanos> {
        if now.saturating_sub(self.began) >= TIMEOUT {
            return None;
        }
        let until = now + self.next;
        self.next = Nanos(2 * self.next.0).min(LONGEST);
        Some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_end_with_the_timeout() {
        let began = Nanos(7_000_000_000);
        let (mut pauses, mut now, mut took) = (Pauses::new(began), began, Vec::new());
        while let Some(until) = pauses.after(now) {
            took.push(until.0 - now.0);
            // Each question takes a microsecond.
            now = until + Nanos::from_micros(1);
        }
        assert_eq!(took[..4], [5_000, 10_000, 20_000, 40_000]);
        assert!(took.is_sorted() && took.windows(2).all(|two| two[1] <= 2 * two[0]));
        assert_eq!(took.last(), Some(&5_000_000));
        let short = took.iter().filter(|pause| **pause < LONGEST.0).count();
        assert_eq!(short, 10, "after ten of them it takes the longest");
        // What is decided after three seconds and a half is not asked about more often than that.
        let asked = took.iter().scan(0, |sum, pause| {
            *sum += pause;
            (*sum < 3_500_000_000).then_some(())
        });
        assert!(asked.count() < 720);
        let tried = now - began;
        assert!(tried >= TIMEOUT && tried < TIMEOUT + LONGEST + LONGEST, "{tried}");
        assert_eq!(pauses.after(now), None, "and it stays at that");
    }

    #[test]
    fn a_question_that_was_held_up_for_long_is_asked_no_more() {
        let mut pauses = Pauses::new(Nanos(1));
        assert_eq!(pauses.after(Nanos(1)), Some(Nanos(5_001)));
        assert!(pauses.after(TIMEOUT).is_some());
        assert_eq!(pauses.after(TIMEOUT + Nanos(1)), None);
    }
}
