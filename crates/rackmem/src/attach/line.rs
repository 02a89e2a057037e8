//! A connection between an application's thread and the daemon's thread for it: frames, and how one waits for them.
//!
//! What must always hold: no frame is longer than [`MOST_FRAME`], whatever the other side says; waiting follows the policy
//! of `live::waiting`, so that nobody sleeps while the other side is about to answer, and nobody looks while the machine is
//! full.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use live::waiting::{Oversubscription, SpinThenPark, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::Nanos;

use super::message::MOST_FRAME;

/// Why there is no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cut {
    /// The other side has gone, or does not take what it asked for.
    Gone,
    /// It has announced a frame that is too long, or said what is no message.
    Malformed,
    /// It did not answer in time.
    Late,
    /// It has another rack file, or is of another version.
    Refused,
}

/// One side of a connection.
pub(super) struct Line {
    stream: UnixStream,
    oversubscription: Arc<Oversubscription>,
    started: Instant,
    /// What has come, from `taken` on; the next frame begins there.
    came: Vec<u8>,
    taken: usize,
    outgoing: Vec<u8>,
}

const PREFIX: usize = 4;
/// What is asked of the system at a time, beside what is known to come.
const PIECE: usize = 4 << 10;

impl Line {
    pub(super) fn new(stream: UnixStream, oversubscription: Arc<Oversubscription>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            oversubscription,
            started: Instant::now(),
            came: Vec::new(),
            taken: 0,
            outgoing: Vec::new(),
        })
    }

    /// Sends what `fill` writes as one frame. Waits while the other side takes nothing, at most so long.
    pub(super) fn send(
        &mut self,
        most: Option<Duration>,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Cut> {
        let mut frame = std::mem::take(&mut self.outgoing);
        frame.clear();
        frame.extend([0; PREFIX]);
        fill(&mut frame);
        let len = frame.len() - PREFIX;
        debug_assert!(len <= MOST_FRAME, "{len} bytes");
        frame[..PREFIX].copy_from_slice(&(len as u32).to_le_bytes());
        let until = most.map(|most| Instant::now() + most);
        let mut rest = &frame[..];
        let mut sent = Ok(());
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => sent = Err(Cut::Gone),
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    sent = self.sleep(PollFlags::OUT, left_until(until));
                }
                Err(_) => sent = Err(Cut::Gone),
            }
            if sent.is_err() {
                break;
            }
        }
        self.outgoing = frame;
        sent
    }

    /// The next frame. Waits for it, at most so long.
    pub(super) fn receive(&mut self, most: Option<Duration>) -> Result<&[u8], Cut> {
        let until = most.map(|most| Instant::now() + most);
        self.came.drain(..self.taken);
        self.taken = 0;
        let mut spin_then_park = SpinThenPark::without_spins();
        loop {
            let wanted = match self.came.first_chunk::<PREFIX>() {
                None => PREFIX,
                Some(prefix) => {
                    let len = u32::from_le_bytes(*prefix) as usize;
                    if len > MOST_FRAME {
                        return Err(Cut::Malformed);
                    }
                    PREFIX + len
                }
            };
            if wanted > PREFIX && self.came.len() >= wanted {
                self.taken = wanted;
                return Ok(&self.came[PREFIX..wanted]);
            }
            if wanted == PREFIX && self.came.len() >= PREFIX {
                // No message is empty.
                return Err(Cut::Malformed);
            }
            if self.read(wanted)? {
                spin_then_park.again();
                continue;
            }
            if left_until(until).is_some_and(|left| left.is_zero()) {
                return Err(Cut::Late);
            }
            let now = spin_then_park.now(|| self.now());
            match spin_then_park.step(now, Nanos::MAX, &self.oversubscription) {
                Step::Spin => std::hint::spin_loop(),
                Step::Yield => spin_then_park.give_way(now, &self.oversubscription, || self.now()),
                Step::Sleep(_) => self.sleep(PollFlags::IN, left_until(until))?,
            }
        }
    }

    /// Reads what has come, for a frame that ends there. False: nothing has.
    fn read(&mut self, wanted: usize) -> Result<bool, Cut> {
        let had = self.came.len();
        // No more than one frame and a piece of the next: what the other side sends ahead waits in the socket.
        self.came.resize(wanted.max(had) + PIECE, 0);
        let read = loop {
            match self.stream.read(&mut self.came[had..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.came.truncate(had + *read.as_ref().unwrap_or(&0));
        match read {
            // Also in the middle of a frame: it may have been killed there.
            Ok(0) => Err(Cut::Gone),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(_) => Err(Cut::Gone),
        }
    }

    /// Sleeps until the stream is ready, at most so long.
    fn sleep(&self, ready: PollFlags, most: Option<Duration>) -> Result<(), Cut> {
        if most.is_some_and(|most| most.is_zero()) {
            return Err(Cut::Late);
        }
        let timeout = most
            .map(|most| Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) });
        // However it ends, the caller looks.
        let _ = poll(&mut [PollFd::new(&self.stream, ready)], timeout.as_ref());
        Ok(())
    }

    /// Waits so long. True if the other side has gone meanwhile, or has said what nobody asked for.
    pub(super) fn hangs_up_within(&self, time: Duration) -> bool {
        let _ = self.sleep(PollFlags::IN, Some(time));
        let mut polled = [PollFd::new(&self.stream, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Another handle of the connection, for who ends it.
    pub(super) fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// True if the other side has gone.
    pub(super) fn is_gone(&self) -> bool {
        let mut polled = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Ends the connection for both.
    pub(super) fn cut(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }
}

fn left_until(until: Option<Instant>) -> Option<Duration> {
    until.map(|until| until.saturating_duration_since(Instant::now()))
}
