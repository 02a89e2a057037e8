//! What application threads of the little rack do: allocate, read, write, lock and free.

use node::{Access, Effect, FrameId, Message, Moment, Node, Outcome, Started};
use wire::{BlockTag, Discipline, GlobalAddr, Nanos, NodeId, Refusal, Rules, SlotId};

use super::PlainStore;
use super::blocks::{BLOCK, Blocks};
use super::threads::Doing;
use crate::rack::Bench;

impl<R: Rules> Blocks<R> {
    pub(super) fn completed<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        node: NodeId,
        slot: SlotId,
        outcome: Outcome,
    ) {
        if let Some(guest) = self.guests.remove(&(node, slot)) {
            return self.told.push((guest, outcome));
        }
        for index in 0..self.threads.len() {
            let thread = self.threads[index];
            let Some((waits_for, started)) = thread.waits_for() else { continue };
            if thread.node != node || waits_for != slot {
                continue;
            }
            self.threads[index].doing = match (thread.doing, outcome) {
                _ if !started => Doing::Idle,
                (Doing::Fetching { tag, access, .. }, Outcome::Pinned(frame)) => {
                    Doing::Accessing { frame, tag, access }
                }
                (Doing::Fetching { tag, since, .. }, Outcome::Peeked(data)) => {
                    // Others may have written since it was answered, but not before it was asked.
                    let latest = self.latest.get(&tag).copied().unwrap_or(0);
                    let fits = since.is_none_or(|since| (since..=latest).contains(&data.0));
                    // Writes of the dead may be gone meanwhile.
                    let may_be_older = self.has_copies(tag) && bench.control.has_lost_a_node();
                    assert!(
                        fits || may_be_older,
                        "{node} reads {} of {tag:?}, which had {since:?} and has {latest}",
                        data.0
                    );
                    self.seen.accesses += 1;
                    self.seen.peeked += 1;
                    Doing::Idle
                }
                (Doing::Syncing { upto, .. }, Outcome::Synced) => {
                    self.seen.syncs += 1;
                    let told = self.survival.promised(Self::life(&bench.control, node), upto);
                    told.unwrap_or_else(|what| panic!("{what}"));
                    Doing::Idle
                }
                (Doing::Locking { tag, write, .. }, Outcome::Locked) => {
                    self.hold(tag, write);
                    // Two readers can have it at once.
                    if write {
                        self.take_up(&bench.control, tag.lock_entry(), node);
                    }
                    // Some are held for long, so that restarts find them held.
                    let span = if bench.random.per_mille(60) { Nanos::from_millis(1) } else { Nanos::ZERO };
                    Doing::Holding { slot, tag, until: bench.now + span, on_paper: false }
                }
                (Doing::Allocating { home, discipline, .. }, Outcome::Allocated { addr, .. }) => {
                    self.seen.allocations += 1;
                    self.take_up(&bench.control, BLOCK.tag(addr), node);
                    let incarnation = bench.control.known_incarnation(node, home);
                    if bench.control.remembers(home, incarnation) {
                        let is_new = match discipline {
                            Discipline::Coherent => self.live.insert(addr),
                            Discipline::Locked => true,
                            _ => self.others.insert(addr, discipline).is_none(),
                        };
                        assert!(is_new, "{addr} was allocated twice");
                        assert!(
                            !(self.live.contains(&addr) && self.others.contains_key(&addr)),
                            "{addr} was allocated twice, differently"
                        );
                    }
                    Doing::Idle
                }
                (Doing::Freeing { .. }, Outcome::Freed) => {
                    self.seen.frees += 1;
                    Doing::Idle
                }
                (Doing::Fetching { tag, .. } | Doing::Locking { tag, .. }, Outcome::Failed(why)) => {
                    let is_kept = self.has_copies(tag) && bench.control.has_copy(tag.home());
                    // And has been, since the thread began.
                    let is_same = matches!(thread.doing, Doing::Fetching { since: Some(_), .. });
                    let must_be_there = is_kept && is_same && self.live.contains(&tag.addr());
                    assert!(!must_be_there, "{node} is refused {tag:?}, which is allocated: {why:?}");
                    self.seen.refused += 1;
                    self.seen.lost += u64::from(why == Refusal::Lost);
                    Doing::Idle
                }
                // Its allocator, or its home, has died.
                (Doing::Freeing { .. }, Outcome::Failed(Refusal::NodeDown | Refusal::NotAnAllocation))
                    if bench.control.has_lost_a_node() =>
                {
                    Doing::Idle
                }
                (Doing::Allocating { .. }, Outcome::Failed(_)) | (_, Outcome::Retry) => Doing::Idle,
                (doing, outcome) => panic!("{doing:?} ended with {outcome:?}"),
            };
        }
    }

    fn hold(&mut self, tag: BlockTag, write: bool) {
        let holders = self.holders.entry(tag).or_insert((0, false));
        assert!(!holders.1 && (!write || holders.0 == 0), "{tag:?} is held by {holders:?}");
        *holders = (holders.0 + 1, write);
        self.seen.locks += 1;
    }

    /// One holder less.
    pub(super) fn let_go(&mut self, tag: BlockTag) {
        let holders = self.holders.get_mut(&tag).expect("it is held");
        holders.0 -= 1;
        if holders.0 == 0 {
            self.holders.remove(&tag);
        }
    }

    pub(super) fn pick<M: Copy>(&mut self, bench: &mut Bench<M>) -> Option<GlobalAddr> {
        let nth = bench.random.below(self.live.len().max(1));
        self.live.iter().nth(nth).copied()
    }

    /// A thread takes its next step; false if all of them wait.
    pub(super) fn take_turn<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>) -> bool {
        let first = bench.random.below(self.threads.len());
        let threads = self.threads.len();
        let ready = (0..threads).map(|n| (first + n) % threads).find(|index| {
            let thread = &self.threads[*index];
            let can = match thread.doing {
                Doing::Idle => !bench.calm,
                Doing::Accessing { .. } => true,
                Doing::Holding { until, .. } => bench.calm || bench.now >= until,
                _ => false,
            };
            can && bench.control.works(thread.node)
        });
        let Some(index) = ready else { return false };
        let thread = self.threads[index];
        match thread.doing {
            Doing::Accessing { frame, tag, access } => self.access(bench, index, frame, tag, access),
            Doing::Holding { slot, tag, on_paper, .. } => {
                if !on_paper {
                    self.let_go(tag);
                    let life = Self::life(&bench.control, thread.node);
                    self.given_up.insert(tag.lock_entry(), (life, self.writes));
                }
                self.threads[index].doing = Doing::Idle;
                self.call(bench, thread.node, |node, at, store, out| node.on_release(at, slot, store, out));
            }
            _ => self.begin(bench, index, thread.node),
        }
        true
    }

    fn begin<M: Copy + From<Message>>(&mut self, bench: &mut Bench<M>, index: usize, node: NodeId) {
        let what = bench.random.below(100);
        if what < 5 && self.live.len() < self.plan.blocks || self.live.is_empty() {
            let discipline = self.draw_discipline(bench);
            let memories = if bench.plan.copies > 1 { 2 * self.nodes.len() } else { self.nodes.len() };
            let home = NodeId(bench.random.below(memories) as u16);
            self.start(
                bench,
                index,
                node,
                |slot| Doing::Allocating { slot, home, discipline },
                |node, at, store, out| node.on_alloc(at, BLOCK.bytes(), home, discipline, store, out),
            );
            return;
        }
        if bench.plan.copies > 1 && bench.random.per_mille(20) {
            let upto = self.writes;
            self.start(
                bench,
                index,
                node,
                |slot| Doing::Syncing { slot, upto },
                |node, at, store, out| node.on_sync(at, store, out),
            );
            return;
        }
        if self.plan.others > 0 && bench.random.per_mille(15) && !self.others.is_empty() {
            // Nobody may access words and objects as blocks.
            let nth = bench.random.below(self.others.len());
            let addr = *self.others.keys().nth(nth).expect("there is one");
            return self.fetch(bench, index, node, BLOCK.tag(addr), Access::Shared);
        }
        let addr = self.pick(bench).expect("something is live");
        let tag = BLOCK.tag(addr);
        if what < 7 {
            self.live.remove(&addr);
            self.given_up.insert(tag, (Self::life(&bench.control, node), self.writes));
            self.start(
                bench,
                index,
                node,
                |slot| Doing::Freeing { slot, addr },
                |node, at, store, out| node.on_free(at, (addr, None), store, out),
            );
        } else if what < 20 {
            let write = bench.random.per_mille(400);
            self.start(
                bench,
                index,
                node,
                |slot| Doing::Locking { slot, tag, write },
                |node, at, store, out| node.on_lock(at, tag, write, false, store, out),
            );
        } else {
            let access =
                if bench.random.per_mille(self.plan.writes) { Access::Modified } else { Access::Shared };
            self.fetch(bench, index, node, tag, access);
        }
    }

    fn draw_discipline<M: Copy>(&self, bench: &mut Bench<M>) -> Discipline {
        if self.plan.others == 0 || !bench.random.per_mille(self.plan.others) {
            return Discipline::Coherent;
        }
        let others = [Discipline::Locked, Discipline::Locked, Discipline::Word, Discipline::Object];
        others[bench.random.below(others.len())]
    }

    /// Somebody else allocates; false if the node has no slot for that now.
    pub(crate) fn alloc_for<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        (node, guest): (NodeId, usize),
        bytes: u64,
        (home, discipline): (NodeId, Discipline),
    ) -> bool {
        let at = bench.moment();
        bench.touch(Some(node));
        let (machine, store) = &mut self.nodes[node.index()];
        let started = machine.on_alloc(at, bytes, home, discipline, store, &mut self.out);
        if let Started::Slot(slot) = started {
            self.guests.insert((node, slot), guest);
        }
        self.effects(bench, node);
        matches!(started, Started::Slot(_))
    }

    /// Somebody else frees an allocation; false if the node has no slot for that now.
    pub(crate) fn free_for<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        (node, guest): (NodeId, usize),
        addr: GlobalAddr,
    ) -> bool {
        let at = bench.moment();
        bench.touch(Some(node));
        let (machine, store) = &mut self.nodes[node.index()];
        let started = machine.on_free(at, (addr, None), store, &mut self.out);
        if let Started::Slot(slot) = started {
            self.guests.insert((node, slot), guest);
        }
        self.effects(bench, node);
        matches!(started, Started::Slot(_))
    }

    fn fetch<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        index: usize,
        node: NodeId,
        tag: BlockTag,
        access: Access,
    ) {
        let since = self.latest.get(&tag).copied();
        let started = self.start(
            bench,
            index,
            node,
            |slot| Doing::Fetching { slot, tag, access, since },
            |node, at, store, out| match access {
                Access::Shared => node.on_read(at, tag, (0, 8), store, out),
                Access::Modified => node.on_access(at, tag, access, store, out),
            },
        );
        if let Started::Pinned(frame) = started {
            self.threads[index].doing = Doing::Accessing { frame, tag, access };
        }
    }

    fn start<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        index: usize,
        node: NodeId,
        doing: impl FnOnce(SlotId) -> Doing,
        input: impl FnOnce(&mut Node<R>, Moment, &mut PlainStore, &mut Vec<Effect>) -> Started,
    ) -> Started {
        let at = bench.moment();
        bench.touch(Some(node));
        let (machine, store) = &mut self.nodes[node.index()];
        let started = input(machine, at, store, &mut self.out);
        self.threads[index].doing = match started {
            Started::Slot(slot) => doing(slot),
            Started::Join(slot) => Doing::Joining { slot },
            Started::Pinned(_) | Started::Retry | Started::Full => Doing::Idle,
        };
        self.effects(bench, node);
        started
    }

    /// The access itself, with the frame pinned; the pin lasted until now.
    fn access<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        index: usize,
        frame: FrameId,
        tag: BlockTag,
        access: Access,
    ) {
        let node = self.threads[index].node;
        let (_, store) = &mut self.nodes[node.index()];
        let it = &mut store.frames[frame.0 as usize];
        assert!(
            it.pinned && it.published.is_some_and(|(holds, have)| holds == tag && have >= access),
            "{it:?}"
        );
        if access == Access::Modified {
            self.writes += 1;
            it.stamp = self.writes;
            self.latest.insert(tag, self.writes);
            if tag.home().index() >= bench.plan.nodes {
                let life = Self::life(&bench.control, node);
                self.survival.wrote(tag, self.writes, life);
            }
        } else {
            assert_eq!(it.stamp, self.latest[&tag], "{node} reads {tag:?}");
        }
        self.seen.accesses += 1;
        self.threads[index].doing = Doing::Idle;
        if store.unpin(frame) {
            self.call(bench, node, |node, at, store, out| node.on_unpinned(at, frame, store, out));
        }
    }
}
