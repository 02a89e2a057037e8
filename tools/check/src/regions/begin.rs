//! What a thread does next.

use nic::regions::{Call, Shape, refused_words};
use nic::verbs::Remote;
use nic::words::{Operands, Operation, Request, Width};
use node::Message as BlockMessage;
use wire::roce::batch::Writer;
use wire::{Discipline, GlobalAddr, NodeId, Rules};

use super::nic::{Message, Payload, What, Work};
use super::threads::{Change, Doing, Known, Use};
use super::truth::{DATA, read};
use super::world::Regions;
use crate::coherence::Blocks;
use crate::rack::Bench;

/// Regions that have ended, whose keys are still used now and then.
const STALE: usize = 6;
/// Words and objects of a region: they fill a block.
const COUNT: usize = 2;

/// What a region of this discipline is made of.
fn shape_of(discipline: Discipline) -> Shape {
    match discipline {
        Discipline::Object => Shape::objects(COUNT, DATA * 8),
        _ => Shape::Words { count: COUNT },
    }
}

impl<R: Rules> Regions<R> {
    /// A thread takes its next step; false if all of them wait.
    pub(crate) fn take_turn<M: Copy + From<Message> + From<BlockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
    ) -> bool {
        let nodes = self.nics.len();
        let first = bench.random.below(nodes);
        let asked = (0..nodes).map(|n| (first + n) % nodes).find(|node| !self.asked[*node].is_empty());
        if let Some(node) = asked
            && bench.random.per_mille(500)
        {
            self.serve_next(bench, blocks, NodeId(node as u16));
            return true;
        }
        let threads = self.threads.len();
        let first = bench.random.below(threads);
        let ready = (0..threads).map(|n| (first + n) % threads).find(|index| {
            let can = match self.threads[*index] {
                Doing::Idle => !bench.calm && !blocks.others.is_empty(),
                Doing::ToAsk { .. } | Doing::Writing { .. } | Doing::ToFree { .. } => true,
                _ => false,
            };
            can && bench.control.works(self.node_of(*index))
        });
        match (ready, asked) {
            (Some(index), _) => self.step(bench, blocks, index),
            (None, Some(node)) => self.serve_next(bench, blocks, NodeId(node as u16)),
            (None, None) => return false,
        }
        true
    }

    fn step<M: Copy + From<Message> + From<BlockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        index: usize,
    ) {
        match self.threads[index] {
            Doing::ToAsk { call, stamp, earnest } => {
                self.threads[index] = Doing::Idle;
                self.ask(bench, blocks, index, (call, stamp, earnest));
            }
            Doing::Writing { object, stamp, written } => {
                self.write_on(bench, blocks, index, (object, stamp, written));
            }
            Doing::ToFree { addr, incarnation } if bench.control.incarnation(addr.home()) != incarnation => {
                self.threads[index] = Doing::Idle;
            }
            Doing::ToFree { addr, incarnation } => {
                // Nobody uses it from now on.
                self.uses.remove(&addr);
                blocks.others.remove(&addr);
                self.threads[index] = Doing::Freeing { addr, incarnation };
                self.frees.push((index, addr));
            }
            _ => self.begin(bench, blocks, index),
        }
    }

    fn begin<M: Copy + From<Message> + From<BlockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        index: usize,
    ) {
        let drawn = bench.random.below(1000) as u32;
        if drawn < 20 {
            return self.be_wrong(bench, blocks, index);
        }
        if drawn < 60 && !self.stale.is_empty() {
            let known = self.stale[bench.random.below(self.stale.len())];
            return self.operate(bench, blocks, index, known);
        }
        let nth = bench.random.below(blocks.others.len());
        let (&addr, &discipline) = blocks.others.iter().nth(nth).expect("there is one");
        match *self.uses.entry(addr).or_insert(Use::Fresh { zeroed: true }) {
            Use::Busy(_) => {}
            Use::Fresh { .. } if bench.random.per_mille(100) => {
                self.uses.insert(addr, Use::Busy(index));
                self.give_back(bench, index, addr);
            }
            Use::Fresh { zeroed } => {
                self.uses.insert(addr, Use::Busy(index));
                // Of its home's present incarnation: the others have taken theirs with them.
                let incarnation = bench.control.incarnation(addr.home());
                let call = Call::Begin { addr, incarnation, shape: shape_of(discipline), zeroed };
                self.ask(bench, blocks, index, (call, 0, true));
            }
            Use::Unknown => self.ask(bench, blocks, index, (Call::Open { addr }, 0, true)),
            Use::Usable(known) => match bench.random.below(1000) as u32 {
                drawn if drawn < self.plan.ends => {
                    self.uses.insert(addr, Use::Busy(index));
                    if self.stale.len() == STALE {
                        self.stale.remove(0);
                    }
                    self.stale.push(known);
                    self.ask(bench, blocks, index, (Call::End { addr }, 0, true));
                }
                drawn if drawn < self.plan.ends + 50 => {
                    self.ask(bench, blocks, index, (Call::Open { addr }, 0, true));
                }
                _ => self.operate(bench, blocks, index, known),
            },
        }
    }

    /// Asks for a region where there may be none, or of another kind: the home must say so.
    fn be_wrong<M: Copy + From<Message> + From<BlockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        index: usize,
    ) {
        let home = NodeId(bench.random.below(self.nics.len()) as u16);
        let config = blocks.nodes[home.index()].0.config();
        let (memory, block) = (config.memory, config.block.bytes());
        let addr = GlobalAddr::new(home, block * bench.random.below((memory / block) as usize) as u64);
        let shape =
            shape_of([Discipline::Word, Discipline::Object][usize::from(bench.random.per_mille(500))]);
        let call = match bench.random.per_mille(500) {
            true => Call::Open { addr },
            false => Call::Begin { addr, incarnation: bench.control.incarnation(home), shape, zeroed: false },
        };
        self.ask(bench, blocks, index, (call, 0, false));
    }

    /// The thread, which is busy with this allocation, gives it back next.
    pub(super) fn give_back<M: Copy>(&mut self, bench: &Bench<M>, index: usize, addr: GlobalAddr) {
        self.threads[index] = Doing::ToFree { addr, incarnation: bench.control.incarnation(addr.home()) };
    }

    /// Does something with a region that the thread believes to be there.
    fn operate<M: Copy + From<Message> + From<BlockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        index: usize,
        known: Known,
    ) {
        let (me, home) = (self.node_of(index), known.addr.home());
        let is_near = me == home;
        let is_there = match is_near {
            // Loads and stores find out by themselves.
            true => self.truth.region(known.number).incarnations,
            false => self.nics[me.index()].connections.reaches(home, known.incarnation),
        };
        if !is_there {
            return;
        }
        let at = bench.random.below(COUNT);
        if matches!(known.shape, Shape::Words { .. }) {
            return self.change(bench, blocks, index, (known, at));
        }
        let object = (known.number, at);
        let since = self.truth.region(known.number).objects[at].version;
        match (bench.random.per_mille(400), is_near) {
            (true, true) => {
                if since.is_multiple_of(2) {
                    let stamp = self.truth.next_stamp();
                    self.touch(me);
                    self.truth.turns(&mut blocks.nodes[me.index()].1, object, None);
                    self.threads[index] = Doing::Writing { object, stamp, written: 0 };
                }
            }
            (true, false) => {
                let stamp = self.truth.next_stamp();
                let expected = bench.random.per_mille(300).then_some(since & !1);
                let call = Call::Write {
                    addr: known.addr,
                    key: known.key,
                    object: at as u64,
                    at: 0,
                    expected,
                    len: DATA * 8,
                };
                self.ask(bench, blocks, index, (call, stamp, true));
            }
            (false, true) => {
                let store = &blocks.nodes[me.index()].1;
                let region = self.truth.region(known.number);
                let version = read(store, region.addr_of(at, 0));
                let data: Vec<u64> = (1..=DATA).map(|word| read(store, region.addr_of(at, word))).collect();
                if version.is_multiple_of(2) {
                    self.truth.is_whole(object, since, version, &data);
                    self.seen.reads += 1;
                }
            }
            (false, false) => {
                let address = known.shape.base(known.addr) + (at * known.shape.stride()) as u64 * 8;
                let remote = Remote { key: known.key, address };
                let what = What::ReadObject { remote, len: DATA as u32 * 8 };
                let work = Work {
                    peer: home,
                    what,
                    thread: Some(index),
                    source: Payload::default(),
                    landing: Payload::of(&[0; DATA]),
                    chain: None,
                };
                self.threads[index] = Doing::Reading { object, since };
                self.post(bench, me, work);
            }
        }
    }

    /// Changes one word, or two of the same home.
    fn change<M: Copy + From<Message> + From<BlockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        index: usize,
        (known, at): (Known, usize),
    ) {
        let (me, home) = (self.node_of(index), known.addr.home());
        let mut all = vec![(known, at)];
        if bench.random.per_mille(400) {
            let is_one = |other: &Known| {
                (other.addr.home(), other.incarnation) == (home, known.incarnation)
                    && matches!(other.shape, Shape::Words { .. })
            };
            let others: Vec<Known> = self
                .uses
                .values()
                .filter_map(|it| if let Use::Usable(other) = it { Some(*other) } else { None })
                .filter(is_one)
                .collect();
            if !others.is_empty() {
                all.push((others[bench.random.below(others.len())], bench.random.below(COUNT)));
            }
        }
        let mut changes = [None; 2];
        let mut writer = Writer::new(256);
        for (addr, (known, at)) in changes.iter_mut().zip(all) {
            let word = (known.number, at);
            let since = self.truth.region(known.number).words[at].value;
            let more = 1 + bench.random.below(7) as u64;
            let (operation, operands) = match bench.random.below(100) {
                0..60 => (Operation::Add, Operands { operand: more, expected: 0 }),
                60..85 => (Operation::CompareSwap, Operands { operand: since + more, expected: since }),
                _ => (Operation::Load, Operands::default()),
            };
            let address = known.shape.base(known.addr) + at as u64 * 8;
            let request = Request { ticket: 0, address, width: Width::Double, operation, operands };
            writer.push(known.key, &request.to_wire(true)).expect("two of them have room");
            self.truth.asked(word.0, word.1);
            *addr = Some(Change { word, since, request });
        }
        if me == home {
            self.touch(me);
            let store = &mut blocks.nodes[me.index()].1;
            for Change { word, since, request } in changes.into_iter().flatten() {
                if self.truth.region(word.0).incarnations {
                    let old = self.truth.execute(store, word, &request);
                    self.truth.done(word, since, old, does_change(&request, old));
                    self.seen.changes += 1;
                } else {
                    self.truth.refused(word);
                }
            }
            return;
        }
        let words: Vec<u64> = writer
            .bytes()
            .chunks(8)
            .map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            })
            .collect();
        let count = changes.iter().flatten().count();
        let answer = (refused_words(count) + count) * 8;
        let work = Work {
            peer: home,
            what: What::Atomics { answer: answer as u32 },
            thread: Some(index),
            source: Payload::of_bytes(&words, writer.bytes().len()),
            landing: Payload::of_bytes(&vec![0; answer / 8], answer),
            chain: None,
        };
        self.threads[index] = Doing::Changing { changes };
        self.post(bench, me, work);
    }

    /// A thread is inside an object of its own node.
    fn write_on<M: Copy>(
        &mut self,
        bench: &mut Bench<M>,
        blocks: &mut Blocks<R>,
        index: usize,
        (object, stamp, written): ((u64, usize), u64, usize),
    ) {
        let me = self.node_of(index);
        self.touch(me);
        let store = &mut blocks.nodes[me.index()].1;
        if written < DATA {
            let addr = self.truth.region(object.0).addr_of(object.1, 1 + written);
            store.home.insert(addr, stamp);
            self.threads[index] = Doing::Writing { object, stamp, written: written + 1 };
        } else {
            self.truth.turns(store, object, Some(stamp));
            self.seen.writes += 1;
            self.threads[index] = Doing::Idle;
        }
        let addr = self.truth.region(object.0).addr;
        bench.note(Some(addr.bits()), || format!("thread {index} writes {object:?}, {written} words before"));
    }
}

/// True if the word becomes another one that was this.
pub(super) fn does_change(request: &Request, old: u64) -> bool {
    request.operation.apply(request.width, old, request.operands) != old
}
