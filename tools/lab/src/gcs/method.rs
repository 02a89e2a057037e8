//! The inputs of all figures, with their sources.

use crate::concordia::method::rack_inputs;
use crate::figure::input::{Input, Source, fixed, inputs};
use crate::figure::point::Subject;

const fn is_layered(subject: Subject) -> bool {
    matches!(subject, Subject::Layered | Subject::DataApart)
}

const fn has_locks(subject: Subject) -> bool {
    !matches!(subject, Subject::Layered)
}

const RACK: [Input; 14] = rack_inputs!();

const KERNEL: &str = "MIND (SOSP '21): 9 us for a page from the memory blade (unverified), less 2.9 us of this rack's hardware";

const LOCKS: [Input; 14] = inputs![
    "a query of the store, without its lock and value": query; Source::Calibrated("section 5.1: 31.2 Mops of 80 threads"),
    "locks: enter, or leave": locks.enter, and locks.leave; Source::Estimated("a system call in a virtual machine"),
    "locks: access to 1 KB that is here": locks.access; Source::Estimated("16 lines of the processor's caches, 12 ns each"),
    "locks: from a call to its request": locks.ask; Source::Estimated(KERNEL); has_locks,
    "locks: from an answer until the thread goes on": locks.arrive; Source::Estimated(KERNEL); has_locks,
    "locks: a region is unmapped": locks.unmap; Source::Estimated("MIND: 18 us where another blade has the page (unverified)"); has_locks,
    "locks: a message that no thread waits for": locks.note; Source::Estimated("a message in a kernel"); has_locks,
    "locks: a thread of the same blade is woken": locks.wake; Source::Estimated("a futex, through the scheduler"); has_locks,
    "MIND: a word that is here": mind.access; Source::Estimated("an atomic on a line of another core"); is_layered,
    "MIND: from a fault to its request, and from the answer": mind.miss, and mind.answer; Source::Estimated(KERNEL); is_layered,
    "MIND: an invalidation": mind.give; Source::Estimated("MIND: 18 us where another blade has the page (unverified)"); is_layered,
    "MIND: a modified page goes by the memory blade": mind.flush; Source::Estimated("two trips and the page on this hardware"); is_layered,
    "MIND: a thread that finds another's fault waits": mind.joined; Source::Published("`fault_disagg.c`: 50 us, half on average"); is_layered,
    "MIND: a refused fault waits, on average": refused; Source::Published("`network_disagg.h`, `fault_disagg.c`"); is_layered,
];

const CHOSEN: [Input; 3] = [
    fixed(
        "cache of a blade",
        |_| format!("{} MiB", sim::locks::SimLocksConfig::new(9).cache >> 20),
        Source::Paper("section 5"),
    ),
    fixed(
        "entries of the switch",
        |_| sim::locks::SimLocksConfig::new(9).switch_entries.to_string(),
        Source::Chosen("more than there are locks"),
    ),
    fixed(
        "keys of the store",
        |_| "16,384, a bucket each".to_owned(),
        Source::Chosen("the paper does not say; all fit into each blade's cache"),
    ),
];

/// The inputs of the figures.
pub(crate) const INPUTS: &[&[Input]] = &[&RACK, &LOCKS, &CHOSEN];
