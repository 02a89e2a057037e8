//! How a thread waits for something that another thread will do.
//!
//! Measured on small machines, waking a thread on another core costs 20 to 50 us and a yield well under one,
//! so a waiting thread first gives its core away again and again, and only after 50 us sleeps. Where a yield
//! itself takes over a millisecond, the machine has more runnable threads than cores: threads that only look
//! whether they may go on steal time from those that make them go on, and a message that comes meanwhile waits for a
//! scheduler's slice. Every wait then sleeps at once, for 100 ms; then one thread tries a yield again, and if that takes
//! as long, for twice that, up to some seconds.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wire::Nanos;

use crate::scheduling::Scheduling;

/// How long a thread yields before it sleeps.
const YIELD_FOR: Nanos = Nanos::from_micros(50);
/// A yield that takes longer than this says that the machine is full.
const LONG_YIELD: Nanos = Nanos::from_millis(1);
/// How long the machine is then taken to be full, the first time and at most.
const FULL_FOR: Nanos = Nanos::from_millis(100);
const FULL_FOR_AT_MOST: Nanos = Nanos::from_millis(6_400);
/// The longest sleep: what a lost wake-up could cost.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(2);
/// Nothing is slept that is shorter than a wake-up takes.
const SHORTEST_SLEEP: Nanos = Nanos::from_micros(50);
/// Looks before the first yield, some 3 us: a thread on another core that has our message is about done by then.
const SPINS: u32 = 64;

/// What the threads of a rack know about how full the machine is.
#[derive(Default)]
pub struct Oversubscription {
    full_until: AtomicU64,
    /// How long it was taken to be full the last time, if it has not been found otherwise since.
    full_for: AtomicU64,
}

/// What to do in a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Look again at once.
    Spin,
    /// Let another thread run.
    Yield,
    /// Sleep until woken, at most this long.
    Sleep(Nanos),
}

/// One wait of one thread.
pub struct SpinThenPark {
    /// Looks that are left before the first yield.
    spins: u32,
    since: Option<Nanos>,
    /// When the last yield ended: nobody has to look at the clock again right behind it.
    yielded: Option<Nanos>,
}

impl SpinThenPark {
    /// For a wait in which another thread of this process may be about done.
    pub const fn with_spins() -> Self {
        Self { spins: SPINS, since: None, yielded: None }
    }

    /// For a wait in which other processes have to run: they need the core.
    pub const fn without_spins() -> Self {
        Self { spins: 0, since: None, yielded: None }
    }

    /// Something has happened: the wait goes on as if it had begun now.
    pub const fn again(&mut self) {
        self.since = None;
    }

    /// What time it is, by `clock` if the last thing that happened in this wait was not a yield.
    pub fn now(&mut self, clock: impl FnOnce() -> Nanos) -> Nanos {
        self.yielded.take().unwrap_or_else(clock)
    }

    /// Gives the core away for a moment; `now` is what [`SpinThenPark::now`] said.
    pub fn give_way(
        &mut self,
        now: Nanos,
        oversubscription: &Oversubscription,
        clock: impl FnOnce() -> Nanos,
    ) {
        thread::yield_now();
        let ended = clock();
        oversubscription.yielded(now, ended);
        self.yielded = Some(ended);
    }

    /// What to do now, if there is something to be done at `deadline` at the latest.
    pub fn step(&mut self, now: Nanos, deadline: Nanos, oversubscription: &Oversubscription) -> Step {
        let since = *self.since.get_or_insert(now);
        if self.spins > 0 {
            self.spins -= 1;
            return Step::Spin;
        }
        let left = deadline.saturating_sub(now);
        let full = now.0 < oversubscription.full_until.load(Ordering::Relaxed);
        if (full || now.saturating_sub(since) > YIELD_FOR) && left > SHORTEST_SLEEP {
            return Step::Sleep(left.min(LONGEST_SLEEP));
        }
        Step::Yield
    }
}

/// Messages of one look, from which on there may be more.
const BURST: usize = 16;

/// True if a look that found so many messages has probably found all there were: transports look until nothing comes any more,
/// so whoever looks again at once only keeps those waiting for the core to whom it has sent something.
pub const fn is_all(messages: usize) -> bool {
    messages < BURST
}

impl Oversubscription {
    /// What threads know that are scheduled so. Those of real time never find out that the machine is full, because nobody runs
    /// before them: they take it for full always, and leave the core to others whenever they wait.
    pub fn of(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Fair => Self::default(),
            Scheduling::Realtime => {
                Self { full_until: AtomicU64::new(u64::MAX), full_for: AtomicU64::new(0) }
            }
        }
    }

    /// A yield began and ended then.
    fn yielded(&self, began: Nanos, ended: Nanos) {
        let full_for = self.full_for.load(Ordering::Relaxed);
        if ended.saturating_sub(began) > LONG_YIELD {
            // Several threads may find out at the same time: that counts once.
            if ended.0 >= self.full_until.load(Ordering::Relaxed) {
                let full_for = (full_for * 2).clamp(FULL_FOR.0, FULL_FOR_AT_MOST.0);
                self.full_for.store(full_for, Ordering::Relaxed);
                self.full_until.store(ended.0 + full_for, Ordering::Relaxed);
            }
        } else if full_for != 0 {
            self.full_for.store(0, Ordering::Relaxed);
        }
    }
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const NOTIFIED: u32 = 2;

