//! A new epoch begins: what the node on the bench reports, and what its home makes of what others report.

use node::{Access, Drop, Outcome, View};
use wire::{
    BlockTag, Copyset, Discipline, Endpoint, GlobalAddr, GlobalStatus, NodeId, Packet, PacketKind, Refusal,
    Seq, SlotId, Status, SwitchEpoch,
};

use crate::coherence::packets::{
    BLOCK, EPOCH, INCARNATION, ME, NODES, agent, at_home, call, granted, home_of, mine, nodes, requester,
    theirs, to_provider, unlock, unlock_ack,
};
use crate::coherence::rig::{Effects, FLOOR, Rig, carrying};

/// The epoch after the one that the bench is in.
const NEXT: SwitchEpoch = SwitchEpoch(EPOCH.0 + 1);

fn view(epoch: SwitchEpoch, down: Copyset) -> View {
    let incarnation = |node: usize| (!down.contains(NodeId(node as u16))).then_some(INCARNATION);
    View {
        epoch,
        incarnations: (0..NODES).map(incarnation).collect(),
        shadow: NodeId(0),
        memories: Vec::new(),
    }
}

/// What one other node says to the bench's home, after its first packet and before its last.
struct Says(u16, Vec<Packet>);

fn report(event: PacketKind, tag: BlockTag, owner: wire::RequesterId, arg: u64) -> Packet {
    Packet { event, arg, ..Packet::request(PacketKind::Report, tag, owner, Seq(0)) }
}

/// The whole rack but the bench reports to the bench's home, and takes the bench's reports. Returns what the
/// bench reported to others.
fn everybody_reports(
    rig: &mut Rig,
    epoch: SwitchEpoch,
    first: Effects,
    down: Copyset,
    says: &[Says],
) -> Vec<Packet> {
    let mut waiting: Vec<Packet> = first.sent().iter().map(|message| message.packet).collect();
    let mut reported = Vec::new();
    for node in (0..NODES as u16).filter(|node| NodeId(*node) != ME && !down.contains(NodeId(*node))) {
        let own = says.iter().filter(|says| says.0 == node).flat_map(|says| says.1.clone());
        let hello = report(PacketKind::Report, mine(0), requester(node, 63), 0);
        let no_more = report(PacketKind::Close, mine(0), requester(node, 63), 0);
        for (number, packet) in (1..).zip([hello].into_iter().chain(own).chain([no_more])) {
            let packet = Packet {
                seq: Seq(number),
                from: agent(node),
                to: home_of(mine(0)),
                epoch,
                incarnation: INCARNATION,
                ..packet
            };
            let out = match packet.event {
                PacketKind::WriteBack => rig.packet(carrying(packet, packet.arg)),
                PacketKind::WriteMiss if packet.provider => rig.packet(carrying(packet, 777)),
                _ => rig.packet(packet),
            };
            waiting.extend(out.sent().iter().map(|message| message.packet));
        }
    }
    while let Some(packet) = waiting.pop() {
        let out = match packet.kind {
            PacketKind::Report if packet.to == home_of(mine(0)) => rig.packet(packet),
            PacketKind::Report => {
                reported.push(packet);
                // The first report says nothing, and asks when the home has last rebuilt its directory.
                let is_first = packet.event == PacketKind::Report && packet.arg == 0;
                let arg = if is_first { u64::from(EPOCH.0) } else { 0 };
                rig.packet(Packet { arg, ..packet.reply(PacketKind::ReportAck, packet.to, packet.from) })
            }
            PacketKind::ReportAck if packet.to == agent(ME.0) => rig.packet(packet),
            _ => continue,
        };
        waiting.extend(out.sent().iter().map(|message| message.packet));
    }
    reported
}

impl Rig {
    fn new_epoch(&mut self, view: &View) -> Effects {
        self.input_epoch(view)
    }

