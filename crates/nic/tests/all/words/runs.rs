//! Random runs: requesters change a few words of a few lines, as fast as they are let.

use std::collections::{BTreeMap, VecDeque};

use nic::words::{
    Done, Effect, EntryId, Folder, Line, Lines, LinesConfig, Operands, Operation, Refused, Request, WORDS,
    Width,
};
use wire::Rules;
use wire::rules::AllRules;

use random::Dice;

/// Lines that requests are for: two of them have the same place in a cache of two.
const LINES: u64 = 3;

pub(crate) fn request(random: &mut Dice, ticket: u64) -> Request {
    let width = if random.pick(2) == 0 { Width::Word } else { Width::Double };
    // Few words, so that they meet, and both halves of some.
    let address = random.next() % LINES * 64 + (random.next() % 2) * 8;
    let address = if width == Width::Word { address + (random.next() % 2) * 4 } else { address };
    let operation = Operation::ALL[random.pick(Operation::ALL.len())];
    let small = |random: &mut Dice| [0, 1, u64::MAX, 1 << 31, 1 << 63, 7][random.pick(6)];
    let operands = Operands { operand: small(random), expected: small(random) };
    Request { ticket, address, width, operation, operands }
}

/// One thing at a time, on bytes.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<u64, u8>,
}

impl Model {
    fn execute(&mut self, request: &Request) -> u64 {
        let bytes = request.width.bytes();
        let byte = |at: u64| self.bytes.get(&at).copied().unwrap_or(0);
        let raw = (0..bytes).fold(0_u64, |raw, at| raw | u64::from(byte(request.address + at)) << (8 * at));
        let extend = |value: u64| {
            if request.width == Width::Word { value as u32 as i32 as i64 } else { value as i64 }
        };
        let (old, operand, expected) =
            (extend(raw), extend(request.operands.operand), extend(request.operands.expected));
        let new = match request.operation {
            Operation::Add => old.wrapping_add(operand),
            Operation::And => old & operand,
            Operation::Or => old | operand,
            Operation::Xor => old ^ operand,
            Operation::Min => old.min(operand),
            Operation::Max => old.max(operand),
            Operation::CompareSwap if old == expected => operand,
            Operation::Swap => operand,
            Operation::CompareSwap | Operation::Load => old,
        };
        for at in 0..bytes {
            self.bytes.insert(request.address + at, (new as u64 >> (8 * at)) as u8);
        }
        old as u64
    }

    fn line(&self, line: u64) -> Line {
        std::array::from_fn(|word| {
            (0..8).fold(0, |value, byte| {
                let at = line * 64 + word as u64 * 8 + byte;
                value | u64::from(self.bytes.get(&at).copied().unwrap_or(0)) << (8 * byte)
            })
        })
    }
}

