//! The steps of the program, stage by stage.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use wire::{GlobalStatus, PacketKind, RequesterId, Rule, Rules};

use super::layout::{
    CHECK_STAGE, FIRST_TAG_STAGE, FORWARD_STAGE, Fields, PLACEMENT_STAGE, SCOREBOARD_STAGE, WAYS, class,
    last_op, location, lock_op, meta_op, route, score, score_op, tag_op,
};
use super::switch::SwitchConfig;
use super::tables;
use crate::pipeline::Match::{Any, Has, Is};
use crate::pipeline::step::ArrayId;
use crate::pipeline::{
    Alu, Array, Budget, BuildError, Compute, Gate, Match, Primitive, Program, ProgramBuilder, Rmw, Row,
    Table, alu,
};

const STATUSES: [GlobalStatus; 3] = [GlobalStatus::Unshared, GlobalStatus::Shared, GlobalStatus::Modified];

/// The arrays of one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) tag: ArrayId,
    pub(super) lock: ArrayId,
    pub(super) status: ArrayId,
    pub(super) copyset: ArrayId,
}

/// All arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrays {
    /// Only if conflicting requests wait in a queue.
    pub(super) last_request: Option<ArrayId>,
    pub(super) last_unlock: ArrayId,
    pub(super) ways: [Way; WAYS],
    pub(super) scoreboard: ArrayId,
}

/// Builds the program for a rack of so many nodes, with so many sets of [`WAYS`] entries.
pub(super) fn build<R: Rules>(
    rules: R,
    config: &SwitchConfig,
    sets: usize,
) -> Result<(Program, Fields, Arrays), BuildError> {
    let mut p = ProgramBuilder::new("FlowCC");
    let f = Fields::declare(&mut p);
    let arrays = declare_arrays(&mut p, config, sets);

    p.rmw(Rmw {
        array: arrays.last_unlock,
        index: f.slot,
        gate: None,
        select: f.last_op,
        cases: vec![(last_op::COMPARE, Alu::Compare(f.seq)), (last_op::RAISE, Alu::Raise(f.seq))],
        out: Some(f.order),
    });
    p.compute(Compute {
        name: "hash".into(),
        stage: 0,
        gate: None,
        primitives: vec![Primitive::Hash { to: f.set, from: f.key, buckets: sets as u64 }],
    });
    if let Some(array) = arrays.last_request {
        joins_once(rules, &mut p, &f, array);
    }
    // Stage by stage: the LOCK, G-STATUS and COPYSET of one way, and the TAG of the next.
    for stage in 0..=WAYS {
        if let Some(way) = stage.checked_sub(1) {
            way_metadata(&mut p, &f, &arrays, way, config.queue);
        }
        if stage < WAYS {
            way_tag(&mut p, &f, &arrays, stage);
        }
    }
    placement(rules, &mut p, &f);
    if config.peeks {
        peek(&mut p, &f);
    }
    scoreboard(&mut p, &f, &arrays, config.queue);
    decide(rules, &mut p, &f, config);
    check(rules, &mut p, &f, config);
    forward(&mut p, &f, config);

    Ok((p.build(&Budget::PUBLISHED)?, f, arrays))
}

fn declare_arrays(p: &mut ProgramBuilder, config: &SwitchConfig, sets: usize) -> Arrays {
    let nodes = config.nodes;
    let mut array = |name, stage, bits, entries| p.array(Array { name, stage, bits, entries });
    let slots = RequesterId::rows(nodes, config.lock_slots).saturating_mul(2);
    // A copyset has one bit a node, and never fewer than 64: its width decides how many nodes fit.
    let copyset_bits = u32::try_from(nodes).unwrap_or(u32::MAX).max(64);
    Arrays {
        last_request: config.queue.then(|| array("LAST-REQUEST".into(), 0, 64, slots)),
        last_unlock: array("LAST-UNLOCK".into(), 0, 64, slots),
        ways: core::array::from_fn(|way| {
            let stage = FIRST_TAG_STAGE + way;
            Way {
                tag: array(format!("TAG way {way}"), stage, 64, sets),
                lock: array(format!("LOCK way {way}"), stage + 1, 16, sets),
                status: array(format!("G-STATUS way {way}"), stage + 1, 8, sets),
                copyset: array(format!("COPYSET way {way}"), stage + 1, copyset_bits, sets),
            }
        }),
        scoreboard: array("SCOREBOARD".into(), SCOREBOARD_STAGE, 16, slots),
    }
}

