//! State that is there when a run begins, brought about by the real handlers in no time.
//!
//! Messages are handed over in the order in which they were sent, without a network, until there are none left. So
//! whatever can be preloaded is a state that the protocol can be in.
//!
//! Full caches of a large rack are millions of copies. Those are written into the frames directly ([`Preload::install`]),
//! and the directories follow from them as after a restart ([`Preload::report`]): a few handlers' calls for 64 blocks
//! instead of a dozen for each.

use std::collections::VecDeque;

use node::{Access, Effect, Moment, Node, Outcome, Started};
use wire::{Discipline, GlobalAddr, Nanos, NodeId, Refusal, Rules};

use super::store::StoreOf;
use super::{FlowCc, SimMessage};
use crate::home::{Contents, copy};
use crate::system::{Action, Call, Random, System, ThreadId};

/// Prepares a run.
pub struct Preload<'a, R: Rules> {
    system: &'a mut FlowCc<R>,
    in_flight: VecDeque<SimMessage>,
    actions: Vec<Action<SimMessage>>,
    random: Random,
}

impl<R: Rules> FlowCc<R> {
    /// Prepares a run, before its first event.
    pub fn preload(&mut self, seed: u64) -> Preload<'_, R> {
        Preload { system: self, in_flight: VecDeque::new(), actions: Vec::new(), random: Random::new(seed) }
    }
}

impl<R: Rules> Preload<'_, R> {
    /// Allocates memory.
    ///
    /// # Errors
    /// If the home has none left.
    pub fn alloc(
        &mut self,
        on: NodeId,
        len: u64,
        home: NodeId,
        discipline: Discipline,
    ) -> Result<GlobalAddr, Refusal> {
        match self.run(on, |node, at, store, out| node.on_alloc(at, len, home, discipline, store, out)) {
            Outcome::Allocated { addr, .. } => Ok(addr),
            Outcome::Failed(why) => Err(why),
            other => panic!("an allocation ended with {other:?}"),
        }
    }

    /// Lets a node cache the block that an address is in.
    ///
    /// # Errors
    /// If the block may not be accessed.
    pub fn cache(&mut self, on: NodeId, addr: GlobalAddr, access: Access) -> Result<(), Refusal> {
        let tag = self.system.config.block.tag(addr);
        loop {
            match self.run(on, |node, at, store, out| node.on_access(at, tag, access, store, out)) {
                Outcome::Pinned(frame) => {
                    let agent_waits = self.system.memories[on.index()].cache.unpin(frame);
                    assert!(!agent_waits, "nothing else is in flight");
                    return Ok(());
                }
                Outcome::Failed(why) => return Err(why),
                _ => {}
            }
        }
    }

    /// A node has this block in its cache, and has used it later than all that were installed before; what it used least
    /// recently may be gone for that. No directory knows before [`Preload::report`]. The home has the contents.
    pub fn install(&mut self, on: NodeId, addr: GlobalAddr, access: Access) {
        let FlowCc { config, memories, homes, .. } = &mut *self.system;
        let tag = config.block.tag(addr);
        let number = homes[tag.home().index()].number(tag.addr().offset());
        let stamp = homes[tag.home().index()].stamp(number);
        let frame = memories[on.index()].cache.install(tag, access);
        memories[on.index()].cache.set_stamp(frame, stamp);
        if config.contents == Contents::Bytes {
            let mut words = memories[on.index()].frames[frame.0 as usize].take();
            copy(homes[tag.home().index()].words(number), &mut words);
            memories[on.index()].frames[frame.0 as usize] = words;
        }
    }

    /// Makes the directories know all copies, by the protocol's own means: a new epoch begins, every node reports what it
    /// has cached, and the homes rebuild their directories. The switch's is empty then.
    ///
    /// # Panics
    /// If a block has a writer and other copies besides (only with [`FlowCcConfig::check`](super::FlowCcConfig::check)).
    pub fn report(&mut self) {
        let Self { system, actions, random, .. } = self;
        let mut call = Call { now: Nanos::ZERO, actions, charged: Nanos::ZERO, random };
        let new = system.new_epoch(None);
        system.tell_all(&mut call, &new);
        self.deliver();
        assert!(!self.system.is_recovering(), "nothing is lost on the way");
        if self.system.config.check {
            self.system.check_properties();
        }
    }

    /// A block is hot: its entry moves to the switch, if there is capacity.
    #[allow(clippy::wrong_self_convention, reason = "it converts nothing")]
    pub fn to_switch(&mut self, addr: GlobalAddr) {
        let tag = self.system.config.block.tag(addr);
        let Self { system, actions, random, .. } = self;
        let mut call = Call { now: Nanos::ZERO, actions, charged: Nanos::ZERO, random };
        system.call_node(&mut call, tag.home(), |node, at, store, out| node.on_hot(at, tag, store, out));
        self.deliver();
    }

    /// Starts an operation in a node's machines and delivers all messages until none is left.
    fn run(
        &mut self,
        on: NodeId,
        input: impl FnOnce(&mut Node<R>, Moment, &mut StoreOf<'_>, &mut Vec<Effect>) -> Started,
    ) -> Outcome {
        let thread = ThreadId(on.0 * u16::try_from(self.system.config.threads).expect("few threads"));
        let Self { system, actions, random, .. } = self;
        let mut call = Call { now: Nanos::ZERO, actions, charged: Nanos::ZERO, random };
        let started = system.start(&mut call, on, thread, input);
        self.deliver();
        match started {
            Started::Pinned(frame) => Outcome::Pinned(frame),
            Started::Slot(_) => self.system.waits.outcome(thread).expect("nothing is left to wait for"),
            Started::Retry | Started::Join(_) | Started::Full => Outcome::Retry,
        }
    }

    fn deliver(&mut self) {
        loop {
            self.in_flight.extend(self.actions.drain(..).filter_map(|action| match action {
                Action::Send(sim_message) | Action::Resubmit(sim_message) => Some(sim_message),
                Action::Wake(..) => None,
            }));
            let Some(sim_message) = self.in_flight.pop_front() else { return };
            let Self { system, actions, random, .. } = self;
            system.on_message(
                &mut Call { now: Nanos::ZERO, actions, charged: Nanos::ZERO, random },
                &sim_message,
            );
        }
    }
}
