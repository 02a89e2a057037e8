//! A new epoch: the switch was restarted, or a node died or came back (Concordia, section 5.4, "crash safety").
//!
//! # The procedure
//! The control plane (whoever drives the rack) finds out what stopped. It reads the switch's directory if the
//! switch is alive ([`Switch::dump`](switch::coherence::Switch::dump)), restarts the switch empty in the next epoch
//! ([`Switch::restart`](switch::coherence::Switch::restart)), and tells every live node by
//! [`Node::on_new_epoch`](crate::Node::on_new_epoch): in any order, and while the others work on. Packets of
//! another epoch are dropped everywhere, so from then on:
//!
//! 1. *Abort.* A node cuts its open events short, and starts their operations again after a backoff. What was
//!    granted stays granted: it is published. An eviction whose copy the home has not acknowledged is undone.
//!    Locks that applications hold stay held. All tables that tell old packets from new ones start empty: the
//!    epoch does that for the packets of before. Sequence numbers go on.
//! 2. *Report* (`reporter.rs`). The node tells every live home what it has cached of that home's blocks; which
//!    locks it holds; which answers to WRITE-MISSes it kept a copy of, and which WRITE-MISSes it cut short.
//!    Where the home may not have what a shared copy has, it sends the block, too.
//! 3. *Rebuild* (`home/rebuild.rs`). A home refuses all requests as `Recovering` until every live node has said
//!    that it has no more to report. Then it knows every block: a copy is cached somewhere, or the latest
//!    contents are in an answer to a WRITE-MISS that was cut short, or they are in its own memory, or they are
//!    *lost* with a dead node. From here on it decides about all of its blocks; migration moves the hot ones
//!    back to the switch.
//! 4. The shadow starts empty, on another node if its own died.
//!
//! A node that comes back is a new one: another incarnation, with empty memory. Its old blocks belong to no
//! allocation any more. So at the epoch in which a node is gone, copies of its blocks are dropped, operations on
//! them fail as `NodeDown`, and allocators forget its chunks. Allocations that a dead node made in the memory of
//! others live on, but cannot be freed; its chunks without live blocks go back to their homes, and of the others what is
//! not live is granted again (but in memory with copies). A FREE that was under
//! way to it fails as `NodeDown`, executed or not; it says when it was called, so that it cannot free what the
//! chunk's next owner allocates at the same address.
//!
//! # When contents are lost
//! Exactly then, for a block of a live home that nobody alive reports:
//! - its entry says that a dead node has it modified; or
//! - its entry's write lock is held for an event of a dead node, which may have been granted and have written.
//!   For entries in the switch it is not known who holds a write lock: there, a block counts as lost if any
//!   requester of a dead node held any lock in the switch; or
//! - the switch died together with a node before anybody rebuilt, and kept the entry: nothing is known of it.
//!
//! So contents may count as lost that a dead node had the right to change and did not. Contents that count as
//! current are never stale. A lost block is refused as `Lost` until it is freed.
//!
//! # Restarts during recovery
//! What a home knew before the first restart is kept until it has rebuilt its directory, and so is what nodes
//! saved for it ([`saved`]).
//!
//! # Where we differ from the paper
//! - Everything is rebuilt, not only what the switch kept: requests were cut short at homes as well, and one
//!   procedure serves switches and nodes.
//! - No "stop the world": nothing is drained. The epoch does that.
//! - Agents also report retained answers (PROTOCOLS.md, FlowCC 6). The paper's report of dirty bits alone would
//!   lose the contents of a block that its owner gave to a requester that never got it.
//! - Locks of the dead are released by not being reported.

pub(crate) mod reporter;
pub(crate) mod saved;
pub(crate) mod view;

use alloc::vec::Vec;

use switch::coherence::Dump;
use wire::{BlockTag, Copyset, NodeId, Rules};

use crate::coherence::context::Context;
use crate::coherence::home::HomeAgent;
use crate::coherence::message::Effect;
use crate::coherence::node::Node;
use crate::coherence::shadow::Shadow;
use crate::store::{Moment, Store};
pub use view::{Kept, Placement, View};

