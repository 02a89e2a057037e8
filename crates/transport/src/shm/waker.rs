//! The waker of a peer: one word in shared memory that tells senders whether somebody has to be woken.
//!
//! | value | means |
//! | --- | --- |
//! | [`UNATTENDED`] | nobody looks at the rings: whoever sends has to ring |
//! | [`ATTENDED`] | a thread looks at the rings again and again |
//! | [`BLOCKED`] | such a thread has gone to sleep: whoever sends has to ring for it |
//! | [`RUNG`] | somebody has rung, and nobody has answered yet: nothing to do |
//!
//! What must always hold: a message that was published is either seen by a look that begins after the waker became
//! unattended, or its sender finds the waker unattended and rings. The argument is Dekker's. The sender stores the head
//! of its ring, fences, and reads the waker; the receiver stores `UNATTENDED`, fences, and reads the heads. The two
//! fences (both sequentially consistent) are in one order that everybody agrees on. If the sender's comes first, the
//! receiver's look sees the head. If the receiver's comes first, the sender sees `UNATTENDED`, or something stored
//! later: `RUNG` by another sender, who wakes the sleeper, or `ATTENDED` by a thread that is about to look and that
//! will fence and look again when it leaves. The word that a sleeper hands to the kernel is compared there with what
//! is in memory, so a ring between the last look and falling asleep is not missed.
//!
//! All senders can write the word, so a hostile one may put anything there. That costs time, and nothing else: the
//! sleeper may be woken for nothing, or sleep as long as it said it would.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicUsize, fence};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use rustix::time::{ClockId, clock_gettime};

use super::mapping::Mapping;

pub(super) const UNATTENDED: u32 = 0;
pub(super) const ATTENDED: u32 = 1;
pub(super) const RUNG: u32 = 2;
pub(super) const BLOCKED: u32 = 3;

/// Who sleeps on the word: a thread that waits while nobody attends, or one that attends.
const WAITING: NonZeroU32 = NonZeroU32::new(1).unwrap();
const BLOCKING: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// A page: the smallest piece of memory that can be shared.
const BYTES: usize = 4096;

/// A waker, as everybody sees it.
#[derive(Debug)]
pub(super) struct Waker {
    memory: Mapping<AtomicU32>,
}

impl Waker {
    /// The waker of a peer.
    pub(super) fn open(file: impl AsFd) -> io::Result<Self> {
        Ok(Self { memory: Mapping::open(file, BYTES)? })
    }

    pub(super) fn word(&self) -> &AtomicU32 {
        &self.memory.words()[0]
    }

    /// True if whoever has sent something has to [`ring`](Waker::ring). To be asked after the head of the ring was
    /// stored, and after a sequentially consistent fence.
    pub(super) fn is_unattended(&self) -> bool {
        matches!(self.word().load(Relaxed), UNATTENDED | BLOCKED)
    }

    /// Wakes a sleeper if nobody else has done so. Returns true if a system call was made.
    pub(super) fn ring(&self) -> bool {
        let seen = self.word().load(Relaxed);
        let sleeper = match seen {
            UNATTENDED => WAITING,
            BLOCKED => BLOCKING,
            _ => return false,
        };
        if self.word().compare_exchange(seen, RUNG, AcqRel, Relaxed).is_err() {
            return false;
        }
        // The word is mapped, so waking can only fail where the kernel has no futexes; then nobody sleeps on one.
        let _ = futex::wake_bitset(self.word(), futex::Flags::empty(), 1, sleeper);
        true
    }
}

/// The waker of this peer, as the threads of this process use it.
#[derive(Debug)]
pub(super) struct OwnWaker {
    waker: Waker,
    file: OwnedFd,
    attending: AtomicUsize,
}

impl OwnWaker {
    /// A new waker, unattended.
    pub(super) fn create() -> io::Result<Self> {
        let (file, memory) = Mapping::create("rackmem-waker", BYTES)?;
        Ok(Self { waker: Waker { memory }, file, attending: AtomicUsize::new(0) })
    }

    /// What senders get.
    pub(super) const fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// This thread looks from now on.
    ///
    /// The word may say `UNATTENDED` while somebody attends (a leaving thread was slow to say so): that costs a
    /// needless ring. It never stays `ATTENDED` when nobody does: who made the count 1 stores `ATTENDED` before it
    /// leaves itself, and whoever makes the count 0 after that stores `UNATTENDED`.
    pub(super) fn attend(&self) {
        if self.attending.fetch_add(1, AcqRel) == 0 {
            self.waker.word().store(ATTENDED, Relaxed);
        }
    }

    /// It does so no longer. Returns true if it was the last one and `look` finds something.
    pub(super) fn leave(&self, look: impl FnOnce() -> bool) -> bool {
        let others = self.attending.fetch_sub(1, AcqRel) - 1;
        if others != 0 {
            return false;
        }
        self.waker.word().store(UNATTENDED, Relaxed);
        fence(SeqCst);
        look()
    }

    /// Sleeps until the waker rings or `look` finds something, at most so long. This thread attends.
    pub(super) fn block(&self, most: Duration, look: impl FnOnce() -> bool) {
        let word = self.waker.word();
        word.store(BLOCKED, Relaxed);
        fence(SeqCst);
        if !look() {
            // However it ends, the caller looks.
            sleep_on(word, BLOCKED, most, BLOCKING);
        }
        word.store(ATTENDED, Relaxed);
    }