/// A thread that can be woken. Sleeping and waking never miss each other.
pub struct Sleeper {
    thread: Thread,
    state: AtomicU32,
}

impl Sleeper {
    /// The calling thread.
    pub fn current() -> Self {
        Self { thread: thread::current(), state: AtomicU32::new(AWAKE) }
    }

    /// Sleeps until [`Sleeper::wake`], at most so long. Returns at once if that was called since the last sleep.
    pub fn sleep(&self, most: Nanos) {
        if self.state.compare_exchange(AWAKE, ASLEEP, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            thread::park_timeout(Duration::from_nanos(most.0));
        }
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Wakes the thread, or keeps it from its next sleep. Cheap while it is awake.
    pub fn wake(&self) {
        if self.state.swap(NOTIFIED, Ordering::SeqCst) == ASLEEP {
            self.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_until(at: Nanos, oversubscription: &Oversubscription) -> Vec<Step> {
        let mut spin_then_park = SpinThenPark::with_spins();
        (0..)
            .map(|i| Nanos(i * 500))
            .take_while(|now| *now < at)
            .map(|now| spin_then_park.step(now, Nanos::MAX, oversubscription))
            .collect()
    }

    #[test]
    fn a_wait_spins_then_yields_for_50_us_then_sleeps() {
        let steps = wait_until(Nanos::from_micros(80), &Oversubscription::default());
        let spins = steps.iter().take_while(|step| **step == Step::Spin).count();
        let yields = steps.iter().filter(|step| **step == Step::Yield).count();
        assert_eq!(spins, SPINS as usize);
        assert_eq!(spins + yields, 101, "yields end after 50 us");
        assert_eq!(steps.last(), Some(&Step::Sleep(LONGEST_SLEEP)));
    }

    #[test]
    fn a_long_yield_makes_every_wait_sleep_for_a_while() {
        let oversubscription = Oversubscription::default();
        oversubscription.yielded(Nanos::ZERO, Nanos::from_millis(2));
        let steps = wait_until(Nanos::from_micros(45), &oversubscription);
        assert!(steps[SPINS as usize..].iter().all(|step| matches!(step, Step::Sleep(_))), "{steps:?}");
        let later = Nanos::from_millis(103);
        let mut spin_then_park = SpinThenPark::without_spins();
        assert_eq!(
            spin_then_park.step(later, Nanos::MAX, &oversubscription),
            Step::Yield,
            "the machine is given another chance"
        );
    }

    #[test]
    fn a_machine_that_stays_full_is_tried_less_and_less_often() {
        let oversubscription = Oversubscription::default();
        let full_at = |now| {
            let mut spin_then_park = SpinThenPark::without_spins();
            spin_then_park.step(now, Nanos::MAX, &oversubscription) != Step::Yield
        };
        let mut now = Nanos::ZERO;
        for period in [100, 200, 400, 800, 1600, 3200, 6400, 6400].map(Nanos::from_millis) {
            let ended = now + Nanos::from_millis(3);
            oversubscription.yielded(now, ended);
            // A second thread that yielded at the same time.
            oversubscription.yielded(now, ended);
            assert!(full_at(ended + Nanos(period.0 - 1)) && !full_at(ended + period), "{period:?}");
            now = ended + period;
        }
        oversubscription.yielded(now, now + Nanos::from_micros(1));
        oversubscription.yielded(now, now + Nanos::from_millis(3));
        assert!(!full_at(now + Nanos::from_millis(104)), "it begins anew after a short yield");
    }

    #[test]
    fn threads_of_real_time_sleep_at_once() {
        let oversubscription = Oversubscription::of(Scheduling::Realtime);
        for _ in 0..2 {
            let mut spin_then_park = SpinThenPark::without_spins();
            assert_eq!(
                spin_then_park.step(Nanos(1), Nanos::MAX, &oversubscription),
                Step::Sleep(LONGEST_SLEEP)
            );
            oversubscription.yielded(Nanos(1), Nanos::from_millis(2));
        }
    }

    #[test]
    fn a_short_yield_says_nothing() {
        let oversubscription = Oversubscription::default();
        oversubscription.yielded(Nanos::ZERO, Nanos::from_micros(900));
        assert!(
            !wait_until(Nanos::from_micros(40), &oversubscription)
                .iter()
                .any(|step| matches!(step, Step::Sleep(_)))
        );
    }

    #[test]
    fn nobody_sleeps_past_a_deadline_that_is_near() {
        let mut spin_then_park = SpinThenPark { since: Some(Nanos::ZERO), ..SpinThenPark::without_spins() };
        let now = Nanos::from_micros(200);
        assert_eq!(
            spin_then_park.step(now, now + Nanos::from_micros(10), &Oversubscription::default()),
            Step::Yield
        );
        assert_eq!(
            spin_then_park.step(now, now + Nanos::from_micros(300), &Oversubscription::default()),
            Step::Sleep(Nanos::from_micros(300))
        );
    }

    #[test]
    fn a_wake_before_the_sleep_is_not_lost() {
        let sleeper = Sleeper::current();
        sleeper.wake();
        let began = std::time::Instant::now();
        sleeper.sleep(Nanos(60_000_000_000));
        assert!(began.elapsed().as_secs() < 30, "the sleep returned at once");
    }
}
