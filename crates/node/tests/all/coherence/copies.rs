//! A node that keeps copies: batches of other nodes, and what the home that serves the memory has done.

use node::allocator::ChunkSize;
use node::{Access, DataRef, Drop, Kept, Message, Placement, Started, View};
use wire::{
    BatchFate, BlockSize, BlockTag, Copyset, Discipline, Endpoint, GlobalAddr, Incarnation, Nanos, NodeId,
    Packet, PacketKind, Refusal, Seq, SlotId, Status, SwitchEpoch,
};

use crate::coherence::packets::{BLOCK, EPOCH, INCARNATION, ME, NODES, agent, call, mine, nodes, requester};
use crate::coherence::rig::{Effects, Rig};

/// The memory that node 0 serves, and this one keeps, too.
const KEPT: NodeId = NodeId(NODES as u16);
/// One that is on other nodes.
const ELSEWHERE: NodeId = NodeId(NODES as u16 + 2);

fn rig() -> Rig {
    Rig::with(|config| config.copies = 2)
}

fn block(memory: NodeId, n: u64) -> BlockTag {
    BLOCK.tag(GlobalAddr::new(memory, n * BLOCK.bytes()))
}

/// Memories that these have whole, while these are up.
fn kept_by(by: [[u16; 2]; NODES], up: Copyset) -> Vec<Kept> {
    let who = Placement { nodes: NODES, copies: 2, up, draining: Copyset::EMPTY };
    let kept = by.map(|by| Kept { by: nodes(by), ..Kept::default() }).into_iter().enumerate();
    kept.map(|(i, mut kept)| {
        kept.place(i, &who);
        kept
    })
    .collect()
}

/// From node 3, about its batch.
fn about(kind: PacketKind, tag: BlockTag, seq: u64) -> Packet {
    Packet {
        from: agent(3),
        to: Endpoint::HomeAgent(ME),
        epoch: EPOCH,
        incarnation: INCARNATION,
        copyset: nodes([0, 1]),
        ..Packet::request(kind, tag, requester(3, SlotId::MIGRATION.0), Seq(seq))
    }
}

/// The `at`th block of so many.
fn prepare(tag: BlockTag, seq: u64, (at, of): (u64, u64), stamp: u64) -> Message {
    let packet = Packet { arg: at << 32 | of, ..about(PacketKind::Prepare, tag, seq) };
    Message { packet, data: Some(DataRef(stamp)) }
}

/// What another node answers that has the block, or commits it.
fn taken(packet: &Packet) -> Packet {
    let (from, to) = (packet.to, packet.from);
    match packet.kind {
        PacketKind::Prepare => {
            Packet { arg: (packet.arg >> 32) + 1, ..packet.reply(PacketKind::Prepared, from, to) }
        }
        _ => packet.reply(PacketKind::Committed, from, to),
    }
}

#[test]
fn a_batch_goes_into_memory_when_it_is_committed_and_not_before() {
    let mut rig = rig();
    let [first, second] = [block(KEPT, 1), block(KEPT, 2)];
    assert!(rig.packet(prepare(first, 1, (0, 2), 7)).is_empty(), "it answers when it has all");
    rig.drops(Drop::Nonsense, about(PacketKind::Commit, first, 1));
    // What comes twice: the answer says what is here.
    let answer = rig.packet(prepare(first, 1, (0, 2), 8)).only().packet;
    assert_eq!((answer.kind, answer.to, answer.arg), (PacketKind::Prepared, agent(3), 1));
    assert_eq!(rig.packet(prepare(second, 1, (1, 2), 9)).only().packet.arg, 2);
    assert_eq!((rig.store.home_stamp(first), rig.store.home_stamp(second)), (0, 0));
    let done = rig.packet(about(PacketKind::Commit, first, 1)).only().packet;
    assert_eq!((done.kind, done.to), (PacketKind::Committed, agent(3)));
    assert_eq!((rig.store.home_stamp(first), rig.store.home_stamp(second)), (7, 9));
    // Late copies: the commit is answered again, and the blocks are of a batch that is over.
    assert_eq!(rig.packet(about(PacketKind::Commit, first, 1)).only().packet.kind, PacketKind::Committed);
    rig.drops(Drop::Stale, prepare(first, 1, (0, 2), 7));
    assert_eq!(rig.store.retained, 0);
}

