//! Handlers given the packets of a run that is rare: for rules that random runs and small scopes do not touch.

use check::coherence::PlainStore;
use node::allocator::ChunkSize;
use node::coherence::canonical::NOW;
use node::{
    Access, DataRef, Effect, Kept, Message, Moment, Node, NodeConfig, Retransmission, Started, Store, View,
};
use wire::{
    BlockSize, BlockTag, Copyset, Discipline, Endpoint, GlobalAddr, GlobalStatus, Incarnation, Nanos, NodeId,
    Packet, PacketKind, RequesterId, Rules, Seq, SlotId, SwitchEpoch,
};

const BLOCK: BlockSize = BlockSize::MIN;
const ME: NodeId = NodeId(1);
const AT: Moment = Moment { now: NOW, random: 1 };

/// A node with a cache of two frames, and the memory of a home.
struct Bench<R: Rules> {
    node: Node<R>,
    store: PlainStore,
}

fn block(home: u16, number: u64) -> BlockTag {
    BLOCK.tag(GlobalAddr::new(NodeId(home), number * BLOCK.bytes()))
}

fn sent(effects: &[Effect]) -> Vec<Packet> {
    let sent = effects.iter().filter_map(|effect| match effect {
        Effect::Send(message) => Some(message.packet),
        Effect::Completed { .. } => None,
    });
    sent.collect()
}

impl<R: Rules> Bench<R> {
    fn new(rules: R) -> Self {
        Self::with_copies(rules, 1)
    }

    /// In a rack with so many copies.
    fn with_copies(rules: R, copies: usize) -> Self {
        let chunk = ChunkSize::new(4 * BLOCK.bytes()).expect("a power of two");
        let config = NodeConfig { block: BLOCK, chunk, copies, ..NodeConfig::new(ME, 3, 64 * BLOCK.bytes()) };
        Self { node: Node::with_rules(rules, config), store: PlainStore::new(BLOCK, 1) }
    }

    /// A packet arrives; what the node sends then.
    fn packet(&mut self, packet: Packet, data: Option<u64>) -> Vec<Packet> {
        let message = Message { packet, data: data.map(DataRef) };
        let mut out = Vec::new();
        self.node.on_packet(AT, &message, &mut self.store, &mut out);
        sent(&out)
    }

    /// The switch begins another incarnation; what the node sends then.
    fn new_epoch(&mut self, epoch: u32) -> Vec<Packet> {
        self.new_epoch_without(epoch, Copyset::EMPTY)
    }

    /// The same, in which these nodes are down.
    fn new_epoch_without(&mut self, epoch: u32, down: Copyset) -> Vec<Packet> {
        let incarnations =
            (0..3).map(|node| (!down.contains(NodeId(node))).then_some(Incarnation(0))).collect();
        let view = View { epoch: SwitchEpoch(epoch), incarnations, shadow: NodeId(0), memories: Vec::new() };
        let mut out = Vec::new();
        self.node.on_new_epoch(AT, &view, None, &mut self.store, &mut out);
        sent(&out)
    }

    /// A thread needs a block; the request that this sends.
    fn miss(&mut self, tag: BlockTag, access: Access) -> Packet {
        let mut out = Vec::new();
        self.node.on_access(AT, tag, access, &mut self.store, &mut out);
        match out.as_slice() {
            [Effect::Send(message)] => message.packet,
            other => panic!("a miss sends one request, not {other:?}"),
        }
    }

    /// Brings a block into the cache; the event is over.
    fn cache(&mut self, tag: BlockTag, access: Access, stamp: u64) {
        let request = self.miss(tag, access);
        let from = Endpoint::HomeAgent(tag.home());
        let answer = Packet { in_switch: true, ..request.reply(PacketKind::Ack, from, request.from) };
        self.packet(answer, Some(stamp));
        self.packet(request.reply(PacketKind::UnlockAck, Endpoint::Switch, request.from), None);
        let (frame, _) = self.store.lookup(tag).expect("it has come");
        self.store.unpin(frame);
    }
}

