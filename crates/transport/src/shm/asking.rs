//! Asking a peer for memory that it has published, and its answer.
//!
//! A thread that wants memory calls at the peer's socket, asks, and waits there: one connection, one question, one answer. The
//! peer's acceptor answers at once and hangs up. A process that is no peer asks in the same way ([`borrow`]). What must always hold: the asker waits no longer than it said, maps only what is
//! sealed and of a possible size, and is answered only by a process of its own user; the acceptor waits for nobody.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};
use sorted::Map;
use wire::Nanos;

use super::acceptor::House;
use super::descriptors::{receive_with, send_with};
use super::greeting::{Heard, connect_to, magic};
use super::rendezvous::Name;
use crate::{Cause, Mapper, NotObtained, PeerId, SharedMemory, Sharing};

const MAGIC: [u8; 8] = magic(b"rackask");
/// Bytes of a question, and of an answer.
pub(super) const QUESTION_BYTES: usize = 18;
const ANSWER_BYTES: usize = 19;
/// How long after a vain attempt the next one is made.
const AGAIN: Duration = Duration::from_millis(1);

/// Somebody wants memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Question {
    pub(super) from: PeerId,
    pub(super) to: PeerId,
    pub(super) name: u64,
}

/// What an answer says; with a descriptor, if the memory is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Verdict {
    Given = 1,
    NotPublished = 2,
    Claimed = 3,
    /// The other side's system has refused.
    Failed = 4,
}

impl Question {
    pub(super) fn to_bytes(self) -> [u8; QUESTION_BYTES] {
        let mut bytes = [0; QUESTION_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = self.to.to_wire();
        bytes[9] = self.from.to_wire();
        bytes[10..].copy_from_slice(&self.name.to_le_bytes());
        bytes
    }

    /// Nodes ask; and applications, as observers.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; QUESTION_BYTES] = bytes.try_into().ok()?;
        let (to, from) = (PeerId::from_wire(bytes[8])?, PeerId::from_wire(bytes[9])?);
        let name = u64::from_le_bytes(std::array::from_fn(|at| bytes[10 + at]));
        (bytes[..8] == MAGIC && from != PeerId::SWITCH && from != to).then_some(Self { from, to, name })
    }
}

/// What a peer has published.
#[derive(Debug, Default)]
pub(super) struct Published(Mutex<Map<u64, Arc<SharedMemory>>>);

impl Published {
    fn all(&self) -> MutexGuard<'_, Map<u64, Arc<SharedMemory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: u64) -> Option<Arc<SharedMemory>> {
        self.all().get(&name).cloned()
    }

    /// Answers a question. If that cannot be sent, whoever asked is not there any more, or does not listen.
    pub(super) fn answer(&self, connection: &OwnedFd, question: Question) {
        let lent = self.find(question.name).map(|memory| memory.lend(question.from));
        let (verdict, lent) = match lent {
            None => (Verdict::NotPublished, None),
            Some(Ok(None)) => (Verdict::Claimed, None),
            Some(Ok(lent)) => (Verdict::Given, lent),
            Some(Err(_)) => (Verdict::Failed, None),
        };
        let lent = lent.as_ref().map(|(file, mapper)| (file, *mapper));
        let _ = answer(connection, question, verdict, lent);
    }
}

pub(super) fn answer(
    connection: &OwnedFd,
    question: Question,
    verdict: Verdict,
    lent: Option<(&OwnedFd, Mapper)>,
) -> io::Result<()> {
    let mut bytes = [0; ANSWER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8] = question.to.to_wire();
    bytes[9..17].copy_from_slice(&question.name.to_le_bytes());
    bytes[17] = verdict as u8;
    bytes[18] = lent.map_or(0, |(_, mapper)| mapper.place());
    let descriptors: Vec<_> = lent.iter().map(|(file, _)| file.as_fd()).collect();
    send_with(connection, &bytes, &descriptors)
}

fn hear_answer(connection: &OwnedFd, question: Question) -> Heard<(Verdict, Option<(OwnedFd, Mapper)>)> {
    let mut bytes = [0; ANSWER_BYTES + 1];
    let (length, mut descriptors) = match receive_with(connection, &mut bytes) {
        Ok(message) => message,
        Err(none) => return none,
    };
    let name = question.name.to_le_bytes();
    if length != ANSWER_BYTES
        || bytes[..8] != MAGIC
        || bytes[8] != question.to.to_wire()
        || bytes[9..17] != name
    {
        return Heard::Nonsense;
    }
    let all = [Verdict::Given, Verdict::NotPublished, Verdict::Claimed, Verdict::Failed];
    let mapper = Mapper::of_place(bytes[18]).filter(|mapper| match mapper {
        Mapper::Peer(peer) => *peer == question.from,
        Mapper::Application(_) => question.from == PeerId::OBSERVER,
    });
    match (all.into_iter().find(|one| *one as u8 == bytes[17]), descriptors.len()) {
        (Some(Verdict::Given), 1) => match (descriptors.pop(), mapper) {
            (Some(file), Some(mapper)) => Heard::This((Verdict::Given, Some((file, mapper)))),
            _ => Heard::Nonsense,
        },
        (Some(Verdict::Given), _) | (None, _) => Heard::Nonsense,
        (Some(verdict), 0) => Heard::This((verdict, None)),
        (Some(_), _) => Heard::Nonsense,
    }
}