pub(crate) fn run<R: Rules>(rules: R, config: LinesConfig, seed: u64) -> Result<(), String> {
    const REQUESTS: u64 = 300;
    let mut random = Dice::new(seed);
    let mut engine = Lines::with_rules(rules, config);
    let mut memory: BTreeMap<u64, Line> = BTreeMap::new();
    let mut owned: BTreeMap<u64, EntryId> = BTreeMap::new();
    let mut fetches: Vec<(EntryId, u64)> = Vec::new();
    // What each line's requests were, in the order in which they came: that is the order in which they must take effect.
    let mut came: BTreeMap<u64, VecDeque<Request>> = BTreeMap::new();
    let (mut model, mut next, mut done, mut waits) = (Model::default(), 0, 0, None::<Request>);
    let mut out = Vec::new();
    for step in 0.. {
        if step > 100_000 {
            return Err(format!("stuck: {engine:?}"));
        }
        match random.pick(4) {
            0 | 1 if next < REQUESTS => {
                let it = waits.take().unwrap_or_else(|| request(&mut random, next));
                let (line, merged) = (it.address / 64, engine.counters().merged);
                let is_pending = |line: &u64| came.get(line).is_some_and(|requests| !requests.is_empty());
                let place = u64::from(config.lines - 1);
                let is_alone = !came
                    .keys()
                    .any(|other| *other != line && (other ^ line) & place == 0 && is_pending(other));
                let joins = is_pending(&line) && is_alone;
                match engine.on_request(it, &mut out) {
                    Ok(()) => {
                        if joins && engine.counters().merged == merged {
                            return Err(format!("{it:?} does not join what is pending"));
                        }
                        came.entry(line).or_default().push_back(it);
                        next += 1;
                    }
                    Err(Refused::Full) => waits = Some(it),
                    Err(why) => return Err(format!("{it:?}: {why:?}")),
                }
            }
            2 if !fetches.is_empty() => {
                let (entry, line) = fetches.swap_remove(random.pick(fetches.len()));
                engine.on_line(entry, memory.get(&line).copied().unwrap_or([0; WORDS]));
            }
            3 => {
                engine.execute(&mut out);
            }
            _ => {}
        }
        for effect in out.drain(..) {
            match effect {
                Effect::Fetch { entry, line } => {
                    if owned.insert(line, entry).is_some() {
                        return Err(format!("line {line} is fetched twice"));
                    }
                    if owned
                        .keys()
                        .any(|other| *other != line && (other ^ line) & u64::from(config.lines - 1) == 0)
                    {
                        return Err(format!("line {line} has the place of another: {owned:?}"));
                    }
                    fetches.push((entry, line));
                }
                Effect::Release { line, changed } => {
                    owned.remove(&line).ok_or_else(|| format!("line {line} is released twice"))?;
                    if let Some(changed) = changed {
                        memory.insert(line, changed);
                    }
                    if memory.get(&line).copied().unwrap_or([0; WORDS]) != model.line(line) {
                        return Err(format!("line {line} comes back as something else"));
                    }
                }
                Effect::Done(Done { ticket, old }) => {
                    let line = came
                        .iter()
                        .find(|(_, requests)| requests.front().is_some_and(|first| first.ticket == ticket))
                        .map(|(line, _)| *line)
                        .ok_or_else(|| format!("request {ticket} is done twice, or before its turn"))?;
                    let it = came.get_mut(&line).and_then(VecDeque::pop_front).expect("it was found");
                    let expected = model.execute(&it);
                    if old != expected {
                        return Err(format!("{it:?} got {old:#x}, and not {expected:#x}"));
                    }
                    done += 1;
                }
            }
        }
        if done == REQUESTS && engine.pending() == 0 {
            break;
        }
    }
    let counted = engine.counters();
    if counted.taken != REQUESTS {
        return Err(format!("{counted:?}"));
    }
    Ok(())
}

/// So small that everything is full at times.
pub(crate) const SMALL: LinesConfig = LinesConfig { entries: 4, subentries: 8, lines: 2 };

#[test]
fn words_are_changed_as_if_one_request_came_after_the_other() {
    for seed in 0..400 {
        for config in [
            SMALL,
            LinesConfig { entries: 1, ..SMALL },
            LinesConfig { lines: 1, ..SMALL },
            LinesConfig::PAPER,
        ] {
            if let Err(why) = run(AllRules, config, seed) {
                panic!("{config:?}, seed {seed}: {why}");
            }
        }
    }
}

#[test]
fn a_fold_does_what_its_requests_do_one_after_the_other() {
    let mut folder = Folder::default();
    for seed in 0..2_000 {
        let mut random = Dice::new(seed);
        let requests: Vec<Request> = (0..1 + seed % 24).map(|ticket| request(&mut random, ticket)).collect();
        for fold in folder.fold(&requests) {
            let mut model = Model::default();
            let start = random.next();
            for at in 0..8 {
                model.bytes.insert(fold.address() + at, (start >> (8 * at)) as u8);
            }
            let old = if fold.width() == Width::Word { start & 0xffff_ffff } else { start };
            let of_word: Vec<&Request> = requests
                .iter()
                .filter(|request| request.address == fold.address() && request.width == fold.width())
                .collect();
            let expected: Vec<Done> = of_word
                .iter()
                .map(|request| Done { ticket: request.ticket, old: model.execute(request) })
                .collect();
            assert_eq!(fold.done(old).collect::<Vec<_>>(), expected, "seed {seed}");
            let word = Request { operation: Operation::Load, ..*of_word[0] };
            assert_eq!(fold.width().signed(fold.apply(old)) as u64, model.execute(&word), "seed {seed}");
            if let Some(sum) = fold.sum() {
                assert_eq!(
                    fold.width().signed(old.wrapping_add(sum)),
                    fold.width().signed(fold.apply(old)),
                    "seed {seed}"
                );
            }
            assert!(!fold.only_loads() || fold.width().signed(fold.apply(old)) == fold.width().signed(old));
        }
    }
}