/// An eviction is granted; meanwhile its block was lost and came back into the other frame.
pub(crate) fn the_victim_has_moved<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::new(rules);
    let (victim, other, newcomer) = (block(2, 1), block(2, 2), block(2, 4));
    bench.cache(victim, Access::Modified, 7);
    bench.cache(other, Access::Shared, 8);
    let request = bench.miss(block(2, 3), Access::Shared);
    assert_eq!((request.kind, request.tag), (PacketKind::EvictModified, victim));
    for tag in [victim, other] {
        let (frame, _) = bench.store.lookup(tag).expect("it is cached");
        bench.store.withdraw(frame).expect("nobody has it pinned");
        bench.store.release(frame);
    }
    bench.cache(newcomer, Access::Shared, 9);
    bench.cache(victim, Access::Modified, 10);
    let found = Packet {
        in_switch: true,
        global_status: GlobalStatus::Modified,
        copyset: Copyset::only(ME),
        ..request.reply(PacketKind::Ack, Endpoint::Switch, request.from)
    };
    bench.packet(found, None);
    match (bench.store.lookup(victim), bench.store.lookup(newcomer)) {
        (None, Some(_)) => Ok(()),
        found => Err(format!("the victim is still cached, or the block in its old frame is not: {found:?}")),
    }
}

/// A write-back comes to a home that was told that its event is closed.
pub(crate) fn a_write_back_comes_after_its_close<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::new(rules);
    let tag = block(ME.0, 1);
    let requester = RequesterId { node: NodeId(0), slot: SlotId(0) };
    let to = Endpoint::HomeAgent(ME);
    let request = Packet::request(PacketKind::ReadMiss, tag, requester, Seq(1));
    bench.packet(request.reply(PacketKind::Close, request.from, to), None);
    // Later events have brought this home.
    bench.store.write_home(tag, DataRef(9));
    bench.packet(request.reply(PacketKind::WriteBack, Endpoint::CacheAgent(NodeId(2)), to), Some(5));
    match bench.store.home_stamp(tag) {
        9 => Ok(()),
        stamp => Err(format!("old contents have come home: write {stamp} after write 9")),
    }
}

/// A node was restarted, and a packet of its former incarnation comes late.
pub(crate) fn a_packet_of_a_former_incarnation_comes<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::new(rules);
    let tag = block(ME.0, 1);
    let requester = RequesterId { node: NodeId(0), slot: SlotId(0) };
    let to = Endpoint::HomeAgent(ME);
    let request = Packet::request(PacketKind::ReadMiss, tag, requester, Seq(1));
    let write_back =
        Packet { seq: Seq(5), ..request.reply(PacketKind::WriteBack, Endpoint::CacheAgent(NodeId(2)), to) };
    bench.packet(
        Packet { incarnation: Incarnation(1), ..request.reply(PacketKind::Close, request.from, to) },
        None,
    );
    bench.store.write_home(tag, DataRef(9));
    bench.packet(write_back, Some(5));
    match bench.store.home_stamp(tag) {
        9 => Ok(()),
        stamp => Err(format!("a former incarnation has written home: write {stamp} after write 9")),
    }
}

/// A node saved an answer for a home that has rebuilt its directory since.
pub(crate) fn what_was_saved_is_old<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::new(rules);
    let tag = block(2, 1);
    bench.cache(tag, Access::Modified, 10);
    let requester = RequesterId { node: NodeId(0), slot: SlotId(0) };
    let request = Packet {
        from: Endpoint::Switch,
        to: Endpoint::CacheAgent(ME),
        provider: true,
        in_switch: true,
        global_status: GlobalStatus::Modified,
        copyset: Copyset::only(ME),
        ..Packet::request(PacketKind::WriteMiss, tag, requester, Seq(7))
    };
    bench.packet(request, None);
    assert_eq!(bench.store.retained, 1, "the provider keeps its answer");
    bench.new_epoch(1);
    let sent = bench.new_epoch(2);
    let hello = sent.iter().find(|packet| packet.to == Endpoint::HomeAgent(NodeId(2)));
    let hello = hello.expect("every node reports to every home");
    // The home says that it has rebuilt its directory in the epoch before.
    bench.packet(Packet { arg: 1, ..hello.reply(PacketKind::ReportAck, hello.to, hello.from) }, None);
    match bench.store.retained {
        0 => Ok(()),
        kept => Err(format!("{kept} old answers are still to be reported")),
    }
}