#[test]
fn answers_are_few_and_what_comes_too_early_is_kept() {
    let mut rig = rig();
    let answered = |rig: &mut Rig, at: u64| {
        let out = rig.packet(prepare(block(KEPT, 1 + at), 1, (at, 40), at));
        if out.is_empty() { None } else { Some(out.only().packet.arg) }
    };
    assert_eq!((answered(&mut rig, 1), answered(&mut rig, 0), answered(&mut rig, 1)), (None, None, Some(2)));
    // No honest node sends so much ahead of what it was told.
    rig.drops(Drop::Nonsense, prepare(block(KEPT, 35), 1, (34, 40), 34));
    let answers: Vec<_> = (2..40).filter_map(|at| answered(&mut rig, at)).collect();
    assert_eq!(answers, [16, 32, 40]);
    assert_eq!(rig.store.retained, 40);
}

#[test]
fn a_committed_batch_is_known_however_much_later_its_node_comes_back() {
    let mut rig = rig();
    let _ = rig.packet(prepare(block(KEPT, 1), 1, (0, 1), 7));
    let _ = rig.packet(about(PacketKind::Commit, block(KEPT, 1), 1));
    // Lives of nodes are numbered by the epochs in which they begin.
    let incarnations = [2, 2, 2, 50].map(|life| Some(Incarnation(life))).to_vec();
    let memories = kept_by([[0, 1], [1, 2], [2, 0], [0, 0]], nodes([0, 1, 2, 3]));
    let epoch = SwitchEpoch(50);
    let _ = rig.input_epoch(&View { epoch, incarnations, shadow: NodeId(0), memories });
    let asked = |seq| Packet {
        from: Endpoint::HomeAgent(NodeId(0)),
        to: Endpoint::HomeAgent(ME),
        epoch,
        incarnation: INCARNATION,
        arg: 3 << 48 | 2,
        ..Packet::request(PacketKind::Inquire, block(KEPT, 0), requester(0, SlotId::MIGRATION.0), Seq(seq))
    };
    let mut fate = |seq| rig.packet(asked(seq)).only().packet.arg >> 32 & 0xff;
    assert_eq!((fate(1), fate(2)), (BatchFate::Committed as u64, BatchFate::Discarded as u64));
}

#[test]
fn what_no_honest_node_prepares_is_dropped() {
    for (tag, place) in [
        (mine(1), (0, 1)),
        (block(KEPT, 64), (0, 1)),
        (block(KEPT, 1).lock_entry(), (0, 1)),
        (BlockTag::from_bits(block(KEPT, 1).bits() + 8), (0, 1)),
        (block(KEPT, 1), (1, 1)),
    ] {
        rig().drops(Drop::Nonsense, prepare(tag, 1, place, 7));
    }
    rig().drops(Drop::Nonsense, about(PacketKind::Prepare, block(KEPT, 1), 1));
    // Two batches of one node at a time, or one of two lengths.
    let mut rig = rig();
    let _ = rig.packet(prepare(block(KEPT, 1), 1, (0, 2), 7));
    rig.drops(Drop::Nonsense, prepare(block(KEPT, 2), 2, (0, 2), 7));
    rig.drops(Drop::Nonsense, prepare(block(KEPT, 2), 1, (1, 3), 7));
}

#[test]
fn a_block_of_a_memory_that_is_kept_elsewhere_is_not_taken() {
    let mut rig = rig();
    for (at, memory) in [(0, KEPT), (1, ELSEWHERE)] {
        let _ = rig.packet(prepare(block(memory, 1), 1, (at, 2), 7));
    }
    let _ = rig.packet(about(PacketKind::Commit, block(KEPT, 1), 1));
    assert_eq!((rig.store.home_stamp(block(KEPT, 1)), rig.store.home_stamp(block(ELSEWHERE, 1))), (7, 0));
}

#[test]
fn racks_without_copies_expect_nothing_about_them() {
    for kind in [PacketKind::Prepare, PacketKind::Commit, PacketKind::Inquire, PacketKind::Replicate] {
        Rig::new().drops(Drop::Nonsense, about(kind, mine(1), 1));
    }
}