impl<R: Rules> Node<R> {
    /// A new epoch begins, with these nodes. `dump` is what the switch knew at the end of the epoch that this
    /// node leaves, if it was alive then; a dump of another epoch is not looked at. A node that has heard of
    /// the epoch, or of a later one, does nothing.
    ///
    /// On a transport that loses nothing, nothing must be delivered before all nodes have been told: what a
    /// node in an older epoch drops is not sent again.
    ///
    /// # Panics
    /// If the view is of a rack of another size, or says that this node is down or in another incarnation.
    pub fn on_new_epoch<S: Store>(
        &mut self,
        at: Moment,
        view: &View,
        dump: Option<&Dump>,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) {
        let (me, left) = (self.config.id, self.config.switch_epoch);
        assert_eq!(view.incarnations.len(), self.config.nodes, "{view:?}");
        assert_eq!(view.memories.len(), self.config.memories() - self.config.nodes, "{view:?}");
        assert_eq!(view.incarnations[me.index()], Some(self.config.incarnation), "{me} in {view:?}");
        if view.epoch <= left {
            return;
        }
        // Nodes, and with them memories.
        let dead: Copyset = self.gone_by(view).collect();
        let mut gone = dead;
        for (incarnation, new) in self.incarnations.iter_mut().zip(&view.incarnations) {
            *incarnation = new.unwrap_or(*incarnation);
        }
        self.config.switch_epoch = view.epoch;
        self.config.shadow = view.shadow;
        self.down = view.down();
        // A memory with copies is gone with the last node that has one; then it begins anew.
        for (i, kept) in view.memories.iter().enumerate() {
            let memory = NodeId(u16::try_from(self.config.nodes + i).expect("at most 64 memories"));
            let life = &mut self.incarnations[memory.index()];
            if *life != kept.life || view.hosts(i).next().is_none() {
                gone = gone.with(memory);
                self.copied.remove(&memory);
            }
            *life = kept.life;
            if view.hosts(i).next().is_none() {
                self.down = self.down.with(memory);
            }
        }
        let cx = &mut Context {
            rules: self.rules,
            now: at.now,
            random: at.random,
            config: &self.config,
            counters: &mut self.counters,
            down: self.down,
            incarnations: &self.incarnations,
            copies: &mut self.copies,
            store,
            out,
        };
        cx.counters.new_epochs += 1;
        let saved = &mut self.reporter.saved;
        saved.forget(cx, gone);
        let held = self.requesters.on_new_epoch(cx, gone, left, saved);
        self.cache_agent.on_new_epoch(cx, gone, left, &self.incarnations, saved);
        self.allocation.on_new_epoch(cx, &mut self.requesters, gone);
        self.home.on_new_epoch(cx, view.live(), dead, dump.filter(|dump| dump.epoch == left));
        cx.copies_on_new_epoch(view, (dead, gone));
        let config = cx.config;
        // What is copied is copied from its beginning.
        self.copied.retain(|memory, _| cx.copies.hosts(*memory).contains(&me));
        for memory in cx.copies.kept_by(me).collect::<alloc::vec::Vec<_>>() {
            let home = self.copied.entry(memory).or_insert_with(|| match cx.copies.is_filling(memory, me) {
                true => HomeAgent::of_a_copy(memory, config),
                false => HomeAgent::anew(memory, cx),
            });
            home.on_new_epoch(cx, view.live(), dead, None);
        }
        self.shadow = (view.shadow == me).then(|| Shadow::new(me));
        self.reporter.start(cx, view.live(), gone, &held);
        self.go_on_with_batches(at, store, out);
    }

    /// The shadow on this node has lost its table, or has just been made: this is what the switch's TAG arrays
    /// hold, as the control plane read them.
    pub fn on_shadow_restarted(&mut self, tags: impl IntoIterator<Item = BlockTag>) {
        let mut shadow = Shadow::new(self.config.id);
        tags.into_iter().for_each(|tag| shadow.learn(self.config.switch_entries, tag));
        self.shadow = Some(shadow);
    }

    /// True until this node has reported to every home, and its own home has rebuilt its directory.
    pub fn is_recovering(&self) -> bool {
        let serves = |memory: &NodeId| self.copies.server(*memory) == Some(self.config.id);
        !self.reporter.is_quiet()
            || self.home.is_rebuilding()
            || self.copied.iter().any(|(memory, home)| serves(memory) && home.is_rebuilding())
    }

    /// True if this home's block is lost.
    pub fn has_lost(&self, tag: BlockTag) -> bool {
        self.home.lost.contains(&tag)
    }

    /// The blocks of this home that are lost.
    pub fn lost(&self) -> impl Iterator<Item = BlockTag> {
        self.home.lost.iter().copied()
    }

    /// The nodes that are not what they were: down, or in another incarnation.
    fn gone_by<'a>(&'a self, view: &'a View) -> impl Iterator<Item = NodeId> + 'a {
        let nodes =
            (0..view.incarnations.len()).map(|node| NodeId(u16::try_from(node).expect("at most 64 nodes")));
        nodes.filter(|node| view.incarnations[node.index()] != Some(self.incarnations[node.index()]))
    }
}