/// The switch stops again and again, each time before everybody has reported. A thread wants to write a block all that while.
pub(crate) fn a_recovery_is_cut_short_again_and_again<R: Rules>(rules: R) -> Result<(), String> {
    const EPOCHS: u32 = 8;
    let (mut bench, home) = (Bench::new(rules), NodeId(2));
    bench.miss(block(home.0, 1), Access::Modified);
    let mut at = AT;
    for epoch in 1..EPOCHS {
        bench.new_epoch(epoch);
        // Its request goes out once more, and the home, which waits for reports, refuses it.
        let asks_again = (0..8).any(|_| {
            at.now = at.now.max(bench.node.next_deadline());
            let mut out = Vec::new();
            bench.node.on_deadline(at, &mut bench.store, &mut out);
            sent(&out).iter().any(|packet| packet.kind == PacketKind::WriteMiss)
        });
        assert!(asks_again, "a thread that waits asks again in every epoch");
    }
    // At last there is time to report. The home has decided nothing since epoch 0: what it may have granted then counts.
    let mut waiting = bench.new_epoch(EPOCHS);
    let mut cut = 0;
    while let Some(packet) = waiting.pop() {
        if packet.kind == PacketKind::Report && packet.to == Endpoint::HomeAgent(home) {
            cut += usize::from(packet.event == PacketKind::WriteMiss);
            let answer = packet.reply(PacketKind::ReportAck, packet.to, packet.from);
            waiting.extend(bench.packet(answer, None));
        }
    }
    match cut {
        1 => Ok(()),
        other => Err(format!("one request was cut short by {EPOCHS} epochs, and {other} are reported")),
    }
}

/// A node dies that was granted a block to write, and then the switch, before everybody has reported.
pub(crate) fn a_recovery_after_a_death_is_cut_short<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::new(rules);
    let (tag, dead) = (block(ME.0, 1), NodeId(2));
    let me = Endpoint::HomeAgent(ME);
    let allocator = RequesterId { node: NodeId(0), slot: SlotId(0) };
    for (seq, kind, first) in [(1, PacketKind::ChunkRequest, block(ME.0, 0)), (2, PacketKind::Mark, tag)] {
        let call = Packet {
            from: Endpoint::Allocator(allocator.node),
            to: me,
            arg: BLOCK.bytes(),
            discipline: Some(Discipline::Coherent),
            ..Packet::request(kind, first, allocator, Seq(seq))
        };
        assert!(bench.packet(call, None)[0].status.is_granted(), "the block is allocated");
    }
    let writer = RequesterId { node: dead, slot: SlotId(3) };
    let write = Packet { to: me, ..Packet::request(PacketKind::WriteMiss, tag, writer, Seq(1)) };
    assert!(bench.packet(write, None)[0].status.is_granted(), "nobody has it");
    // It may have written by now: its unlock is on the way.
    let down = Copyset::only(dead);
    bench.new_epoch_without(1, down);
    let mut waiting = bench.new_epoch_without(2, down);
    // Now everybody who is left reports: nothing.
    let other = RequesterId { node: NodeId(0), slot: SlotId(63) };
    for (seq, event) in [(1, PacketKind::Report), (2, PacketKind::Close)] {
        let report = Packet::request(PacketKind::Report, block(ME.0, 0), other, Seq(seq));
        let from = Endpoint::CacheAgent(other.node);
        waiting.push(Packet { event, from, to: me, epoch: SwitchEpoch(2), ..report });
    }
    waiting.reverse();
    while let Some(packet) = waiting.pop() {
        if packet.to == me || packet.to == Endpoint::CacheAgent(ME) {
            waiting.extend(bench.packet(packet, None));
        }
    }
    match bench.node.lost().collect::<Vec<_>>()[..] {
        [lost] if lost == tag => Ok(()),
        ref other => {
            Err(format!("the latest copy of {tag:?} may be gone, and what counts as lost is {other:?}"))
        }
    }
}

/// A node is cut off from the switch while it has an entry's lock: its answer took long before, and it repeats its request ever
/// more rarely. All others are refused until it asks again, so that must be soon.
pub(crate) fn a_lock_holder_was_cut_off<R: Rules>(rules: R) -> Result<(), String> {
    let (floor, most) = (Nanos::from_micros(60), Nanos::from_micros(600));
    let mut bench = Bench::new(rules);
    let config = NodeConfig {
        retransmission: Retransmission::AfterRoundTrips { floor, most },
        ..bench.node.config().clone()
    };
    bench.node = Node::with_rules(rules, config);
    let mut now = Nanos::from_millis(1);
    let mut out = Vec::new();
    let asked = |tag, now, bench: &mut Bench<R>, out: &mut Vec<Effect>| {
        let at = Moment { now, random: 1 };
        bench.node.on_access(at, tag, Access::Shared, &mut bench.store, out);
        sent(&std::mem::take(out))[0]
    };
    let first = asked(block(0, 1), now, &mut bench, &mut out);
    // Some of its packets were lost, or whoever had to answer was stopped.
    now += Nanos::from_millis(2);
    let ack = Packet {
        kind: PacketKind::Ack,
        global_status: GlobalStatus::Unshared,
        payload: 64,
        from: Endpoint::HomeAgent(NodeId(0)),
        to: Endpoint::Requester(ME),
        ..first
    };
    let at = Moment { now, random: 1 };
    let message = Message { packet: ack, data: Some(DataRef(7)) };
    bench.node.on_packet(at, &message, &mut bench.store, &mut out);
    asked(block(0, 2), now, &mut bench, &mut out);
    let mut repeated = 0;
    for _ in 0..8 {
        let waited = bench.node.next_deadline().0.saturating_sub(now.0);
        now = now.max(bench.node.next_deadline());
        let at = Moment { now, random: 1 };
        bench.node.on_deadline(at, &mut bench.store, &mut out);
        repeated += sent(&std::mem::take(&mut out)).len();
        if waited > most.0 {
            return Err(format!("it waits {} us before it asks again", waited / 1000));
        }
    }
    assert!(repeated >= 6, "what is not answered is asked again: {repeated} packets");
    Ok(())
}