#[test]
fn what_the_home_has_done_is_done_here_once() {
    let mut rig = rig();
    let replicate = |kind, first, seq, bytes, discipline| {
        let of_home = call(kind, block(KEPT, first), seq, bytes, discipline);
        let to = Endpoint::HomeAgent(ME);
        Packet { event: kind, ..of_home.reply(PacketKind::Replicate, Endpoint::HomeAgent(KEPT), to) }
    };
    let coherent = Some(Discipline::Coherent);
    let bytes = 2 * BLOCK.bytes();
    rig.store.home.insert(block(KEPT, 1).addr(), 5);
    // No chunk is granted yet.
    let mark = replicate(PacketKind::Mark, 1, 2, bytes, coherent);
    let _ = rig.packet(mark);
    assert_eq!(rig.node.counters().dropped[Drop::Nonsense as usize], 1);
    assert_eq!(rig.store.home_stamp(block(KEPT, 1)), 5, "it is nobody's to be zeroed");
    let grant = replicate(PacketKind::ChunkRequest, 1, 1, 3 * BLOCK.bytes(), coherent);
    let answer = rig.packet(grant).only().packet;
    assert_eq!((answer.kind, answer.to), (PacketKind::Replicated, Endpoint::HomeAgent(NodeId(0))));
    for _ in 0..2 {
        assert_eq!(rig.packet(mark).only().packet.kind, PacketKind::Replicated);
        assert_eq!(rig.node.discipline_of(block(KEPT, 2)), coherent);
        assert_eq!(rig.store.home_stamp(block(KEPT, 1)), 0);
    }
    let outside = replicate(PacketKind::ChunkRequest, 60, 3, 64 * BLOCK.bytes(), coherent);
    let _ = rig.packet(outside);
    assert_eq!(rig.node.counters().dropped[Drop::Nonsense as usize], 2);
}

#[test]
fn a_call_whose_home_died_while_it_waited_does_not_begin_another_one_too_early() {
    let mut rig = rig();
    let mine_with_copies = block(KEPT, 1);
    rig.cache(mine_with_copies, Access::Modified, 7);
    // Waits for the first batch; then its home is gone, and its slot free.
    let batch = rig.free(GlobalAddr::new(NodeId(0), 512)).sent();
    assert!(batch.iter().all(|message| message.packet.kind == PacketKind::Prepare));
    let incarnations = [None, Some(2), Some(2), Some(2)].map(|life| life.map(Incarnation)).to_vec();
    let memories = kept_by([[1, 1], [1, 2], [2, 2], [3, 3]], nodes([1, 2, 3]));
    let view = View { epoch: SwitchEpoch(9), incarnations, shadow: NodeId(1), memories };
    let first = rig.input_epoch(&view).sent();
    // The block is written again: the next call in that slot waits for the second batch.
    let (started, _) = rig.access(mine_with_copies, Access::Modified);
    let Started::Pinned(frame) = started else { panic!("it is this node's own: {started:?}") };
    let _ = rig.unpin(frame);
    assert!(rig.free(GlobalAddr::new(NodeId(2), 512)).is_empty());
    // The first batch is over: the second one begins, and only after that the call is made. Node 2 is getting the memory.
    let (mut order, mut todo) = (Vec::new(), first);
    let is_of_a_batch = |kind| (PacketKind::Prepare..=PacketKind::Committed).contains(&kind);
    while let Some(at) = todo.iter().position(|it| is_of_a_batch(it.packet.kind)) {
        let message = todo.remove(at);
        order.push(message.packet.seq);
        let message = match message.packet.to.node() {
            Some(ME) => message,
            _ => Message { packet: taken(&message.packet), data: None },
        };
        todo.extend(rig.packet(message).sent());
        let called = todo.iter().any(|it| it.packet.kind == PacketKind::Free);
        assert!(!called || order.contains(&Seq(2)), "it was made after {order:?}");
    }
    assert!(todo.iter().any(|it| it.packet.kind == PacketKind::Free), "in the end it is made: {todo:?}");
}