    /// A node that everybody knows, with eight live blocks of node 0's: as `Rig::home`, with the rack's lives
    /// known.
    fn in_rack() -> Self {
        let mut rig = Self::with(|config| config.switch_epoch = SwitchEpoch(EPOCH.0 - 1));
        let out = rig.new_epoch(&view(EPOCH, Copyset::EMPTY));
        everybody_reports(&mut rig, EPOCH, out, Copyset::EMPTY, &[]);
        assert!(!rig.node.is_recovering(), "everybody has reported");
        let chunk = call(PacketKind::ChunkRequest, mine(0), 1, 8 * BLOCK.bytes(), Some(Discipline::Coherent));
        assert!(rig.packet(chunk).only().packet.status.is_granted());
        let _ = rig.packet(call(PacketKind::Mark, mine(1), 2, 8 * BLOCK.bytes(), Some(Discipline::Coherent)));
        rig
    }

    /// The next epoch, in which these nodes are down, and what the others say in it. What was reported.
    fn recover(&mut self, down: Copyset, says: &[Says]) -> Vec<Packet> {
        let out = self.new_epoch(&view(NEXT, down));
        let reported = everybody_reports(self, NEXT, out, down, says);
        assert!(!self.node.is_recovering(), "everybody has reported");
        reported
    }
}

fn in_next(packet: Packet) -> Packet {
    Packet { epoch: NEXT, ..packet }
}

fn of_event(reported: &[Packet], event: PacketKind) -> Vec<Packet> {
    reported.iter().copied().filter(|packet| packet.event == event).collect()
}

fn read_of(tag: BlockTag) -> Packet {
    in_next(at_home(PacketKind::ReadMiss, tag, requester(3, 5), 1))
}

#[test]
fn what_was_sent_in_another_epoch_is_dropped() {
    let mut rig = Rig::in_rack();
    rig.recover(Copyset::EMPTY, &[]);
    rig.drops(Drop::WrongEpoch, at_home(PacketKind::ReadMiss, mine(1), requester(3, 5), 1));
}

#[test]
fn copies_are_reported_by_groups_of_blocks_with_their_state() {
    let mut rig = Rig::in_rack();
    rig.cache(theirs(1), Access::Shared, 10);
    rig.cache(theirs(66), Access::Modified, 20);
    let reported = rig.recover(Copyset::EMPTY, &[]);
    let copies: Vec<_> = of_event(&reported, PacketKind::Report)
        .into_iter()
        .filter(|packet| packet.arg != 0)
        .map(|packet| (packet.tag, packet.arg, packet.global_status))
        .collect();
    assert_eq!(
        copies,
        [(theirs(0), 1 << 1, GlobalStatus::Shared), (theirs(64), 1 << 2, GlobalStatus::Modified)]
    );
}

#[test]
fn a_home_refuses_everything_until_the_last_node_has_reported() {
    let mut rig = Rig::in_rack();
    let out = rig.new_epoch(&view(NEXT, Copyset::EMPTY));
    let answer = rig.packet(read_of(mine(1))).only().packet;
    assert_eq!(answer.status, Status::Refused(Refusal::Recovering));
    everybody_reports(&mut rig, NEXT, out, Copyset::EMPTY, &[]);
    let answer =
        rig.packet(in_next(at_home(PacketKind::ReadMiss, mine(1), requester(3, 5), 2))).only().packet;
    assert_eq!(answer.status, Status::Granted);
}

#[test]
fn a_home_knows_the_copies_that_were_reported() {
    let mut rig = Rig::in_rack();
    let shared = Packet {
        global_status: GlobalStatus::Shared,
        ..report(PacketKind::Report, mine(0), requester(2, 63), 0b10)
    };
    let also = Packet { requester: requester(3, 63), ..shared };
    let modified = Packet { global_status: GlobalStatus::Modified, arg: 0b100, ..shared };
    rig.recover(Copyset::EMPTY, &[Says(2, vec![shared, modified]), Says(3, vec![also])]);
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Shared, nodes([2, 3])));
    assert_eq!(rig.metadata(mine(2)), (GlobalStatus::Modified, nodes([2])));
    assert_eq!(rig.metadata(mine(3)), (GlobalStatus::Unshared, nodes([])));
}

#[test]
fn a_retained_answer_is_written_home_if_its_event_was_cut_short() {
    let mut rig = Rig::in_rack();
    rig.set_entry(mine(1), GlobalStatus::Modified, [2]);
    let retained = Packet { provider: true, ..report(PacketKind::WriteMiss, mine(1), requester(3, 4), 9) };
    let cut = report(PacketKind::WriteMiss, mine(1), requester(3, 4), 9);
    rig.recover(Copyset::EMPTY, &[Says(2, vec![retained]), Says(3, vec![cut])]);
    assert_eq!(rig.store.home_stamp(mine(1)), 777);
    assert_eq!(rig.metadata(mine(1)), (GlobalStatus::Unshared, nodes([])));
}