fn way_tag(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays, way: usize) {
    p.rmw(Rmw {
        array: arrays.ways[way].tag,
        index: f.set,
        // An old number touches no entry.
        gate: Some(Gate::has(f.order, alu::NEWER)),
        select: f.tag_op,
        cases: vec![
            (tag_op::MATCH, Alu::MatchTag(f.key)),
            (tag_op::CLEAR, Alu::ClearIfEqual(f.key)),
            (tag_op::PROBE, Alu::ProbeTag(f.key)),
            (tag_op::CLAIM + way as u64, Alu::ClaimIfEmpty(f.key)),
        ],
        out: Some(f.hit[way]),
    });
}

fn locks(f: &Fields) -> Vec<(u64, Alu)> {
    vec![
        (lock_op::TRY_READ, Alu::TryReadLock),
        (lock_op::TRY_WRITE, Alu::TryWriteLock),
        (lock_op::RELEASE, Alu::Release(f.release)),
        (lock_op::SET, Alu::Set(f.release)),
    ]
}

/// Readers share the lock, and wait in no queue; one that joins the queue takes it as writers do.
fn locks_with_a_queue(f: &Fields) -> Vec<(u64, Alu)> {
    vec![
        (lock_op::TRY_READ, Alu::TryReadLock),
        (lock_op::TRY_WRITE, Alu::JoinWriters(f.release)),
        (lock_op::RELEASE, Alu::Release(f.release)),
        (lock_op::LEAVE, Alu::Leave(f.release)),
        // What is cleared is held by a migration, which nobody stands behind.
        (lock_op::SET, Alu::Leave(f.release)),
    ]
}

/// A request joins a queue once, however often it comes: a duplicate leaves the locks alone.
fn joins_once<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields, last_request: ArrayId) {
    p.rmw(Rmw {
        array: last_request,
        index: f.slot,
        gate: Some(Gate::is(f.class, class::REQUEST)),
        select: f.last_op,
        cases: vec![(last_op::COMPARE, Alu::Raise(f.seq))],
        out: Some(f.seen),
    });
    p.compute(Compute {
        name: "known request".into(),
        stage: 1,
        gate: Some(Gate::is(f.seen, alu::SAME)),
        primitives: if rules.holds(Rule::JoinsOnce) {
            vec![Primitive::Set { to: f.lock_op, value: 0 }]
        } else {
            Vec::new()
        },
    });
}

/// The three arrays share a stage, so that a packet sees and changes them as one (property P1).
fn way_metadata(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays, way: usize, queue: bool) {
    let gate = Some(Gate::is(f.hit[way], alu::HIT));
    let arrays = arrays.ways[way];
    p.rmw(Rmw {
        array: arrays.lock,
        index: f.set,
        gate,
        select: f.lock_op,
        cases: if queue { locks_with_a_queue(f) } else { locks(f) },
        out: Some(f.verdict),
    });
    p.rmw(Rmw {
        array: arrays.status,
        index: f.set,
        gate,
        select: f.meta_op,
        cases: vec![
            (meta_op::READ, Alu::Read),
            (meta_op::SET, Alu::Set(f.new_status)),
            (meta_op::UNION, Alu::Set(f.new_status)),
        ],
        out: Some(f.status),
    });
    p.rmw(Rmw {
        array: arrays.copyset,
        index: f.set,
        gate,
        select: f.meta_op,
        cases: vec![
            (meta_op::READ, Alu::Read),
            (meta_op::SET, Alu::Set(f.new_copyset)),
            (meta_op::UNION, Alu::Or(f.new_copyset)),
        ],
        out: Some(f.copyset),
    });
}