/// An epoch in which this node is to have the memory that node 0 serves.
fn filling(rig: &mut Rig) -> Packet {
    let memories = kept_by([[0, 0], [1, 2], [2, 3], [3, 0]], nodes([0, 1, 2, 3]));
    let incarnations = vec![Some(INCARNATION); NODES];
    let view = View { epoch: SwitchEpoch(9), incarnations, shadow: NodeId(0), memories };
    let sent = rig.input_epoch(&view).sent();
    let asks: Vec<_> = sent.iter().filter(|it| it.packet.kind == PacketKind::Refill).collect();
    assert_eq!(asks.len(), 1, "{sent:?}");
    asks[0].packet
}

/// An answer: what is at this place, a chunk or a block of node 3.
fn refilled(ask: &Packet, place: u64, tag: BlockTag, stamp: Option<u64>) -> Message {
    let packet = ask.reply(PacketKind::Refilled, Endpoint::HomeAgent(NodeId(0)), Endpoint::HomeAgent(ME));
    let (copyset, discipline) = (nodes([3]), Some(Discipline::Coherent));
    let provider = stamp.is_none();
    let packet = Packet { tag, seq: Seq(place), copyset, discipline, provider, arg: 0, ..packet };
    Message { packet, data: stamp.map(DataRef) }
}

#[test]
fn a_memory_is_copied_and_what_was_committed_meanwhile_is_newer() {
    let mut rig = rig();
    let [first, second, third] = [1, 2, 3].map(|n| block(KEPT, n));
    let ask = filling(&mut rig);
    assert_eq!((ask.to, ask.arg), (Endpoint::HomeAgent(NodeId(0)), 0));
    assert!(rig.packet(refilled(&ask, 0, first, None)).is_empty(), "more is to come");
    let of_epoch = |packet: Packet| Packet { epoch: SwitchEpoch(9), ..packet };
    let Message { packet, data } = prepare(second, 1, (0, 1), 20);
    let _ = rig.packet(Message { packet: of_epoch(packet), data });
    let _ = rig.packet(of_epoch(about(PacketKind::Commit, second, 1)));
    assert!(rig.packet(refilled(&ask, 1, first, Some(10))).is_empty());
    rig.drops(Drop::Stale, refilled(&ask, 1, first, Some(11)));
    rig.drops(Drop::Stale, refilled(&ask, 4, third, Some(3)));
    assert!(rig.packet(refilled(&ask, 3, second, Some(2))).is_empty());
    assert_eq!((rig.store.home_stamp(first), rig.store.home_stamp(second)), (10, 20));
    assert!(!rig.node.whole_memories().1.contains(NodeId(0)), "not yet");
    let end = Packet { discipline: None, ..refilled(&ask, 4, third, None).packet };
    assert!(rig.packet(end).is_empty());
    assert_eq!(rig.node.whole_memories(), (SwitchEpoch(9), nodes([0, 1])));
    assert_eq!(rig.node.discipline_of(first), Some(Discipline::Coherent));
    assert_eq!(rig.node.discipline_of(third), None);
}

#[test]
fn a_node_asks_on_when_all_answers_have_come() {
    let mut rig = rig();
    let ask = filling(&mut rig);
    // Chunks have four blocks, and the first block of a memory is in none.
    let second = 1 << 32;
    let places = [(0, 1, true), (1, 1, false), (3, 2, false), (4, 3, false), (5, 4, true)];
    let more = [(second | 1, 4, false), (second | 2, 5, false)];
    for (place, n, is_chunk) in places.into_iter().chain(more) {
        assert!(rig.packet(refilled(&ask, place, block(KEPT, n), (!is_chunk).then_some(n))).is_empty());
    }
    let next = rig.packet(refilled(&ask, second | 3, block(KEPT, 6), Some(6))).only().packet;
    assert_eq!((next.kind, next.arg), (PacketKind::Refill, second | 4));
}