#[test]
fn a_retained_answer_of_an_event_that_was_granted_is_old() {
    let mut rig = Rig::in_rack();
    let retained = Packet { provider: true, ..report(PacketKind::WriteMiss, mine(1), requester(3, 4), 9) };
    let another = report(PacketKind::WriteMiss, mine(2), requester(3, 4), 11);
    rig.recover(Copyset::EMPTY, &[Says(2, vec![retained]), Says(3, vec![another])]);
    assert_eq!(rig.store.home_stamp(mine(1)), 0, "the home's memory is as it was");
}

#[test]
fn a_node_reports_the_answer_that_it_retained_and_the_request_that_it_cut_short() {
    let mut rig = Rig::in_rack();
    rig.cache(theirs(1), Access::Modified, 10);
    let _ = rig.packet(to_provider(PacketKind::WriteMiss, theirs(1), 7, GlobalStatus::Modified, [1]));
    let asked = rig.miss(theirs(2), Access::Modified);
    let reported = of_event(&rig.recover(Copyset::EMPTY, &[]), PacketKind::WriteMiss);
    let [retained, cut] = reported[..] else { panic!("{reported:?}") };
    assert!(retained.provider && retained.requester == requester(0, 0) && retained.arg == 7);
    assert!(!cut.provider && cut.requester == asked.requester && cut.arg == asked.seq.0);
    assert_eq!(rig.store.retained, 0, "what the homes know is given back");
}

#[test]
fn what_was_saved_for_a_home_that_has_rebuilt_its_directory_since_is_old() {
    let mut rig = Rig::in_rack();
    rig.cache(theirs(1), Access::Modified, 10);
    let _ = rig.packet(to_provider(PacketKind::WriteMiss, theirs(1), 7, GlobalStatus::Modified, [1]));
    // Nobody answers in this epoch, and another one begins; the home has heard enough in between.
    let _ = rig.new_epoch(&view(NEXT, Copyset::EMPTY));
    let later = SwitchEpoch(NEXT.0 + 1);
    let out = rig.new_epoch(&view(later, Copyset::EMPTY));
    let hello =
        out.sent().into_iter().find(|message| message.packet.to == home_of(theirs(1))).unwrap().packet;
    let ack =
        |packet: &Packet, arg| Packet { arg, ..packet.reply(PacketKind::ReportAck, packet.to, packet.from) };
    let out = rig.packet(ack(&hello, u64::from(NEXT.0)));
    assert_eq!(out.only().packet.event, PacketKind::Close, "there is no more to report");
    assert_eq!(rig.store.retained, 0, "the old answer is given back");
}

#[test]
fn what_was_saved_is_kept_over_another_restart() {
    let mut rig = Rig::in_rack();
    rig.cache(theirs(1), Access::Modified, 10);
    let _ = rig.packet(to_provider(PacketKind::WriteMiss, theirs(1), 7, GlobalStatus::Modified, [1]));
    let _ = rig.new_epoch(&view(NEXT, Copyset::EMPTY));
    let later = SwitchEpoch(NEXT.0 + 1);
    let out = rig.new_epoch(&view(later, Copyset::EMPTY));
    let reported = everybody_reports(&mut rig, later, out, Copyset::EMPTY, &[]);
    assert_eq!(of_event(&reported, PacketKind::WriteMiss).len(), 1);
}

#[test]
fn an_eviction_that_is_cut_short_leaves_its_block_in_the_cache() {
    let mut rig = Rig::in_rack();
    rig.cache(theirs(1), Access::Modified, 10);
    rig.cache(theirs(3), Access::Modified, 30);
    let evict = rig.miss(theirs(5), Access::Shared);
    assert_eq!(evict.kind, PacketKind::EvictModified);
    let out = rig.packet(granted(&evict, Endpoint::Switch, GlobalStatus::Modified, [1]));
    assert_eq!(out.kinds(), [PacketKind::WriteBack]);
    assert_eq!(rig.cached(evict.tag), None);
    rig.recover(Copyset::EMPTY, &[]);
    assert!(matches!(rig.cached(evict.tag), Some((Access::Modified, _))));
}