    /// Ends [`OwnWaker::block`] in another thread.
    pub(super) fn interrupt(&self) {
        if self.waker.word().load(Acquire) == BLOCKED {
            self.waker.ring();
        }
    }

    /// Sleeps until the waker rings or `look` finds something, at most so long.
    pub(super) fn wait(&self, most: Duration, look: impl Fn() -> bool) {
        let word = self.waker.word();
        let begun = Instant::now();
        // Every round either ends the wait, sleeps, or lost a race against a store of somebody else; the time is
        // looked at in each, so that somebody who stores for ever does not keep us.
        loop {
            let seen = word.load(Acquire);
            let attended = self.attending.load(Acquire) > 0;
            if attended {
                if seen == RUNG {
                    // Rung for this thread, just before somebody attended who may sleep by now.
                    let _ = futex::wake_bitset(word, futex::Flags::empty(), 1, BLOCKING);
                }
            } else {
                // A ring is answered here, once: the next one rings again. Nonsense is put in order the same way.
                if seen != UNATTENDED {
                    let _ = word.compare_exchange(seen, UNATTENDED, AcqRel, Relaxed);
                }
                fence(SeqCst);
                if seen == RUNG || look() {
                    return;
                }
            }
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return;
            }
            if attended || seen == UNATTENDED {
                // The next round finds out why it ended.
                sleep_on(word, seen, left, WAITING);
            }
        }
    }

    /// Wakes all who wait, so that they look for themselves: a peer may have died between storing and waking.
    pub(super) fn wake_all(&self) {
        let _ = futex::wake(self.waker.word(), futex::Flags::empty(), i32::MAX as u32);
    }
}

/// Sleeps while the word is what it was, until woken as this sleeper, at most so long.
fn sleep_on(word: &AtomicU32, seen: u32, most: Duration, sleeper: NonZeroU32) {
    // This kind of wait takes the time at which it ends.
    let now = clock_gettime(ClockId::Monotonic);
    let end = futex::Timespec::try_from(most).ok().and_then(|most| now.checked_add(most));
    let _ = futex::wait_bitset(word, futex::Flags::empty(), seen, end.as_ref(), sleeper);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREVER: Duration = Duration::from_secs(60);

    #[test]
    fn a_waker_that_is_attended_is_not_rung() {
        let own = OwnWaker::create().unwrap();
        own.attend();
        assert!(!own.waker.is_unattended());
        assert!(!own.waker.ring());
        assert!(!own.leave(|| false));
        assert!(own.waker.ring());
        assert!(!own.waker.ring(), "it has been rung");
    }

    #[test]
    fn the_last_one_who_leaves_looks() {
        let own = OwnWaker::create().unwrap();
        own.attend();
        own.attend();
        assert!(!own.leave(|| unreachable!("somebody still attends")));
        assert!(own.leave(|| true));
    }

    #[test]
    fn a_ring_before_the_wait_ends_it_and_is_answered_once() {
        let own = OwnWaker::create().unwrap();
        assert!(own.waker.ring());
        own.wait(FOREVER, || false);
        assert!(own.waker.is_unattended(), "the next sender has to ring again");
    }

    #[test]
    fn a_thread_that_attends_and_sleeps_is_woken_and_not_the_one_that_waits() {
        let own = OwnWaker::create().unwrap();
        own.attend();
        std::thread::scope(|scope| {
            scope.spawn(|| own.block(FOREVER, || false));
            while own.waker.word().load(SeqCst) != BLOCKED {
                std::thread::yield_now();
            }
            while !own.waker.ring() {
                std::thread::yield_now();
            }
        });
        assert_eq!(own.waker.word().load(SeqCst), ATTENDED, "it goes on attending");
    }

    #[test]
    fn a_thread_that_attends_does_not_sleep_on_what_it_finds() {
        let own = OwnWaker::create().unwrap();
        own.attend();
        own.block(FOREVER, || true);
        assert!(!own.leave(|| false));
    }

    #[test]
    fn a_sleep_while_attending_can_be_interrupted() {
        let own = OwnWaker::create().unwrap();
        own.attend();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| own.block(FOREVER, || false));
            while !sleeper.is_finished() {
                own.interrupt();
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn nonsense_in_the_word_is_put_in_order() {
        let own = OwnWaker::create().unwrap();
        for nonsense in [ATTENDED, BLOCKED, 4, u32::MAX] {
            own.waker.word().store(nonsense, Relaxed);
            own.wait(Duration::from_millis(1), || false);
            assert!(own.waker.is_unattended(), "{nonsense}");
        }
    }

    #[test]
    fn a_word_that_never_rests_does_not_outlast_the_time_to_wait() {
        let own = OwnWaker::create().unwrap();
        let stop = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while stop.load(Relaxed) == 0 {
                    own.waker.word().store(ATTENDED, Relaxed);
                    own.waker.word().store(7, Relaxed);
                }
            });
            own.wait(Duration::from_millis(20), || false);
            stop.store(1, Relaxed);
        });
    }
}