/// Where an ADD goes: nowhere if a way has the tag, else to the first way with capacity. Only probes get here:
/// their answers exclude the hit that would let a LOCK array write the verdict in the same stage.
fn placement<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields) {
    let row = |way: usize, answer: u64, location: u64, verdict: u64| {
        let mut key = vec![Any; WAYS];
        key[way] = Is(answer);
        let action = vec![
            Primitive::Set { to: f.location, value: location },
            Primitive::Set { to: f.verdict, value: verdict },
        ];
        Row { key, action }
    };
    let ways = |looks| if looks { 0..WAYS } else { 0..0 };
    let claiming = if rules.holds(Rule::ClaimIsMarked) { score::CLAIMING } else { 0 };
    let present =
        ways(rules.holds(Rule::AddIsIdempotent)).map(|way| row(way, alu::PRESENT, location::PRESENT, 0));
    let vacant = (0..WAYS).map(|way| row(way, alu::VACANT, way as u64, claiming));
    p.table(Table {
        name: "placement".into(),
        stage: PLACEMENT_STAGE,
        gate: Some(Gate::has(f.hit[WAYS - 1], alu::PROBED)),
        key: f.hit.to_vec(),
        rows: present.chain(vacant).collect(),
        default: vec![
            Primitive::Set { to: f.location, value: location::FULL },
            Primitive::Set { to: f.verdict, value: score::REFUSED },
        ],
    });
}

/// A PEEK goes to the home unless somebody caches the block: an entry that nobody has a copy of looks like none.
fn peek(p: &mut ProgramBuilder, f: &Fields) {
    p.table(Table {
        name: "peek".into(),
        stage: SCOREBOARD_STAGE,
        gate: Some(Gate::is(f.class, class::PEEK)),
        key: vec![f.status],
        rows: vec![Row {
            key: vec![Is(GlobalStatus::Unshared as u64)],
            action: vec![Primitive::Set { to: f.location, value: location::NOWHERE }],
        }],
        default: Vec::new(),
    });
}

fn scoreboard(p: &mut ProgramBuilder, f: &Fields, arrays: &Arrays, queue: bool) {
    let mut cases = vec![
        (score_op::COUNT_OR_MARK, Alu::CountOrMark(f.verdict)),
        (score_op::READ_OR_MARK, Alu::SetIfZero(f.verdict)),
        (score_op::SET, Alu::Set(f.verdict)),
    ];
    if queue {
        cases.push((score_op::TAKE, Alu::TakeIfEqual(f.followed)));
    }
    p.rmw(Rmw {
        array: arrays.scoreboard,
        index: f.slot,
        gate: Some(Gate::has(f.order, alu::NEWER)),
        select: f.score_op,
        cases,
        out: Some(f.score),
    });
    p.compute(Compute {
        name: "membership".into(),
        stage: SCOREBOARD_STAGE,
        gate: None,
        primitives: vec![Primitive::And { to: f.member, a: f.copyset, b: f.node_bit }],
    });
}

