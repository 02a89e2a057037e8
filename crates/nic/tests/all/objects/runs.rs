//! Random runs: requesters read objects again and again while writers write them.

use std::collections::BTreeMap;

use nic::objects::{Attempt, Effect, Engine, Load, Mode, Object, Refused, SabreConfig};
use wire::rules::AllRules;
use wire::{Nanos, Rules};

use crate::objects::memory::Memory;
use random::Dice;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) transfers: u8,
    pub(crate) depth: u32,
    pub(crate) most_blocks: usize,
    pub(crate) writers: usize,
    /// Blocks leave the memory's caches for no reason.
    pub(crate) evictions: bool,
    /// Attempts that each of three requesters makes.
    pub(crate) attempts: u64,
}

impl Plan {
    pub(crate) const fn new(mode: Mode) -> Self {
        Self { mode, transfers: 2, depth: 4, most_blocks: 6, writers: 2, evictions: true, attempts: 12 }
    }

    /// Objects longer than what a stream buffer watches, one writer, and nothing evicted.
    pub(crate) const fn long(mode: Mode) -> Self {
        Self { most_blocks: 24, writers: 1, evictions: false, ..Self::new(mode) }
    }
}

const REQUESTERS: u32 = 3;

/// A run. Returns how many attempts were whole, and torn.
pub(crate) fn run<R: Rules>(rules: R, plan: Plan, seed: u64) -> Result<(u64, u64), String> {
    let mut random = Dice::new(seed);
    let objects = objects(&mut random, plan.most_blocks);
    let mut memory = Memory::new(&objects, plan.writers);
    memory.is_mute = plan.mode == Mode::VersionFirst;
    memory.is_large = !plan.evictions;
    let config =
        SabreConfig { mode: plan.mode, transfers: plan.transfers, depth: plan.depth, ..SabreConfig::PAPER };
    let mut engine = Engine::with_rules(rules, config);
    // Attempt, object, blocks that were asked for, and those of them that were not answered.
    let mut asking: BTreeMap<u32, (Attempt, Object, u32, u32)> = BTreeMap::new();
    let mut next = [1_u64; REQUESTERS as usize];
    let (mut out, mut whole, mut torn) = (Vec::new(), 0, 0);
    for step in 0.. {
        if step > 200_000 {
            return Err(format!("stuck: {engine:?}"));
        }
        let requester = random.pick(REQUESTERS as usize) as u32;
        match asking.get_mut(&requester) {
            None if next[requester as usize] <= plan.attempts => {
                let attempt = Attempt { requester, number: next[requester as usize] };
                let object = objects[random.pick(objects.len())];
                match engine.on_register(Nanos::ZERO, attempt, object) {
                    Ok(()) => {
                        asking.insert(requester, (attempt, object, 0, 0));
                        next[requester as usize] += 1;
                        // What is late, of the attempt before.
                        let before = Attempt { number: attempt.number - 1, ..attempt };
                        if random.pick(4) == 0 && engine.on_request(Nanos::ZERO, before, 1).is_ok() {
                            return Err("a request of an earlier attempt was taken".to_owned());
                        }
                    }
                    Err(Refused::Full) => {}
                    Err(why) => return Err(format!("{attempt:?} was refused: {why:?}")),
                }
            }
            Some((attempt, object, asked, left)) if *asked < object.blocks => {
                let more = 1 + random.pick((object.blocks - *asked) as usize) as u32;
                engine.on_request(Nanos::ZERO, *attempt, more).map_err(|why| format!("{why:?}"))?;
                *asked += more;
                *left += more;
            }
            _ => {}
        }
        if random.pick(2) == 0
            && let Some(load) = engine.select(&mut out)
        {
            memory.ask(load);
        }
        let writing = random.pick(64) < 48;
        memory.step(&mut random, &mut engine, writing, &mut out);
        for effect in out.drain(..) {
            match effect {
                Effect::Reply { attempt, .. } | Effect::Empty { attempt, .. } => {
                    let (of, .., left) =
                        asking.get_mut(&attempt.requester).ok_or("a block after the verdict")?;
                    if *of != attempt || *left == 0 {
                        return Err(format!("{effect:?} was not asked for"));
                    }
                    *left -= 1;
                }
                Effect::Verdict { attempt, whole: verdict } => {
                    let (of, object, _, left) =
                        asking.remove(&attempt.requester).ok_or("a second verdict")?;
                    if of != attempt || left > 0 {
                        return Err(format!("a verdict for {attempt:?} too late, or too early"));
                    }
                    let blocks = memory.delivered.remove(&attempt).unwrap_or_default();
                    if verdict {
                        judge(&object, &blocks)?;
                        whole += 1;
                    } else {
                        torn += 1;
                    }
                }
                Effect::Unlock { block } => memory.unlock(block),
            }
        }
        if asking.is_empty() && next.iter().all(|next| *next > plan.attempts) && memory.is_idle() {
            break;
        }
    }
    if engine.active() != 0 || memory.is_locked() {
        return Err(format!("something is left: {engine:?}"));
    }
    Ok((whole, torn))
}

