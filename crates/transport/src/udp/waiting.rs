//! Waiting for datagrams.
//!
//! A sender on another machine cannot know whether a thread attends here, and the kernel wakes whoever polls the
//! socket for every datagram. While a thread attends, that would cost a wake-up for each datagram that it is about to
//! receive anyway. So the thread that waits polls only if nobody has attended for a while; else it naps. What must
//! always hold: what nobody attends to is noticed when the nap ends; with nothing going on, the waiting thread
//! sleeps in `poll`.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use wire::Nanos;

/// How long nobody has to attend before the waiting thread polls, at least and at most. A nap costs a wake-up; what comes
/// meanwhile, when nobody attends any more, waits for its end. So naps become half as long where something did, and slowly
/// longer where nothing has.
const SHORTEST_NAP: Nanos = Nanos::from_micros(20);
const LONGEST_NAP: Nanos = Nanos::from_micros(200);

/// Who attends.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Threads that attend.
    attending: AtomicUsize,
    /// How often one began to.
    attended: AtomicU64,
    /// That, when the waiting thread last looked.
    seen: AtomicU64,
    /// The waiting thread naps, and looks again soon.
    napping: AtomicBool,
    /// For how long.
    nap: AtomicU64,
    /// Threads in [`Waiting::block`].
    blocked: AtomicUsize,
    /// Ends their sleep.
    interrupt: Interrupt,
}

/// An eventfd.
#[derive(Debug)]
struct Interrupt(OwnedFd);

impl Waiting {
    pub(super) fn new() -> io::Result<Self> {
        let interrupt = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            attending: AtomicUsize::new(0),
            attended: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            napping: AtomicBool::new(false),
            nap: AtomicU64::new(LONGEST_NAP.0),
            blocked: AtomicUsize::new(0),
            interrupt: Interrupt(interrupt),
        })
    }

    /// Waits until a datagram is there, at most so long, in a thread that attends.
    pub(super) fn block(&self, socket: &UdpSocket, most: Nanos) {
        self.blocked.fetch_add(1, SeqCst);
        let timeout = timespec(Duration::from_nanos(most.0));
        let ends = [socket.as_fd(), self.interrupt.0.as_fd()];
        let mut polled = ends.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN));
        // However it ends, the caller looks.
        let _ = poll(&mut polled, Some(&timeout));
        self.blocked.fetch_sub(1, SeqCst);
        if polled[1].revents().contains(PollFlags::IN) {
            // Somebody else may have been quicker.
            let _ = rustix::io::read(&self.interrupt.0, &mut [0; 8]);
        }
    }

    /// Ends the sleep of a thread in [`Waiting::block`].
    pub(super) fn interrupt(&self) {
        if self.blocked.load(SeqCst) > 0 {
            // It can fail only where it was written to 2^64 times already.
            let _ = rustix::io::write(&self.interrupt.0, &1_u64.to_ne_bytes());
        }
    }

    pub(super) fn attend(&self) {
        self.attending.fetch_add(1, SeqCst);
        self.attended.fetch_add(1, SeqCst);
    }

    /// Returns true if nobody attends any more, and the waiting thread does not look again soon either.
    pub(super) fn leave(&self) -> bool {
        let attending = self.attending.fetch_sub(1, SeqCst);
        debug_assert!(attending > 0, "left more often than attended");
        attending == 1 && !self.napping.load(SeqCst)
    }

    /// True while a thread attends.
    pub(super) fn has_attention(&self) -> bool {
        self.attending.load(SeqCst) > 0
    }

    /// True if a thread attends, or has since the last call.
    fn is_attended(&self) -> bool {
        let attended = self.attended.load(SeqCst);
        self.seen.swap(attended, SeqCst) != attended || self.attending.load(SeqCst) > 0
    }

    /// Waits until a datagram is there that nobody attends to, at most so long. `look` says for how long it needs no other look: none
    /// if it needs no more.
    pub(super) fn wait(&self, socket: &UdpSocket, most: Nanos, look: impl Fn() -> Option<Nanos>) {
        let end = Instant::now().checked_add(Duration::from_nanos(most.0));
        loop {
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3_600),
            };
            if left.is_zero() {
                return;
            }
            let looked = look();
            if self.is_attended() || looked.is_some() {
                let nap = self.nap.load(Relaxed);
                self.napping.store(true, SeqCst);
                std::thread::sleep(left.min(Duration::from_nanos(nap)));
                self.napping.store(false, SeqCst);
                let is_late = !self.has_attention() && is_readable(socket, Duration::ZERO);
                let next = if is_late { nap / 2 } else { nap + nap / 8 };
                self.nap.store(next.clamp(SHORTEST_NAP.0, LONGEST_NAP.0), Relaxed);
                if is_late {
                    return;
                }
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
    let timeout = timespec(most);
    let mut polled = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    // Interrupted, or whatever else may be wrong: the caller looks at the time and tries again.
    poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

fn timespec(span: Duration) -> Timespec {
    Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_during_a_nap_is_noticed_at_its_end_and_the_next_one_is_shorter() {
        let (socket, waiting) = (UdpSocket::bind("127.0.0.1:0").unwrap(), Waiting::new().unwrap());
        socket.send_to(&[1], socket.local_addr().unwrap()).unwrap();
        for nap in [200, 100, 50, 25, 20, 20] {
            assert_eq!(waiting.nap.load(Relaxed), nap * 1000);
            waiting.attend();
            assert!(waiting.leave(), "nobody attends, and nobody naps");
            waiting.wait(&socket, Nanos::from_millis(60_000), || None);
        }
        assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 1);
        waiting.attend();
        waiting.wait(&socket, Nanos::from_millis(50), || None);
        assert!(waiting.nap.load(Relaxed) > 20_000, "nothing has come during these naps");
        assert!(waiting.leave());
    }
}
