//! What the switch costs on this machine: nanoseconds per pass, with hot and with cold arrays.
//!
//! `cargo run --release -p rackmem-switch --example pass_cost`. With an argument it runs so many events and
//! prints nothing else, for counting instructions: `valgrind --tool=callgrind`, or the difference of two runs.

use std::hint::black_box;
use std::time::Instant;

use switch::coherence::{Effect, Resubmit, Switch, SwitchConfig};
use wire::{BlockTag, Copyset, GlobalStatus, NodeId, Packet, PacketKind, RequesterId, Seq, SlotId, Status};

const NODES: usize = 8;
const BLOCK: u64 = 4096;

fn tag(block: u64) -> BlockTag {
    let home = block % NODES as u64;
    BlockTag::from_bits((home << 48) | ((block / NODES as u64 + 1) * BLOCK))
}

/// A driver that feeds resubmissions back at once.
struct Rack {
    switch: Switch,
    effects: Vec<Effect>,
    again: Vec<Resubmit>,
    next: Vec<Seq>,
}

impl Rack {
    fn new() -> Self {
        let switch =
            Switch::new(&SwitchConfig::for_nodes(NODES)).expect("the paper's directory fits the chip");
        let next = vec![Seq(1); NODES * SlotId::PER_NODE];
        Self { switch, effects: Vec::with_capacity(64), again: Vec::with_capacity(1), next }
    }

    fn send(&mut self, packet: &Packet) {
        self.switch.on_packet(packet, &mut self.effects);
        while let Some(again) = self.take() {
            self.switch.on_resubmit(again, &mut self.effects);
        }
        black_box(self.effects.len());
        self.effects.clear();
    }

    fn take(&mut self) -> Option<Resubmit> {
        match self.effects.last() {
            Some(Effect::Resubmit(again)) => {
                self.again.push(*again);
                self.effects.pop();
                self.again.pop()
            }
            _ => None,
        }
    }

    fn number(&mut self, requester: RequesterId) -> Seq {
        let next = &mut self.next[requester.index()];
        let seq = *next;
        *next = seq.next();
        seq
    }

    /// Fills the directory with blocks shared by node 1.
    fn fill(&mut self, blocks: u64) {
        for block in 0..blocks {
            let tag = tag(block);
            let home = RequesterId { node: tag.home(), slot: SlotId::MIGRATION };
            let seq = self.number(home);
            let add = Packet {
                global_status: GlobalStatus::Shared,
                copyset: Copyset::only(NodeId(1)),
                ..Packet::request(PacketKind::AddToSwitch, tag, home, seq)
            };
            self.send(&add);
            self.send(&unlock(&add, GlobalStatus::Shared, Copyset::only(NodeId(1))));
        }
    }

    /// One READ-MISS and its UNLOCK, which leaves the block as it was: the timings of both, in nanoseconds.
    fn event(&mut self, block: u64, slot: u16) {
        let requester = RequesterId { node: NodeId(0), slot: SlotId(slot) };
        let seq = self.number(requester);
        let request = Packet::request(PacketKind::ReadMiss, tag(block), requester, seq);
        self.send(&request);
        self.send(&unlock(&request, GlobalStatus::Shared, Copyset::only(NodeId(1))));
    }
}

fn unlock(request: &Packet, global_status: GlobalStatus, copyset: Copyset) -> Packet {
    Packet {
        kind: PacketKind::Unlock,
        status: Status::Granted,
        in_switch: true,
        global_status,
        copyset,
        ..*request
    }
}

/// Nanoseconds per call in the fastest of many batches: what it takes when nothing else runs.
fn fastest(mut call: impl FnMut(u64)) -> f64 {
    const BATCH: u64 = 250;
    let batch = |batch: u64| {
        let start = Instant::now();
        for i in batch * BATCH..(batch + 1) * BATCH {
            call(i);
        }
        start.elapsed().as_secs_f64() * 1e9 / BATCH as f64
    };
    (0..4000).map(batch).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut rack = Rack::new();
    if let Some(events) = std::env::args().nth(1) {
        let events: u64 = events.parse().expect("the argument is a number of events");
        rack.fill(1000);
        for i in 0..events {
            rack.event(i % 1000, u16::try_from(i % 32).expect("below 32"));
        }
        return;
    }
    let blocks = 300_000;
    let start = Instant::now();
    rack.fill(blocks);
    let filled = start.elapsed().as_secs_f64() * 1e9 / blocks as f64;
    println!("{} of {} entries in use", rack.switch.occupancy(), rack.switch.capacity());
    println!("ADD-TO-SWITCH and its UNLOCK, four passes (mean) {filled:6.1} ns");
    for (name, working_set) in
        [("one block", 1u64), ("hot: 1000 blocks", 1000), ("cold: 300000 blocks", blocks)]
    {
        println!("{name}");
        let block = |i: u64| i.wrapping_mul(7919) % working_set;
        let event = fastest(|i| rack.event(block(i), u16::try_from(i % 32).expect("below 32")));
        // Requests alone, all of one event: the switch forgets none of the locks that they take.
        let requester = RequesterId { node: NodeId(0), slot: SlotId(40) };
        let seq = rack.number(requester);
        let probe = Packet::request(PacketKind::EvictModified, tag(0), requester, seq);
        let request = fastest(|i| rack.send(black_box(&Packet { tag: tag(block(i)), ..probe })));
        println!("  request, one pass                             {request:7.1} ns");
        println!("  READ-MISS and its UNLOCK, three passes        {event:7.1} ns");
    }
}
