//! Peers of one process: messages travel as values, and nothing is lost.
//!
//! For tests of what stands above a transport, and for the conformance tests of transports.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wire::{LockPacket, Nanos, Packet, roce};

use crate::{Body, Contents, Counters, Outgoing, PeerId, Transport};

/// Messages of one [`Transport::receive`], at most.
const BURST: usize = 64;

enum Message {
    Packet(Box<Packet>, Vec<u64>),
    Lock(Box<LockPacket>, Vec<u64>),
    Verbs(Box<roce::Packet>, usize, Vec<u64>),
    Control(Vec<u8>),
}

impl Message {
    fn bytes(&self) -> usize {
        match self {
            Self::Packet(_, words) => wire::packet::HEADER_BYTES + words.len() * 8,
            Self::Lock(packet, words) => packet.head_bytes() + words.len() * 8,
            Self::Verbs(packet, payload, _) => packet.header_bytes() + payload,
            Self::Control(bytes) => bytes.len(),
        }
    }
}

#[derive(Default)]
struct Inbox {
    messages: Mutex<VecDeque<(PeerId, Message)>>,
    came: Condvar,
    /// Somebody is in [`Transport::block`], or shall not begin to be.
    blocked: AtomicBool,
    interrupted: AtomicBool,
    /// Threads that receive again and again.
    attending: AtomicUsize,
}

impl Inbox {
    fn messages(&self) -> MutexGuard<'_, VecDeque<(PeerId, Message)>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What connects the peers.
#[derive(Clone, Default)]
pub struct Hub {
    inboxes: Arc<Mutex<Vec<Option<Arc<Inbox>>>>>,
}

impl Hub {
    /// Connects a peer. What was there by that name is cut off.
    pub fn connect(&self, me: PeerId) -> InlineTransport {
        let inbox = Arc::new(Inbox::default());
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.resize_with(PeerId::COUNT, || None);
        inboxes[me.index()] = Some(Arc::clone(&inbox));
        drop(inboxes);
        InlineTransport {
            me,
            hub: self.clone(),
            inbox,
            receiving: Mutex::default(),
            counters: Counters::default(),
        }
    }

    fn inbox(&self, peer: PeerId) -> Option<Arc<Inbox>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner).get(peer.index())?.clone()
    }
}

/// One peer's connection.
pub struct InlineTransport {
    me: PeerId,
    hub: Hub,
    inbox: Arc<Inbox>,
    receiving: Mutex<()>,
    counters: Counters,
}

impl Drop for InlineTransport {
    fn drop(&mut self) {
        let mut inboxes = self.hub.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = &mut inboxes[self.me.index()];
        if mine.as_ref().is_some_and(|inbox| Arc::ptr_eq(inbox, &self.inbox)) {
            *mine = None;
        }
    }
}

impl Transport for InlineTransport {
    fn me(&self) -> PeerId {
        self.me
    }

    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        assert_ne!(to, self.me, "nothing is sent to oneself");
        // It goes at once; but whoever forgets to flush shall not get away with it here alone.
        out.rings |= 1 << to.index();
        let Some(inbox) = self.hub.inbox(to) else { return self.counters.dropped(crate::Cause::Unreachable) };
        let message = match body {
            Body::Packet(packet, contents) => {
                assert_eq!(contents.bytes(), packet.payload as usize, "{packet:?}");
                Message::Packet(Box::new(*packet), contents.to_words())
            }
            Body::Lock(packet, contents) => {
                assert_eq!(contents.bytes(), packet.payload as usize, "{packet:?}");
                Message::Lock(Box::new(*packet), contents.to_words())
            }
            Body::Verbs(packet, payload, contents) => {
                assert!(payload <= crate::MOST_ONE_SIDED, "{payload} bytes: {packet:?}");
                assert_eq!(contents.bytes(), payload.next_multiple_of(8), "{packet:?}");
                Message::Verbs(Box::new(*packet), payload, contents.to_words())
            }
            Body::Control(bytes) => {
                assert!(bytes.len() <= crate::MOST_CONTROL, "{} bytes", bytes.len());
                Message::Control(bytes.to_vec())
            }
        };
        self.counters.sent(1, message.bytes() as u64);
        inbox.messages().push_back((self.me, message));
        if inbox.attending.load(Ordering::SeqCst) == 0 || inbox.blocked.load(Ordering::SeqCst) {
            inbox.came.notify_all();
        }
    }

    fn flush(&self, out: &mut Outgoing) {
        out.rings = 0;
    }

    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        let Ok(_receiving) = self.receiving.try_lock() else { return 0 };
        let (mut received, mut taken) = (0, 0);
        while received < BURST {
            let Some((from, message)) = self.inbox.messages().pop_front() else { break };
            received += 1;
            taken += message.bytes();
            match &message {
                Message::Packet(packet, words) => each(from, Body::Packet(packet, Contents::own(words))),
                Message::Lock(packet, words) => each(from, Body::Lock(packet, Contents::own(words))),
                Message::Verbs(packet, payload, words) => {
                    each(from, Body::Verbs(packet, *payload, Contents::own(words)));
                }
                Message::Control(bytes) => each(from, Body::Control(bytes)),
            }
        }
        self.counters.received(received as u64, taken as u64);
        received
    }

    fn attend(&self) {
        self.inbox.attending.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self) -> bool {
        self.inbox.attending.fetch_sub(1, Ordering::SeqCst) == 1 && !self.inbox.messages().is_empty()
    }

    fn wait(&self, most: Nanos) {
        let messages = self.inbox.messages();
        if messages.is_empty() || self.inbox.attending.load(Ordering::SeqCst) > 0 {
            drop(self.inbox.came.wait_timeout(messages, Duration::from_nanos(most.0)));
        }
    }

    fn block(&self, most: Nanos) {
        let messages = self.inbox.messages();
        if messages.is_empty() && !self.inbox.interrupted.swap(false, Ordering::SeqCst) {
            self.inbox.blocked.store(true, Ordering::SeqCst);
            drop(self.inbox.came.wait_timeout(messages, Duration::from_nanos(most.0)));
            self.inbox.blocked.store(false, Ordering::SeqCst);
            self.inbox.interrupted.store(false, Ordering::SeqCst);
        }
    }

    fn interrupt(&self) {
        let _messages = self.inbox.messages();
        self.inbox.interrupted.store(true, Ordering::SeqCst);
        self.inbox.came.notify_all();
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