#[test]
fn a_lock_that_is_held_is_held_on_and_its_release_is_taken() {
    let mut rig = Rig::in_rack();
    let held = report(PacketKind::LockWrite, mine(1).lock_entry(), requester(2, 3), 5);
    rig.recover(Copyset::EMPTY, &[Says(2, vec![held])]);
    let wants = in_next(at_home(PacketKind::LockWrite, mine(1).lock_entry(), requester(3, 5), 1));
    assert_eq!(rig.packet(wants).only().packet.status, Status::Refused(Refusal::Locked));
    let event = in_next(at_home(PacketKind::LockWrite, mine(1).lock_entry(), requester(2, 3), 5));
    assert_eq!(rig.packet(unlock(&event, GlobalStatus::Unshared, [])).kinds(), [PacketKind::UnlockAck]);
    let wants = in_next(at_home(PacketKind::LockWrite, mine(1).lock_entry(), requester(3, 6), 1));
    assert_eq!(rig.packet(wants).only().packet.status, Status::Granted);
}

#[test]
fn a_dead_nodes_lock_is_free() {
    let mut rig = Rig::in_rack();
    let lock = at_home(PacketKind::LockWrite, mine(1).lock_entry(), requester(2, 3), 5);
    assert_eq!(rig.packet(lock).only().packet.status, Status::Granted);
    rig.recover(nodes([2]), &[]);
    let wants = in_next(at_home(PacketKind::LockWrite, mine(1).lock_entry(), requester(3, 5), 1));
    assert_eq!(rig.packet(wants).only().packet.status, Status::Granted);
}

#[test]
fn what_only_a_dead_node_had_is_lost_until_it_is_freed() {
    let mut rig = Rig::in_rack();
    rig.set_entry(mine(1), GlobalStatus::Modified, [2]);
    rig.set_entry(mine(3), GlobalStatus::Shared, [2]);
    rig.recover(nodes([2]), &[]);
    assert_eq!(rig.node.lost().collect::<Vec<_>>(), [mine(1)]);
    assert_eq!(rig.packet(read_of(mine(1))).only().packet.status, Status::Refused(Refusal::Lost));
    let end = in_next(call(PacketKind::Mark, mine(1), 3, BLOCK.bytes(), None));
    assert!(rig.packet(end).only().packet.status.is_granted());
    assert_eq!(rig.node.lost().count(), 0);
}

#[test]
fn a_write_that_a_dead_node_may_have_been_granted_loses_the_block() {
    let mut rig = Rig::in_rack();
    let write = at_home(PacketKind::WriteMiss, mine(1), requester(2, 3), 5);
    assert!(rig.packet(write).only().packet.status.is_granted());
    let read = at_home(PacketKind::ReadMiss, mine(2), requester(2, 4), 5);
    assert!(rig.packet(read).only().packet.status.is_granted());
    rig.recover(nodes([2]), &[]);
    assert_eq!(rig.node.lost().collect::<Vec<_>>(), [mine(1)], "a reader changes nothing");
}

#[test]
fn nothing_is_lost_when_only_the_switch_was_restarted() {
    let mut rig = Rig::in_rack();
    rig.set_entry(mine(1), GlobalStatus::Modified, [2]);
    rig.recover(Copyset::EMPTY, &[]);
    assert_eq!(rig.node.lost().count(), 0);
}

#[test]
fn copies_of_a_dead_homes_blocks_go_when_no_thread_uses_them() {
    let mut rig = Rig::in_rack();
    rig.cache(theirs(1), Access::Shared, 10);
    let pinned = rig.cache_pinned(theirs(2), Access::Shared, 20);
    let _ = rig.new_epoch(&view(NEXT, nodes([2])));
    assert_eq!(rig.cached(theirs(1)), None);
    assert!(rig.cached(theirs(2)).is_some(), "a thread is using it");
    let _ = rig.unpin(pinned);
    assert_eq!(rig.cached(theirs(2)), None);
}

