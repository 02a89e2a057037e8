//! Waiting for datagrams.
//!
//! A sender on another machine cannot know whether a thread attends here, and the kernel wakes whoever polls the
//! socket for every datagram. While a thread attends, that would cost a wake-up for each datagram that it is about to
//! receive anyway. So the thread that waits polls only if nobody has attended for a while; else it naps. What must
//! always hold: what nobody attends to is noticed within about a nap; with nothing going on, the waiting thread
//! sleeps in `poll`.

use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::Nanos;

/// How long nobody has to attend before the waiting thread polls.
const NAP: Duration = Duration::from_micros(100);

/// Who attends.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Threads that attend.
    attending: AtomicUsize,
    /// How often one began to.
    attended: AtomicU64,
    /// That, when the waiting thread last looked.
    seen: AtomicU64,
}

impl Waiting {
    pub(super) fn attend(&self) {
        self.attending.fetch_add(1, SeqCst);
        self.attended.fetch_add(1, SeqCst);
    }

    pub(super) fn leave(&self) {
        let attending = self.attending.fetch_sub(1, SeqCst);
        debug_assert!(attending > 0, "left more often than attended");
    }

    /// True if a thread attends, or has since the last call.
    fn is_attended(&self) -> bool {
        let attended = self.attended.load(SeqCst);
        self.seen.swap(attended, SeqCst) != attended || self.attending.load(SeqCst) > 0
    }

    /// Waits until a datagram is there that nobody attends to, at most so long.
    pub(super) fn wait(&self, socket: &UdpSocket, most: Nanos) {
        let end = Instant::now().checked_add(Duration::from_nanos(most.0));
        loop {
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3_600),
            };
            if left.is_zero() {
                return;
            }
            if self.is_attended() {
                std::thread::sleep(left.min(NAP));
                continue;
            }
            // A thread may begin to attend now. Then the first datagram ends this poll, and the next round naps.
            if is_readable(socket, left) && !self.is_attended() {
                return;
            }
        }
    }
}

/// Blocks until there is something to receive, at most so long. True also for an error to be fetched.
fn is_readable(socket: &UdpSocket, most: Duration) -> bool {
    let timeout = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
    let mut polled = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    // Interrupted, or whatever else may be wrong: the caller looks at the time and tries again.
    poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