/// The memory with copies that nodes 2 and 0 keep.
const COPIED: u16 = 5;

/// Some blocks are protected, and a thread is writing in another one: the batch is not one moment yet.
pub(crate) fn a_block_of_a_batch_is_written_again<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::with_copies(rules, 2);
    let (quiet, busy) = (block(COPIED, 1), block(COPIED, 2));
    for tag in [quiet, busy] {
        bench.cache(tag, Access::Modified, 7);
    }
    let (frame, _) = bench.store.lookup(busy).expect("it has come");
    bench.store.pin(frame).expect("nobody has it pinned");
    let mut out = Vec::new();
    bench.node.on_sync(AT, &mut bench.store, &mut out);
    assert!(sent(&out).is_empty(), "it waits for the thread: {out:?}");
    match bench.node.on_access(AT, quiet, Access::Modified, &mut bench.store, &mut out) {
        Started::Retry => {}
        other => return Err(format!("a thread may write again: {other:?}")),
    }
    assert!(bench.store.unpin(frame), "the node waits for that");
    bench.node.on_unpinned(AT, frame, &mut bench.store, &mut out);
    let blocks: Vec<_> = sent(&out).iter().map(|packet| (packet.kind, packet.tag, packet.to)).collect();
    let to = |node| Endpoint::HomeAgent(NodeId(node));
    let prepare = |tag, node| (PacketKind::Prepare, tag, to(node));
    let all = [prepare(quiet, 2), prepare(busy, 2), prepare(quiet, 0), prepare(busy, 0)];
    if blocks == all { Ok(()) } else { Err(format!("sent {blocks:?}")) }
}

/// What this node has written is prepared and committed at both others, and not before that it sends what comes after.
fn commits_before<R: Rules>(
    bench: &mut Bench<R>,
    mut sent_so_far: Vec<Packet>,
    after: PacketKind,
) -> Result<Packet, String> {
    if sent_so_far.iter().any(|packet| packet.kind == after) {
        return Err(format!("{after:?} comes first"));
    }
    for (kind, answer) in
        [(PacketKind::Prepare, PacketKind::Prepared), (PacketKind::Commit, PacketKind::Committed)]
    {
        assert_eq!(sent_so_far.iter().map(|packet| packet.kind).collect::<Vec<_>>(), [kind; 2]);
        let asked = std::mem::take(&mut sent_so_far);
        for packet in asked {
            let reply = Packet { arg: 1, ..packet.reply(answer, packet.to, packet.from) };
            sent_so_far.extend(bench.packet(reply, None));
        }
    }
    match sent_so_far.as_slice() {
        [last] if last.kind == after => Ok(*last),
        other => Err(format!("then comes {after:?}, and this is sent: {other:?}")),
    }
}

/// A block was written, and another one is freed.
pub(crate) fn what_was_written_before_a_free_is_committed<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::with_copies(rules, 2);
    bench.cache(block(COPIED, 1), Access::Modified, 7);
    let mut out = Vec::new();
    let freed = GlobalAddr::new(NodeId(0), 512);
    bench.node.on_free(AT, (freed, None), &mut bench.store, &mut out);
    let free = commits_before(&mut bench, sent(&out), PacketKind::Free)?;
    if free.tag.addr() == freed { Ok(()) } else { Err(format!("{free:?} is sent")) }
}

