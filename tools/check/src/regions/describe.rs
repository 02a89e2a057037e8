//! What is shown of words and objects, to whoever asks why a run failed.

use std::fmt::Write as _;

use wire::Rules;

use super::threads::Doing;
use super::world::Regions;
use crate::rack::Bench;

impl<R: Rules> Regions<R> {
    /// A page: who waits for which operation of which NIC.
    pub(crate) fn describe<M: Copy>(&self, bench: &Bench<M>) -> String {
        let mut page = String::new();
        for (index, doing) in self.threads.iter().enumerate() {
            if !matches!(doing, Doing::Idle) {
                let _ = writeln!(page, "thread {index} of words, of {}: {doing:?}", self.node_of(index));
            }
        }
        for (nic, asked) in self.nics.iter().zip(&self.asked) {
            let me = nic.me;
            if !bench.control.is_up(Some(me)) {
                continue;
            }
            for (number, work) in nic.works() {
                let incarnations = nic.connections.incarnations(work.peer);
                let state = nic.device.state(nic.connections.queue_pair(work.peer));
                let _ =
                    writeln!(page, "{me} has work {number} in flight: {work:?}, {incarnations:?}, {state:?}");
            }
            if !asked.is_empty() {
                let _ = writeln!(page, "{me} has {} calls to serve", asked.len());
            }
            if !nic.is_quiet() {
                let _ = writeln!(page, "{me}'s NIC wants to be called at {:?}", nic.next_deadline());
            }
        }
        page
    }
}