#[test]
fn an_operation_on_a_dead_home_fails_as_soon_as_that_is_known() {
    let mut rig = Rig::in_rack();
    let _ = rig.miss(theirs(1), Access::Shared);
    let out = rig.new_epoch(&view(NEXT, nodes([2])));
    assert_eq!(out.outcomes(), [Outcome::Failed(Refusal::NodeDown)]);
    let (_, out) = rig.access(theirs(3), Access::Modified);
    assert_eq!(out.outcomes(), [Outcome::Failed(Refusal::NodeDown)]);
    assert_eq!(rig.alloc(64, NodeId(2)).outcomes(), [Outcome::Failed(Refusal::NodeDown)]);
    assert_eq!(rig.free(GlobalAddr::new(NodeId(2), 64)).outcomes(), [Outcome::Failed(Refusal::NodeDown)]);
}

#[test]
fn a_lock_of_a_dead_home_is_released_without_a_word() {
    let mut rig = Rig::in_rack();
    let lock = rig.lock(theirs(1), true, false);
    let _ = rig.packet(granted(&lock, home_of(theirs(1)), GlobalStatus::Unshared, []));
    let _ = rig.new_epoch(&view(NEXT, nodes([2])));
    assert!(rig.release(SlotId(lock.requester.slot.0)).is_empty());
}

#[test]
fn what_a_dead_allocator_gave_out_stays_and_cannot_be_freed() {
    let mut rig = Rig::in_rack();
    rig.recover(nodes([0]), &[]);
    assert!(rig.packet(read_of(mine(1))).only().packet.status.is_granted());
    let free = Packet {
        requester: requester(3, 9),
        from: Endpoint::Allocator(NodeId(3)),
        ..call(PacketKind::Free, mine(1), 1, 0, None)
    };
    let answer = rig.packet(in_next(free)).only().packet;
    assert_eq!((answer.kind, answer.status), (PacketKind::FreeReply, Status::Refused(Refusal::NodeDown)));
}

#[test]
fn reports_are_repeated_until_they_are_acknowledged() {
    let mut rig = Rig::in_rack();
    let out = rig.new_epoch(&view(NEXT, Copyset::EMPTY));
    assert_eq!(out.kinds(), [PacketKind::Report; NODES]);
    assert_eq!(rig.wait(FLOOR).kinds(), [PacketKind::Report; NODES]);
}

#[test]
fn an_event_before_is_over_and_its_operation_is_begun_again() {
    let mut rig = Rig::in_rack();
    let first = rig.miss(theirs(1), Access::Shared);
    rig.recover(Copyset::EMPTY, &[]);
    let again = rig.wait(crate::coherence::rig::BACKOFF.most).only().packet;
    assert_eq!((again.kind, again.tag, again.epoch), (first.kind, first.tag, NEXT));
    assert!(again.seq > first.seq, "numbers go on");
    rig.drops(Drop::Stale, in_next(unlock_ack(&first)));
}

#[test]
fn a_free_that_was_in_flight_to_a_dead_allocator_frees_nothing_of_the_next_one() {
    let mut rig = Rig::in_rack();
    let end = call(PacketKind::Mark, mine(1), 3, 8 * BLOCK.bytes(), None);
    assert!(rig.packet(end).only().packet.status.is_granted(), "node 0 has freed all; then it dies");
    rig.recover(nodes([0]), &[]);
    let of_node_3 = |packet: Packet| {
        in_next(Packet { requester: requester(3, 9), from: Endpoint::Allocator(NodeId(3)), ..packet })
    };
    let chunk = call(PacketKind::ChunkRequest, mine(0), 1, 8 * BLOCK.bytes(), Some(Discipline::Coherent));
    assert!(rig.packet(of_node_3(chunk)).only().packet.status.is_granted());
    let free =
        |epoch: SwitchEpoch, seq| of_node_3(call(PacketKind::Free, mine(1), seq, u64::from(epoch.0), None));
    let answer = rig.packet(free(EPOCH, 2)).only().packet;
    assert_eq!((answer.kind, answer.status), (PacketKind::FreeReply, Status::Refused(Refusal::NodeDown)));
    let passed_on = rig.packet(free(NEXT, 3)).only().packet;
    assert_eq!((passed_on.kind, passed_on.to), (PacketKind::Free, Endpoint::Allocator(NodeId(3))));
}
