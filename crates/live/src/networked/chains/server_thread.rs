//! A metadata server's thread: what it wants of memory, who has died, and what a new switch is told.
//!
//! What must always hold: a client of a node that is dead is swept when every memory of the store has ended its connections.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use transport::{Body, PeerId};
use wire::{GlobalAddr, Refusal, SwitchEpoch};

use crate::actor::{Failure, ThreadContext};
use crate::chains::{Ask, Fabric as _, Home, Introduction, Server};
use crate::config::Steering;
use crate::networked::node::NetworkedNode;

/// Tails that a new switch is told: those of so many keys take most of the writes there are, and are found in a moment.
const MOST_PRELOADED: usize = 1024;
/// Told at a time.
const BURST: usize = 32;

/// How often it looks who has died.
const LOOK: Duration = Duration::from_millis(20);

impl NetworkedNode {
    /// Tells every memory of a store that lives of its clients are over, and then sweeps those.
    fn sweep_the_dead(&self, context: &mut ThreadContext, server: &Server) -> Result<(), Failure> {
        for (node, incarnation) in server.incarnations() {
            if self.incarnation_of(node) == Some(incarnation) {
                continue;
            }
            for (memory, its) in server.store.setup.nodes() {
                loop {
                    if self.incarnation_of(memory) != Some(its) {
                        // It executes nothing any more, of nobody. Whether something is lost with it, the caller looks.
                        break;
                    }
                    match self.ask_chain(
                        context,
                        GlobalAddr::new(memory, 0),
                        &Ask::Fence { node, incarnation },
                    ) {
                        Ok(_) => break,
                        Err(Failure::Broken) => self.pass_time(context),
                        // It has died meanwhile.
                        Err(Failure::Refused(Refusal::NodeDown))
                            if self.incarnation_of(memory) != Some(its) =>
                        {
                            break;
                        }
                        Err(why) => return Err(why),
                    }
                }
            }
            self.look_at_memories(server)?;
            if self.is_steered() {
                let number = self.next_number();
                self.introduce(context, Introduction::End { node, incarnation, number })?;
            }
            server.sweep(self.now(), node, incarnation);
        }
        Ok(())
    }

    /// A store goes on as long as one copy of everything is left.
    fn look_at_memories(&self, server: &Server) -> Result<(), Failure> {
        let is_up = |home: &Home| self.incarnation_of(home.addr.home()) == Some(home.incarnation);
        if server.store.setup.is_lost(is_up) { Err(Refusal::NodeDown.into()) } else { Ok(()) }
    }

    /// The switch may be another one, and know no tails: looks for those of the keys that are written to most, and tells it.
    fn preload(
        &self,
        context: &mut ThreadContext,
        server: &Server,
        (epoch, most): (SwitchEpoch, usize),
    ) -> Result<(), Failure> {
        let number = self.next_number();
        let Some(scan) = server.store.setup.scan(epoch, number) else { return Ok(()) };
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
    let mut context = ThreadContext::new(server.store.addr.bits());
    let mut epoch = node.upgrade().map_or(SwitchEpoch(0), |node| node.epoch());
    loop {
        let Some(node) = node.upgrade() else { return };
        if node.stop.load(Ordering::Acquire) || node.lease().is_fenced() {
            return;
        }
        if server.has_ended() {
            if let Some(over) = server.store.setup.over(node.next_number())
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
        if let Err(why) = node.sweep_the_dead(&mut context, server) {
            server.fail(why);
        }
        if let Err(why) = node.look_at_memories(server) {
            server.fail(why);
        }
        if !server.work(&*node, &mut context) {
            drop(node);
            server.wait(LOOK);
        }
    }
}
