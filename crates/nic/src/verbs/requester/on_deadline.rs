//! No answer came in time, or the peer's time to post a receive has passed.

use wire::{Nanos, Rule, Rules};

use super::Requester;
use crate::verbs::queue_pair::{Context, Health};
use crate::verbs::work::Status;

impl Requester {
    /// Sends again what is due. Being called early is harmless.
    pub(crate) fn on_deadline<R: Rules>(&mut self, cx: &mut Context<'_, R>) -> Health {
        if cx.now < self.deadline {
            return Health::Fine;
        }
        self.deadline = Nanos::MAX;
        if self.resting {
            self.resting = false;
            return self.transmit(cx);
        }
        if !cx.rules.holds(Rule::PacketsAreRepeated) {
            return Health::Fine;
        }
        cx.counters.timed_out += 1;
        if self.retries == 0 {
            return self.fail(cx, 0, Status::RetryExceeded);
        }
        self.retries -= 1;
        // What else is heard of this loss is old.
        self.went_back = true;
        self.rewind();
        self.transmit(cx)
    }
}
