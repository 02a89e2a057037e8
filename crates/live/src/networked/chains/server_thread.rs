//! A metadata server's thread: what it wants of memory, who has died, what its backups lack, and what a new switch is told. A backup's
//! thread waits until all servers before it are dead.
//!
//! What must always hold: a client of a node that is dead is swept when every memory of the store has ended its connections; a
//! backup takes over when every memory has ended those of the servers before it.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use transport::{Body, PeerId};
use wire::{GlobalAddr, Incarnation, NodeId, Refusal, SwitchEpoch};

use crate::actor::{Failure, ThreadContext};
use crate::chains::{Ask, Copying, Fabric as _, Introduction, Server};
use crate::config::Steering;
use crate::networked::node::NetworkedNode;
use nic::regions::Reply;

/// Tails that a new switch is told: those of so many keys take most of the writes there are, and are found in a moment.
const MOST_PRELOADED: usize = 1024;
/// Told at a time.
const BURST: usize = 32;

/// Batches that a backup is sent in a row, however much it lacks.
const BATCHES: usize = 8;

/// How often it looks who has died.
const LOOK: Duration = Duration::from_millis(20);

impl NetworkedNode {
    /// Tells every memory of a store that lives of its clients are over, and then sweeps those.
    fn sweep_the_dead(&self, context: &mut ThreadContext, server: &Server) -> Result<(), Failure> {
        for (node, incarnation) in server.incarnations() {
            if !self.is_over(node, incarnation) {
                continue;
            }
            self.fence_at_memories(context, server, (node, incarnation))?;
            self.look_at_memories(server)?;
            if self.is_steered() {
                let number = self.next_number();
                self.introduce(context, Introduction::End { node, incarnation, number })?;
            }
            server.sweep(self.now(), node, incarnation);
        }
        Ok(())
    }

    /// Tells every memory of a store to execute nothing more of a life that is over.
    fn fence_at_memories(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        (node, incarnation): (NodeId, Incarnation),
    ) -> Result<(), Failure> {
        for (memory, its) in server.store().setup.nodes() {
            // Otherwise it executes nothing any more, of nobody. Whether something is lost with it, the caller looks.
            let at = (memory, its, GlobalAddr::new(memory, 0));
            if let Some(Err(why)) = self.ask_until_over(context, at, &Ask::Fence { node, incarnation })? {
                return Err(why.into());
            }
        }
        Ok(())
    }

    /// A backup takes over if all servers before it are dead. True if it leads then.
    fn take_over(&self, context: &mut ThreadContext, server: &Server) -> Result<bool, Failure> {
        if server.leads() {
            return Ok(true);
        }
        let store = server.store();
        // One that is about to become a backup is not among them.
        let Some(place) = store.place(self.id(), self.incarnation()) else { return Ok(false) };
        let before = &store.servers[..place];
        if before.iter().any(|(node, its)| !self.is_over(*node, *its)) {
            return Ok(false);
        }
        for dead in before {
            self.fence_at_memories(context, server, *dead)?;
        }
        self.look_at_memories(server)?;
        // What the former one had begun to copy nobody knows of: it is done anew.
        let behind = &store.servers[place..];
        self.reform(context, server, None, behind.to_vec())?;
        server.take_over(&behind[1..]);
        Ok(true)
    }

    /// Sends backups what they lack, and one that is about to become one. True if there was anything.
    pub(super) fn tell_backups(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        joins: Option<(NodeId, Incarnation)>,
    ) -> Result<bool, Failure> {
        let store = server.store();
        let mut told = false;
        for node in server.backups() {
            let known = joins.iter().chain(&store.servers).find(|(backup, _)| *backup == node);
            told |= self.tell_backup(context, server, *known.expect("it is one of them"))?;
        }
        Ok(told)
    }

