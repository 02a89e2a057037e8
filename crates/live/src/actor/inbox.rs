//! An actor of the rack: machines under one lock, and the messages that wait for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use node::locks::LockMessage;
use node::{FrameId, Message};
use wire::{GlobalAddr, Nanos};

/// What can be put into an inbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    /// A message of another actor, or of this one to itself.
    Message(Message),
    /// A thread has unpinned a frame that an agent of this node waits for.
    Unpinned(FrameId),
    /// A message about a lock.
    Lock(LockMessage),
    /// Nobody is inside this lock any more, whose gate is closed.
    Left(GlobalAddr),
}

/// Machines, with a lock and an inbox.
pub(crate) struct Actor<M> {
    inbox: Mutex<Vec<Input>>,
    /// Whether there is something in the inbox; set under its lock, looked at without.
    waiting: AtomicBool,
    machine: Mutex<M>,
    /// When the machine wants to be called, as of its last call.
    deadline: AtomicU64,
}

/// Looks at a held machine before a thread gives its core away, and before it sleeps.
const SPINS: u32 = 200;
const LOOKS: u32 = 2000;

/// A lock whose holder panicked guards a machine in an unknown state: the rack is lost, and says so.
const POISONED: &str = "a thread of this rack panicked inside a protocol machine; that is a bug in rackmem";

/// Keeps a lock operation and a look at `waiting` from passing each other: the holder lets go and then looks, the
/// leaver leaves and then tries to enter, and one of the two has to see the other.
///
/// On x86 every lock operation is a locked instruction, which is a full barrier already, and another one would
/// cost as much as all else here; only the compiler has to be told.
#[inline]
fn between_lock_and_look() {
    if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

impl<M> Actor<M> {
    pub(crate) fn new(machine: M, deadline: Nanos) -> Self {
        Self {
            inbox: Mutex::new(Vec::new()),
            waiting: AtomicBool::new(false),
            machine: Mutex::new(machine),
            deadline: AtomicU64::new(deadline.0),
        }
    }

    /// Leaves something for the machine. The caller runs the actor afterwards, when it holds the lock of no other.
    #[inline(always)]
    pub(crate) fn leave(&self, input: Input) {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.push(input);
        self.waiting.store(true, Ordering::SeqCst);
    }

    /// Takes everything out of the inbox, into an empty batch. Only whoever holds the machine does this.
    pub(crate) fn collect(&self, batch: &mut Vec<Input>) {
        debug_assert!(batch.is_empty());
        if self.waiting.load(Ordering::SeqCst) {
            let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut *inbox, batch);
            self.waiting.store(false, Ordering::SeqCst);
        }
    }

    /// True if something is in the inbox. Asked after letting go of the machine: together with the leaver, who
    /// first leaves and then tries to enter, this makes sure that one of the two sees the other.
    pub(crate) fn is_waiting(&self) -> bool {
        between_lock_and_look();
        self.waiting.load(Ordering::SeqCst)
    }

    /// The machine, if nobody holds it.
    pub(crate) fn try_enter(&self) -> Option<MutexGuard<'_, M>> {
        between_lock_and_look();
        match self.machine.try_lock() {
            Ok(machine) => Some(machine),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("{POISONED}"),
        }
    }

    /// The machine, as soon as its holder lets go.
    pub(crate) fn enter(&self) -> MutexGuard<'_, M> {
        // Holders stay for a microsecond or so, unless they are preempted: a few looks, then their core. Sleeping
        // in the kernel's queue comes last: once a lock has sleepers, every release pays for a wake-up, and
        // the actors of a busy rack would go on that way for ever.
        for look in 0..LOOKS {
            if let Some(machine) = self.try_enter() {
                return machine;
            }
            if look < SPINS { std::hint::spin_loop() } else { crate::scheduling::give_way() }
        }
        self.machine.lock().expect(POISONED)
    }

    pub(crate) fn deadline(&self) -> Nanos {
        Nanos(self.deadline.load(Ordering::Relaxed))
    }

    pub(crate) fn set_deadline(&self, deadline: Nanos) {
        // Stored only when it changes: the line is shared by all threads that wait.
        if self.deadline.load(Ordering::Relaxed) != deadline.0 {
            self.deadline.store(deadline.0, Ordering::Relaxed);
        }
    }
}
