//! How long something has been waited for, by looks: if a look comes late, whoever looks had no processor, or was stopped,
//! and those whom it waits for may have had none either. That is no sign that they are stuck.

use std::time::{Duration, Instant};

/// The most that counts between two looks.
const COUNTED: Duration = Duration::from_millis(100);

/// A wait for others to do something.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Waiting {
    looked: Option<Instant>,
    waited: Duration,
}

impl Waiting {
    /// It is still waited for.
    pub(super) fn look(&mut self, now: Instant) {
        let since = self.looked.replace(now).map_or(Duration::ZERO, |looked| now - looked);
        self.waited += since.min(COUNTED);
    }

    /// For how long so far.
    pub(super) const fn waited(&self) -> Duration {
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_count_and_an_hour_without_a_processor_does_not() {
        let mut waiting = Waiting::default();
        let began = Instant::now();
        waiting.look(began);
        assert_eq!(waiting.waited(), Duration::ZERO);
        let later = began + Duration::from_secs(3600);
        waiting.look(later);
        assert_eq!(waiting.waited(), COUNTED);
        (1..=50).for_each(|look| waiting.look(later + Duration::from_millis(20) * look));
        assert_eq!(waiting.waited(), COUNTED + Duration::from_secs(1));
    }
}
