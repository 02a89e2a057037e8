//! Which counters of a peer have been seen: each is accepted once. Runs in the receiver, after the tag was checked.
//!
//! A ring of bits, one for each of the last [`Window::SPAN`] counters (the scheme of RFC 6479). What must always
//! hold: a counter is accepted at most once, however old; a counter that is less than a span behind the newest is
//! accepted if it has not been seen.

const WORDS: usize = 33;

/// The counters of one peer.
#[derive(Debug)]
pub(super) struct Window {
    /// The newest that was accepted.
    newest: u64,
    /// Nothing up to here is accepted.
    floor: u64,
    /// Bit `c % 64` of word `c / 64 % WORDS` is counter `c`.
    seen: [u64; WORDS],
}

impl Window {
    /// How far behind the newest a counter may be. One word is left over: moving on clears a whole word.
    pub(super) const SPAN: u64 = (WORDS as u64 - 1) * 64;

    /// A window that accepts whatever comes after `floor`.
    pub(super) const fn after(floor: u64) -> Self {
        Self { newest: floor, floor, seen: [0; WORDS] }
    }

    /// True if this counter may still be accepted.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        if counter > self.newest {
            return true;
        }
        counter > self.floor
            && self.newest - counter < Self::SPAN
            && self.seen[word(counter)] & bit(counter) == 0
    }

    /// Accepts a counter, unless it has been seen or is too old to tell.
    pub(super) fn accept(&mut self, counter: u64) -> bool {
        if !self.is_new(counter) {
            return false;
        }
        if counter > self.newest {
            let (old, new) = (self.newest / 64, counter / 64);
            for cleared in (old..new).take(WORDS) {
                self.seen[(cleared + 1) as usize % WORDS] = 0;
            }
            self.newest = counter;
        }
        self.seen[word(counter)] |= bit(counter);
        true
    }
}

const fn word(counter: u64) -> usize {
    (counter / 64 % WORDS as u64) as usize
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use super::Window;

    const SPAN: u64 = Window::SPAN;
    const _: () = assert!(SPAN >= 1_024);

    #[test]
    fn a_counter_is_accepted_once() {
        let mut window = Window::after(0);
        for counter in 1..=3 * SPAN {
            assert!(window.accept(counter), "{counter} is new");
            assert!(!window.accept(counter), "{counter} has been seen");
        }
    }

    #[test]
    fn zero_and_whatever_was_before_the_session_is_never_accepted() {
        assert!(!Window::after(0).accept(0));
        let mut window = Window::after(100);
        assert!(!window.accept(100) && !window.accept(1));
        assert!(window.accept(101));
    }

    #[test]
    fn the_oldest_in_the_window_is_accepted_and_the_one_before_is_not() {
        for newest in [SPAN, SPAN + 1, SPAN + 63, SPAN + 64, 5 * SPAN + 17] {
            let mut window = Window::after(0);
            assert!(window.accept(newest));
            if newest > SPAN {
                assert!(!window.accept(newest - SPAN), "a span behind {newest} is too old");
            }
            assert!(window.accept(newest - SPAN + 1), "the last in the window of {newest}");
            assert!(!window.accept(newest - SPAN + 1), "but once");
        }
    }

    #[test]
    fn a_jump_of_any_length_forgets_nothing_that_it_should_know() {
        for jump in [1, 63, 64, 65, SPAN - 1, SPAN, SPAN + 1, SPAN + 64, SPAN + 65, 10 * SPAN, u64::MAX - 200]
        {
            let mut window = Window::after(0);
            for counter in 1..=100 {
                assert!(window.accept(counter));
            }
            let newest = 100 + jump;
            assert!(window.accept(newest));
            for counter in 1..=100 {
                assert!(!window.accept(counter), "{counter} again after a jump of {jump}");
            }
            for behind in 1..SPAN.min(jump) {
                assert!(window.accept(newest - behind), "{behind} behind after a jump of {jump}");
            }
        }
    }

    #[test]
    fn the_last_counter_of_all_is_accepted_once() {
        let mut window = Window::after(0);
        assert!(window.accept(u64::MAX));
        assert!(!window.accept(u64::MAX));
        assert!(window.accept(u64::MAX - 1));
    }

    #[test]
    fn it_agrees_with_a_plain_set() {
        let mut window = Window::after(0);
        let mut seen = std::collections::BTreeSet::new();
        let mut newest = 0_u64;
        let mut random = random::Random::new(1);
        for _ in 0..200_000 {
            let back = random.below(SPAN + 200);
            let counter = (newest + 90).saturating_sub(back).max(1);
            let expected = (counter > newest || newest - counter < SPAN) && !seen.contains(&counter);
            assert_eq!(window.accept(counter), expected, "{counter}, newest {newest}");
            if expected {
                seen.insert(counter);
                newest = newest.max(counter);
            }
        }
    }
}