fn objects(random: &mut Dice, most_blocks: usize) -> Vec<Object> {
    let mut first = 0;
    (0..2)
        .map(|_| {
            let blocks = 1 + random.pick(most_blocks) as u32;
            let object = Object { first, blocks, header: random.pick(blocks as usize) as u32 };
            first += u64::from(blocks);
            object
        })
        .collect()
}

/// All blocks, and all of one version.
fn judge(object: &Object, blocks: &BTreeMap<u32, u64>) -> Result<(), String> {
    if blocks.len() != object.blocks as usize {
        return Err(format!("whole, with {} of {} blocks", blocks.len(), object.blocks));
    }
    let first = blocks[&0];
    match blocks.iter().find(|(_, stamp)| **stamp != first) {
        Some((index, stamp)) => Err(format!("whole, but torn: block 0 of {first}, block {index} of {stamp}")),
        None => Ok(()),
    }
}

const MODES: [Mode; 3] = [Mode::Speculative, Mode::VersionFirst, Mode::Locked];

fn all_hold(plan: Plan, seeds: u64) -> (u64, u64) {
    let (mut whole, mut torn) = (0, 0);
    for seed in 0..seeds {
        match run(AllRules, plan, seed) {
            Ok((more_whole, more_torn)) => (whole, torn) = (whole + more_whole, torn + more_torn),
            Err(why) => panic!("{plan:?}, seed {seed}: {why}"),
        }
    }
    (whole, torn)
}

#[test]
fn no_torn_object_is_called_whole() {
    for mode in MODES {
        let (whole, torn) = all_hold(Plan::new(mode), 400);
        assert!(whole > 100 && torn > 100, "{mode:?}: both happen: {whole} whole, {torn} torn");
    }
}

#[test]
fn objects_longer_than_the_stream_buffer_are_guarded_too() {
    for mode in MODES {
        let (whole, torn) = all_hold(Plan::long(mode), 100);
        assert!(whole > 20 && torn > 20, "{mode:?}: both happen: {whole} whole, {torn} torn");
    }
}

#[test]
fn without_writers_everything_is_whole() {
    for mode in MODES {
        let plan = Plan { writers: 0, evictions: mode != Mode::Locked, ..Plan::new(mode) };
        let (whole, torn) = all_hold(plan, 200);
        let expected = if mode == Mode::Speculative { torn } else { 0 };
        // A block that leaves the caches in the window looks like one that is written.
        assert_eq!(torn, expected, "{mode:?}");
        assert!(whole > torn * 2, "{mode:?}: {whole} whole, {torn} torn");
    }
    let quiet = Plan { writers: 0, evictions: false, ..Plan::new(Mode::Speculative) };
    assert_eq!(all_hold(quiet, 200).1, 0, "nothing is written, and nothing leaves");
}

#[test]
fn a_load_is_for_a_block_of_the_object() {
    let mut engine = Engine::new(SabreConfig::PAPER);
    let (attempt, object) = (Attempt { requester: 1, number: 1 }, Object { first: 10, blocks: 3, header: 0 });
    engine.on_register(Nanos::ZERO, attempt, object).unwrap();
    engine.on_request(Nanos::ZERO, attempt, 3).unwrap();
    let mut out = Vec::new();
    let loads: Vec<Load> = std::iter::from_fn(|| engine.select(&mut out)).collect();
    let blocks: Vec<u64> = loads
        .iter()
        .map(|load| match load {
            Load::Block { block, .. } => *block,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(blocks, [10, 11, 12]);
}