/// A block was written under the lock of another one, which is released.
pub(crate) fn what_was_written_under_a_lock_is_committed<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::with_copies(rules, 2);
    let mut out = Vec::new();
    bench.node.on_lock(AT, block(0, 1), true, false, &mut bench.store, &mut out);
    let [request] = sent(&out)[..] else { panic!("a lock is asked for: {out:?}") };
    bench.packet(request.reply(PacketKind::Ack, Endpoint::HomeAgent(NodeId(0)), request.from), None);
    bench.cache(block(COPIED, 1), Access::Modified, 7);
    let mut out = Vec::new();
    bench.node.on_release(AT, request.requester.slot, &mut bench.store, &mut out);
    let unlock = commits_before(&mut bench, sent(&out), PacketKind::Unlock)?;
    if unlock.tag == request.tag { Ok(()) } else { Err(format!("{unlock:?} is sent")) }
}

/// A memory with copies that these nodes have, and that this one is getting.
fn kept((by, to): ([u16; 2], Option<NodeId>)) -> Kept {
    Kept { by: by.map(NodeId).into_iter().collect(), to: to.into_iter().collect(), ..Kept::default() }
}

/// A node that is getting a memory asks its home, which has not heard from everybody in this epoch.
pub(crate) fn a_memory_is_copied_when_its_home_knows_it<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::with_copies(rules, 2);
    // Node 1 serves memory 4, and node 2 has come back.
    let memories = [([0, 1], None), ([1, 1], Some(NodeId(2))), ([2, 0], None)].map(kept);
    let incarnations = [0, 0, 1].map(|it| Some(Incarnation(it))).to_vec();
    let view = View { epoch: SwitchEpoch(1), incarnations, shadow: NodeId(0), memories: memories.to_vec() };
    bench.node.on_new_epoch(AT, &view, None, &mut bench.store, &mut Vec::new());
    let requester = RequesterId { node: NodeId(2), slot: SlotId::MIGRATION };
    let asked = Packet {
        from: Endpoint::HomeAgent(NodeId(2)),
        to: Endpoint::HomeAgent(ME),
        epoch: SwitchEpoch(1),
        incarnation: Incarnation(1),
        ..Packet::request(PacketKind::Refill, block(4, 0), requester, Seq(0))
    };
    match bench.packet(asked, None).as_slice() {
        [] => Ok(()),
        answered => Err(format!("it is told what there is before all batches are in it: {answered:?}")),
    }
}

/// A node is getting a memory: a block of it is committed, and what was there before comes later.
pub(crate) fn a_block_is_committed_while_its_memory_is_copied<R: Rules>(rules: R) -> Result<(), String> {
    let mut bench = Bench::with_copies(rules, 2);
    // Node 0 serves memory 3, and this node is to have it.
    let memories = [([0, 0], Some(ME)), ([1, 2], None), ([2, 0], None)].map(kept);
    let incarnations = [0; 3].map(|it| Some(Incarnation(it))).to_vec();
    let view = View { epoch: SwitchEpoch(1), incarnations, shadow: NodeId(0), memories: memories.to_vec() };
    let mut out = Vec::new();
    bench.node.on_new_epoch(AT, &view, None, &mut bench.store, &mut out);
    let asked = |sent: &[Packet]| sent.iter().find(|packet| packet.kind == PacketKind::Refill).copied();
    let first = asked(&sent(&out)).ok_or("it asks for the memory")?;
    let tag = block(3, 1);
    let coming = |place, provider| Packet {
        tag,
        copyset: Copyset::only(NodeId(2)),
        discipline: Some(Discipline::Coherent),
        provider,
        arg: 0,
        seq: Seq(place),
        ..first.reply(PacketKind::Refilled, first.to, first.from)
    };
    bench.packet(coming(0, true), None);
    let requester = RequesterId { node: NodeId(2), slot: SlotId::MIGRATION };
    for (kind, arg, data) in [(PacketKind::Prepare, 1, Some(8)), (PacketKind::Commit, 0, None)] {
        let packet = Packet {
            from: Endpoint::CacheAgent(NodeId(2)),
            to: Endpoint::HomeAgent(ME),
            epoch: SwitchEpoch(1),
            copyset: [0, 1].map(NodeId).into_iter().collect(),
            arg,
            ..Packet::request(kind, tag, requester, Seq(1))
        };
        let answers = bench.packet(packet, data);
        assert_eq!(answers.len(), 1, "{kind:?}: {answers:?}");
    }
    bench.packet(coming(1, false), Some(7));
    match bench.store.home_stamp(tag) {
        8 => Ok(()),
        other => Err(format!("8 was committed, and then {other} is there")),
    }
}