/// The memory of the peers that meet in one directory, as one of them sees it.
#[derive(Debug)]
pub(super) struct ShmSharing {
    pub(super) house: Arc<House>,
    pub(super) dir: PathBuf,
}

/// Asks once. An error inside is one that may be over in a moment.
fn ask(
    dir: &Path,
    question: Question,
    until: Instant,
) -> Result<Result<SharedMemory, NotObtained>, NotObtained> {
    let name = Name { peer: question.to, observer: (0, 0) };
    let connection = match connect_to(&name.socket(dir)) {
        Ok(connection) => connection,
        // As many as may wait to be let in are waiting.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Err(NotObtained::TimedOut)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            return Err(NotObtained::System(error.kind()));
        }
        Err(_) => return Err(NotObtained::Unreachable),
    };
    send(&connection, &question.to_bytes(), SendFlags::NOSIGNAL).map_err(|_| NotObtained::Unreachable)?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NotObtained::TimedOut);
        }
        // Interrupted, or out of memory for a moment: the next round finds out.
        let most = Timespec::try_from(left).ok();
        let _ = poll(&mut [PollFd::new(&connection, PollFlags::IN)], most.as_ref());
        return match hear_answer(&connection, question) {
            Heard::Nothing => continue,
            Heard::End => Err(NotObtained::Unreachable),
            Heard::Nonsense | Heard::Refused(_) => Err(NotObtained::Malformed),
            Heard::This((Verdict::NotPublished, _)) => Err(NotObtained::NotPublished),
            Heard::This((Verdict::Claimed, _)) => Ok(Err(NotObtained::Claimed)),
            Heard::This((_, None)) => Err(NotObtained::System(io::ErrorKind::Other)),
            Heard::This((_, Some((file, mapper)))) => match SharedMemory::borrowed(file, mapper) {
                Ok(memory) => Ok(Ok(memory)),
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    Err(NotObtained::System(error.kind()))
                }
                Err(_) => Err(NotObtained::Malformed),
            },
        };
    }
}

/// Asks until there is an answer for good, or no time.
fn obtain(dir: &Path, question: Question, timeout: Nanos) -> Result<Arc<SharedMemory>, NotObtained> {
    let until = Instant::now() + Duration::from_nanos(timeout.0);
    let mut why = NotObtained::TimedOut;
    loop {
        match ask(dir, question, until) {
            Ok(Ok(memory)) => return Ok(Arc::new(memory)),
            Ok(Err(for_now)) => why = for_now,
            // What it said before it said nothing more.
            Err(NotObtained::TimedOut) => return Err(why),
            Err(for_good) => return Err(for_good),
        }
        if Instant::now() + AGAIN >= until {
            return Err(why);
        }
        std::thread::sleep(AGAIN);
    }
}

/// What [`Sharing::obtain`] does for a peer, for a process that is none: an application of the same user. It has one of the
/// [seats](Mapper::SEATS) then.
///
/// # Errors
/// See [`NotObtained`]; [`NotObtained::Claimed`] if all seats are taken.
pub fn borrow(dir: &Path, from: PeerId, name: u64, timeout: Nanos) -> Result<Arc<SharedMemory>, NotObtained> {
    obtain(dir, Question { from: PeerId::OBSERVER, to: from, name }, timeout)
}

impl Sharing for ShmSharing {
    fn me(&self) -> PeerId {
        self.house.me
    }

    fn publish(&self, name: u64, memory: Arc<SharedMemory>) {
        assert!(memory.is_own(), "memory {name:#x} is of another process");
        self.house.published.all().insert(name, memory);
    }

    fn withdraw(&self, name: u64) -> bool {
        self.house.published.all().remove(&name).is_some()
    }

    fn obtain(&self, from: PeerId, name: u64, timeout: Nanos) -> Result<Arc<SharedMemory>, NotObtained> {
        if from == self.house.me {
            return self.house.published.find(name).ok_or(NotObtained::NotPublished);
        }
        let question = Question { from: self.house.me, to: from, name };
        obtain(&self.dir, question, timeout).inspect_err(|why| {
            if *why == NotObtained::Malformed {
                self.house.counters.dropped(Cause::Malformed);
            }
        })
    }
}