/// What becomes of the packet, by its class and its event's score: the first row that matches.
fn decide<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields, config: &SwitchConfig) {
    // With a queue, a score that says refused and names somebody says whom the event follows.
    let refused_or_queued = if config.queue { route::FOLLOW } else { route::LOCKED };
    let row = |class: u64, order: Match, location: Match, score: Match, to: u64| Row {
        key: vec![Is(class), order, location, score],
        action: vec![Primitive::Set { to: f.route, value: to }],
    };
    let known = if rules.holds(Rule::UnlockOfNothingIsShort) { Any } else { Is(alu::SAME) };
    let once_more = if rules.holds(Rule::AddIsIdempotent) { route::COLLISION } else { route::ADD_AGAIN };
    let peeks = [
        row(class::PEEK, Any, Is(location::NOWHERE), Any, route::TO_HOME),
        row(class::PEEK, Any, Any, Any, route::FORWARD),
    ];
    let peeks = if config.peeks { &peeks[..] } else { &[] };
    p.table(Table {
        name: "decide".into(),
        stage: CHECK_STAGE,
        gate: Some(Gate::has(f.order, alu::NEWER)),
        key: vec![f.class, f.order, f.location, f.score],
        rows: vec![
            // The first decision about an event holds for its duplicates. Without a mark it has the lock.
            row(class::REQUEST, Any, Any, Is(score::REFUSED), route::LOCKED),
            row(class::REQUEST, Any, Any, Has(score::REFUSED), refused_or_queued),
            row(class::REQUEST, Any, Any, Has(score::HOME), route::TO_HOME),
            row(class::REQUEST, Any, Any, Has(score::CLAIMING), route::IN_FLIGHT),
            row(class::REQUEST, Any, Any, Any, route::FORWARD),
            // Nothing to release and nothing to reset, or done before.
            row(class::UNLOCK, known, Any, Is(0), route::UNLOCKED),
            row(class::UNLOCK, Is(alu::SAME), Any, Is(score::FOLLOWED), route::FOLLOWED),
            // A cell that is not 0 though the number is known: the first copy of this unlock is on its way to
            // its second pass. (Or the event after next has begun, and nobody waits for this copy.)
            row(class::UNLOCK, Is(alu::SAME), Any, Any, route::IN_FLIGHT),
            row(class::UNLOCK, Any, Any, Any, route::UNLOCK_AGAIN),
            row(class::UNLOCK_AGAIN, Any, Any, Is(score::FOLLOWED), route::FOLLOWED),
            row(class::UNLOCK_AGAIN, Any, Any, Any, route::UNLOCKED),
            row(class::HANDED, Any, Any, Is(0), route::UNLOCKED),
            row(class::HANDED, Is(alu::SAME), Any, Is(score::FOLLOWED), route::UNLOCKED),
            row(class::HANDED, Is(alu::SAME), Any, Any, route::IN_FLIGHT),
            row(class::HANDED, Any, Any, Any, route::UNLOCK_AGAIN),
            // The score is what it was before this copy.
            row(class::ADD, Any, Any, Has(score::CLAIMING), route::IN_FLIGHT),
            row(class::ADD, Any, Any, Has(score::REFUSED), route::COLLISION),
            row(class::ADD, Any, Is(location::PRESENT), Is(0), route::PRESENT),
            row(class::ADD, Any, Is(location::PRESENT), Any, route::ADDED),
            row(class::ADD, Any, Is(location::FULL), Is(0), route::COLLISION),
            row(class::ADD, Any, Any, Is(0), route::ADD_AGAIN),
            row(class::ADD, Any, Any, Any, once_more),
            row(class::ADD_AGAIN, Any, Any, Has(score::REFUSED), route::COLLISION),
            row(class::ADD_AGAIN, Any, Any, Any, route::ADDED),
        ]
        .into_iter()
        .chain(peeks.iter().cloned())
        .collect(),
        default: Vec::new(),
    });
}

/// The check table (Table 2), in two halves: gates tell whether the requester's node has a copy.
fn check<R: Rules>(rules: R, p: &mut ProgramBuilder, f: &Fields, config: &SwitchConfig) {
    let halves = [
        ("check, no copy", false, Gate::is(f.member, 0)),
        ("check, has copy", true, Gate::is_not(f.member, 0)),
    ];
    for (name, member, gate) in halves {
        let rows = tables::CHECK.iter().filter(|row| config.peeks || row.event != PacketKind::Peek);
        let valid = rows.map(|row| if rules.holds(Rule::CheckTable) { *row } else { row.unchecked() });
        let valid = valid.filter(|row| row.member.is_none_or(|want| want == member));
        let row = |event: PacketKind, status: GlobalStatus| Row {
            key: vec![Is(event as u64), Is(status as u64)],
            action: vec![Primitive::Set { to: f.valid, value: 1 }],
        };
        p.table(Table {
            name: name.into(),
            stage: CHECK_STAGE,
            gate: Some(gate),
            key: vec![f.event, f.status],
            rows: valid
                .flat_map(|want| expand(want.status).map(move |status| row(want.event, status)))
                .collect(),
            default: Vec::new(),
        });
    }
}

/// The forward table (Table 3). A request that is not valid matches no row.
fn forward(p: &mut ProgramBuilder, f: &Fields, config: &SwitchConfig) {
    let rows = tables::FORWARD.iter().filter(|row| config.peeks || row.event != PacketKind::Peek);
    let rows = rows.flat_map(|want| {
        expand(want.status).map(|status| Row {
            key: vec![Is(1), Is(want.event as u64), Is(status as u64)],
            action: vec![Primitive::Set { to: f.forward, value: want.to as u64 }],
        })
    });
    p.table(Table {
        name: "forward".into(),
        stage: FORWARD_STAGE,
        gate: Some(Gate::is(f.route, route::FORWARD)),
        key: vec![f.valid, f.event, f.status],
        rows: rows.collect(),
        default: Vec::new(),
    });
}

/// One row a status, so that the tables stay exact.
fn expand(status: Option<GlobalStatus>) -> impl Iterator<Item = GlobalStatus> {
    STATUSES.into_iter().filter(move |each| status.is_none_or(|want| want == *each))
}
