//! What daemons say about other processes: who is refused and why, and who does not answer. All of it goes through
//! [`News::say`].
//!
//! What must always hold: it is said within three seconds, and then seldom, which [`PeerWatch`] sees to.

use std::thread;
use std::time::Duration;

use rackmem::{PeerEvent, PeerWatch};

use crate::interrupt::Interrupt;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Who says it.
#[derive(Clone, Debug)]
pub(super) struct News {
    who: String,
    /// A daemon of `rackmem up` does not say that others are missing: `up` sees to them, and may have left some out.
    owned: bool,
}

impl News {
    pub(super) const fn of(who: String, owned: bool) -> Self {
        Self { who, owned }
    }

    /// Says what there is to say now.
    pub(super) fn say(&self, watch: &mut PeerWatch) {
        for event in watch.poll() {
            if !(self.owned && matches!(event, PeerEvent::Waiting { .. })) {
                say!("{}: {event}", self.who);
            }
        }
    }

    /// Goes on saying it, on a thread of its own, until the process shall end.
    pub(super) fn go_on(self, mut watch: PeerWatch, stop: Interrupt) -> std::io::Result<()> {
        let looking = move || {
            while !stop.requested() {
                self.say(&mut watch);
                thread::sleep(LOOK_EVERY);
            }
        };
        thread::Builder::new().name("peers".to_owned()).spawn(looking).map(drop)
    }
}