#[test]
fn a_memory_is_copied_no_faster_than_it_may_be() {
    const LARGE: BlockSize = BlockSize::new(64 << 10).unwrap();
    let large = |n: u64| LARGE.tag(GlobalAddr::new(KEPT, n * LARGE.bytes()));
    let asks = |out: &Effects| out.kinds().contains(&PacketKind::Refill);
    // 448 KiB have come; 128 KiB may come at once again when 320 KiB have had their time.
    for (rate, too_early, then) in [(20 << 20, 15, 1), (5 << 20, 62, 1), (LARGE.bytes(), 4999, 1)] {
        let mut rig = Rig::with(|config| {
            (config.copies, config.block, config.memory) = (2, LARGE, 64 * LARGE.bytes());
            config.chunk = ChunkSize::new(64 * LARGE.bytes()).unwrap();
            config.refill = rate;
        });
        let ask = filling(&mut rig);
        let _ = rig.packet(refilled(&ask, 0, large(1), None));
        for n in 1..=7 {
            let place = if n == 1 { 1 } else { n + 1 };
            assert!(rig.packet(refilled(&ask, place, large(n), Some(n))).is_empty(), "block {n}: it waits");
        }
        assert!(!asks(&rig.wait(Nanos::from_millis(too_early))), "{rate} bytes a second");
        assert!(asks(&rig.wait(Nanos::from_millis(then))), "{rate} bytes a second");
    }
}

#[test]
fn lies_about_a_memory_that_is_copied_are_dropped_and_it_goes_on() {
    let mut rig = rig();
    let (first, ask) = (block(KEPT, 1), filling(&mut rig));
    let chunk = refilled(&ask, 0, first, None);
    let but = |change: fn(&mut Packet)| {
        let mut lie = chunk;
        change(&mut lie.packet);
        lie
    };
    rig.drops(Drop::Stale, but(|it| it.from = Endpoint::HomeAgent(NodeId(3))));
    rig.drops(Drop::Stale, but(|it| it.seq = Seq(7)));
    for lie in [
        refilled(&ask, 0, first, Some(1)),
        refilled(&ask, 0, block(KEPT, 64), None),
        but(|it| it.copyset = nodes([])),
        but(|it| it.arg = u64::MAX),
        Message { data: Some(DataRef(3)), ..chunk },
    ] {
        rig.drops(Drop::Nonsense, lie);
    }
    // Nothing of that counts: it goes on where it was.
    assert!(rig.packet(chunk).is_empty());
    rig.drops(Drop::Nonsense, refilled(&ask, 1, first, None));
    assert!(rig.packet(refilled(&ask, 1, first, Some(5))).is_empty());
    assert_eq!((rig.store.home_stamp(first), rig.store.retained), (5, 0));
}

#[test]
fn a_home_that_was_copied_refuses_frees_of_before_in_what_was_free_then() {
    let mut rig = rig();
    let (ask, chunk) = (filling(&mut rig), block(KEPT, 4));
    let end = Packet { discipline: None, ..refilled(&ask, 0, block(KEPT, 1), None).packet };
    assert!(rig.packet(end).is_empty());
    let of = |kind, epoch, seq| Packet {
        from: Endpoint::HomeAgent(NodeId(0)),
        to: Endpoint::HomeAgent(ME),
        epoch: SwitchEpoch(epoch),
        incarnation: INCARNATION,
        ..Packet::request(kind, chunk, requester(ME.0, 9), Seq(seq))
    };
    // This node's allocator gets a chunk of it, and then all others die.
    let (event, arg) = (PacketKind::ChunkRequest, 4 * BLOCK.bytes());
    let granted = of(PacketKind::Replicate, 9, 1);
    let _ = rig.packet(Packet { event, arg, discipline: Some(Discipline::Coherent), ..granted });
    let memories = kept_by([[1, 1]; 4], nodes([1]));
    let incarnations = vec![None, Some(INCARNATION), None, None];
    let view = View { epoch: SwitchEpoch(10), incarnations, shadow: ME, memories };
    let mut own = rig.input_epoch(&view).sent();
    while let Some(message) = own.pop() {
        own.extend(rig.packet(message).sent());
    }
    let mut free = |called_in, seq| {
        let (from, to) = (Endpoint::Allocator(ME), Endpoint::HomeAgent(KEPT));
        let packet = Packet { from, to, arg: called_in, ..of(PacketKind::Free, 10, seq) };
        let answer = rig.packet(packet).only().packet;
        (answer.kind, answer.status)
    };
    let refused = Status::Refused(Refusal::NodeDown);
    assert_eq!(free(8, 2), (PacketKind::FreeReply, refused), "somebody else had it then");
    assert_eq!(free(9, 3).0, PacketKind::Free, "it is for its allocator");
}
