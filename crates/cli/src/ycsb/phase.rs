//! A phase of a run: all clients at work at once, one thread each, until they are done or somebody stops them.

use std::num::NonZero;
use std::panic;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::progress::Progress;
use super::store::StoreError;
use crate::clock::Moment;
use crate::fault::Fault;
use crate::interrupt::Interrupt;

/// How often the supervising thread looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks without any progress after which the run is given up. Looks are counted rather than time taken: a process
/// that was stopped for a while is not stuck.
const STUCK_AFTER: u32 = 600;
/// The same once the clients were asked to stop.
const STUCK_STOPPING_AFTER: u32 = 100;
/// A client shows what it has done each time it has done this many operations more, so that it costs nothing.
const SHOW_EVERY: NonZero<u64> = NonZero::new(64).unwrap();

/// A counter on a cache line pair of its own, which no other client writes to.
#[derive(Default, Debug)]
#[repr(align(128))]
struct Count(AtomicU64);

/// What a client has of the phase: whether to go on, and where to show how far it is.
#[derive(Debug)]
pub(crate) struct Gauge<'a> {
    stop: &'a AtomicBool,
    done: &'a Count,
}

impl Gauge<'_> {
    /// Whether to stop before the next operation.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// So many operations are done.
    pub(crate) fn show(&self, done: u64) {
        if done.is_multiple_of(SHOW_EVERY.get()) {
            self.done.0.store(done, Ordering::Relaxed);
        }
    }
}

/// From when to when a phase went on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Span {
    began: Moment,
    ended: Moment,
}

impl Span {
    /// From then to then.
    pub fn new(began: Moment, ended: Moment) -> Self {
        Self { began, ended }
    }

    /// How long it took.
    pub fn took(&self) -> Duration {
        self.ended - self.began
    }

    /// From when the first of two began to when the last ended.
    pub fn with(self, other: Self) -> Self {
        Self { began: self.began.min(other.began), ended: self.ended.max(other.ended) }
    }
}

/// Whether the clients get on.
#[derive(Default, Debug)]
struct Watch {
    done: u64,
    idle_looks: u32,
}

impl Watch {
    /// Looks once more; true if nothing has happened for so long that nothing will.
    fn is_stuck(&mut self, done: u64, stopping: bool) -> bool {
        self.idle_looks = if done == self.done { self.idle_looks + 1 } else { 0 };
        self.done = done;
        self.idle_looks >= if stopping { STUCK_STOPPING_AFTER } else { STUCK_AFTER }
    }
}

/// Stops the others when a client panics, or the phase would wait for them to finish in vain.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Lets each client do `work` (which also gets the client's number) on a thread of its own. They start together;
/// the time from then until the last one is done is given. An interrupt stops them all, and so does the first that fails.
pub(crate) fn in_parallel<C: Send>(
    clients: &mut [C],
    interrupt: &Interrupt,
    progress: &mut Progress,
    work: impl Fn(usize, &mut C, &Gauge<'_>) -> Result<(), StoreError> + Sync,
) -> Result<Span, StoreError> {
    let stop = AtomicBool::new(false);
    let start = OnceLock::new();
    let done: Vec<Count> = clients.iter().map(|_| Count::default()).collect();
    let (stop, start, work, count) = (&stop, &start, &work, clients.len());
    thread::scope(|scope| {
        let (finished, at_work) = mpsc::channel::<()>();
        let mut threads = Vec::new();
        for (number, (client, done)) in clients.iter_mut().zip(&done).enumerate() {
            let finished = finished.clone();
            let body = move || {
                // Dropped at the end, however it comes; the last drop ends the phase.
                let _finished = finished;
                let _stop_on_panic = StopOnPanic(stop);
                start.wait();
                let result = work(number, client, &Gauge { stop, done });
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                (result, Moment::now())
            };
            match thread::Builder::new().name(format!("client {number}")).spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    start.get_or_init(|| ());
                    return Err(StoreError(format!(
                        "cannot start thread {number} of {count}: {error}; use fewer --nodes or --threads"
                    )));
                }
            }
        }
        drop(finished);
        let began = Moment::now();
        start.get_or_init(|| ());
        let mut watch = Watch::default();
        while at_work.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            if interrupt.requested() {
                stop.store(true, Ordering::Relaxed);
            }
            let done = done.iter().map(|count| count.0.load(Ordering::Relaxed)).sum();
            progress.show(done);
            if watch.is_stuck(done, stop.load(Ordering::Relaxed)) {
                give_up(done);
            }
        }
        let mut ended = began;
        let mut outcome = Ok(());
        for thread in threads {
            let (result, at) = thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            ended = ended.max(at);
            outcome = outcome.and(result);
        }
        outcome.map(|()| Span { began, ended })
    })
}

/// Ends the process: the threads are inside an operation that does not return, and cannot be taken out of it.
fn give_up(done: u64) -> ! {
    Fault::Stuck(format!(
        "no operation has returned since about the {done}th; this is a bug in rackmem: please report it with the \
         command line and the seed"
    ))
    .report();
    process::exit(i32::from(Fault::STUCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_stuck_when_it_does_not_get_on_look_after_look() {
        let mut watch = Watch::default();
        assert!((1..5000).all(|done| !watch.is_stuck(done, false)));
        let looks = (0..).take_while(|_| !watch.is_stuck(4999, false)).count();
        assert_eq!(looks, 599);
        assert!(!watch.is_stuck(5000, false));
    }

    #[test]
    fn a_run_that_was_asked_to_stop_has_less_time() {
        let mut watch = Watch::default();
        assert_eq!((0..).take_while(|_| !watch.is_stuck(0, true)).count(), 99);
    }

    #[test]
    fn a_client_that_panics_stops_the_others_and_is_heard_of() {
        let interrupt = Interrupt::default();
        let outcome = panic::catch_unwind(|| {
            let mut progress = Progress::start("test".to_owned(), 0);
            in_parallel(&mut [0, 1, 2], &interrupt, &mut progress, |number, _, gauge| {
                assert!(number != 1, "as this test wants");
                while !gauge.stopped() {
                    thread::yield_now();
                }
                Ok(())
            })
        });
        assert!(outcome.is_err());
    }
}