    /// Sends a backup some of what it lacks.
    fn tell_backup(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        (node, its): (NodeId, Incarnation),
    ) -> Result<bool, Failure> {
        let store = server.store();
        let mut told = false;
        for _ in 0..BATCHES {
            if self.is_over(node, its) {
                server.backup_has(node, None);
                break;
            }
            let Some(batch) = server.for_backup(node) else { break };
            told = true;
            let ask = Ask::Follow { store: store.name, batch };
            match self.ask_until_over(context, (node, its, store.addr), &ask)? {
                Some(Ok(Reply::Words(words))) if words.len() == 1 => server.backup_has(node, Some(words[0])),
                // It is over, or the store is about to end.
                None | Some(Err(Refusal::Unallocated)) => server.backup_has(node, None),
                // It has taken over: this node is dead, and has not heard of it.
                _ => {
                    server.end();
                    return Ok(true);
                }
            }
        }
        Ok(told)
    }

    /// A store goes on as long as one copy of everything is left.
    fn look_at_memories(&self, server: &Server) -> Result<(), Failure> {
        if server.store().setup.is_lost(|home| self.lives(home)) {
            Err(Refusal::NodeDown.into())
        } else {
            Ok(())
        }
    }

    /// The switch may be another one, and know no tails: looks for those of the keys that are written to most, and tells it.
    fn preload(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        (epoch, most): (SwitchEpoch, usize),
    ) -> Result<(), Failure> {
        let number = self.next_number();
        let Some(scan) = server.store().setup.scan(epoch, number) else { return Ok(()) };
        match self.introduce(context, scan) {
            // Another epoch has begun, for which it looks anew.
            Err(Failure::Broken) => return Ok(()),
            told => told?,
        }
        let keys = server.scan_hottest(most.min(MOST_PRELOADED));
        while server.work(self, context) {}
        for burst in keys.chunks(BURST) {
            for (key, (at, version)) in burst.iter().filter_map(|key| Some((*key, server.tail(*key)?))) {
                let said = Introduction::Tail { key, at, version, number };
                self.transport.send(PeerId::SWITCH, Body::Control(&said.encode()), &mut context.outgoing);
            }
            self.flush(context);
        }
        Ok(())
    }
}

/// Does what a server wants of memory, and looks who has died, until the store or the node is gone.
pub(super) fn serve_store(node: &Weak<NetworkedNode>, server: &Server) {
    let mut context = ThreadContext::new(server.store().addr.bits());
    let mut epoch = node.upgrade().map_or(SwitchEpoch(0), |node| node.epoch());
    let mut copying = None;
    loop {
        let Some(node) = node.upgrade() else { return };
        if node.stop.load(Ordering::Acquire) || node.lease().is_fenced() {
            return;
        }
        if server.has_ended() {
            if let Some(copying) = &copying {
                node.give_up_copying(&mut context, copying);
            }
            if let Some(over) = server.store().setup.over(node.next_number())
                && node.is_steered()
            {
                // Otherwise the node is going to end.
                let _ = node.introduce(&mut context, over);
            }
            return;
        }
        if epoch != node.epoch() {
            epoch = node.epoch();
            if let Some(Steering { keys, preload: true, .. }) = node.steering()
                && let Err(why) = node.preload(&mut context, server, (epoch, keys))
            {
                server.fail(why);
            }
        }
        let mut lead = |context: &mut ThreadContext| {
            if !node.take_over(context, server)? {
                return node.look_at_memories(server).map(|()| false);
            }
            node.sweep_the_dead(context, server)?;
            node.look_at_memories(server)?;
            let copied = node.replace_the_dead(context, server, &mut copying)?;
            node.replace_dead_backups(context, server)?;
            let told = node.tell_backups(context, server, None)?;
            Ok(server.work(&*node, context) || told || copied)
        };
        let worked = lead(&mut context).unwrap_or_else(|why| {
            server.fail(why);
            false
        });
        if !worked {
            let wait = |copying: &Copying| Duration::from_nanos(copying.wait(node.now()).0);
            let wait = copying.as_ref().map_or(LOOK, wait).min(LOOK);
            drop(node);
            server.wait(wait);
        }
    }
}
