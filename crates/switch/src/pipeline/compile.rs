//! Flattens a verified program for the loop that runs it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::alu::Alu;
use super::builder::ProgramBuilder;
use super::cells::Cells;
use super::code::{Actions, Body, Case, Code, FlatTable, KEY_PARTS, KeyPart, Range, Rows, SELECTORS, Way};
use super::error::BuildError;
use super::phv::Field;
use super::primitive::Primitive;
use super::program::Program;
use super::specialize::Split;
use super::stage_map::StageMap;
use super::step::{Compute, Gate, Rmw, Step, Table};
use super::verify::{mask, reads, writes};

/// The select field of a step that has one program left, which it always runs.
pub(crate) const DECIDED: Field = Field::SINK;

/// Keys of up to so many bits are looked up directly.
const DIRECT_BITS: u32 = 14;

/// Makes a verified program run.
pub(super) fn program(source: ProgramBuilder, map: StageMap) -> Result<Program, BuildError> {
    let code = code(&source, core::iter::once((&source.steps[..], None)))?;
    let arrays = source.arrays.iter().map(|array| Cells::new(array.bits, array.entries)).collect();
    Ok(Program { source: Arc::new(source), code, arrays, map, passes: 0 })
}

/// Flattens a program's steps, or the blocks that are left of them for some packets.
pub(super) fn code<'a>(
    source: &ProgramBuilder,
    blocks: impl Iterator<Item = (&'a [Step], Option<&'a Split>)>,
) -> Result<Code, BuildError> {
    let mut flat = Flattener::new(source);
    let mut starts = Vec::new();
    for (steps, next) in blocks {
        starts.push(small(flat.steps.len())?);
        flat.block(steps, next, &starts)?;
    }
    Ok(Code {
        start: starts.pop().map_or(0, usize::from),
        steps: flat.steps.into(),
        ways: flat.ways.into(),
        selects: flat.selects.into(),
        tables: flat.tables.into(),
        primitives: flat.primitives.into(),
        targets: flat.targets.into(),
    })
}

/// Steps that share a gate.
type ScheduledGroup<'a> = (Option<Gate>, Vec<&'a Step>);

/// Puts steps with the same gate together, where that changes nothing: a step may pass others if none of them
/// reads what the other writes, and no two write the same. (No two steps have an array in common.)
fn schedule(steps: &[Step]) -> Vec<ScheduledGroup<'_>> {
    let mut groups: Vec<ScheduledGroup<'_>> = Vec::new();
    for step in steps {
        let mut place = None;
        for (at, (gate, members)) in groups.iter().enumerate().rev() {
            let gate_changes =
                gate.is_some_and(|gate| members.iter().any(|m| writes(m).contains(&gate.field)));
            if *gate == step.gate() && !gate_changes {
                place = Some(at);
                break;
            }
            if !members.iter().all(|member| commute(member, step)) {
                break;
            }
        }
        match place {
            Some(at) => groups[at].1.push(step),
            None => groups.push((step.gate(), vec![step])),
        }
    }
    groups
}

fn commute(one: &Step, other: &Step) -> bool {
    let touches = |writer: &Step, field: &Field| writes(writer).contains(field);
    !reads(one).iter().any(|field| touches(other, field))
        && !reads(other).iter().any(|field| touches(one, field))
        && !writes(one).iter().any(|field| touches(other, field))
}

/// The steps at the head of a list that are one lookup: decided on `MatchTag`, with one index and one operand that
/// none of them changes.
fn lookup<'a>(steps: &[&'a Step]) -> Vec<&'a Rmw> {
    let tag_match = |step: &'a Step| match step {
        Step::Rmw(rmw) if rmw.select == DECIDED => match rmw.cases[..] {
            [(_, Alu::MatchTag(tag))] => Some((rmw, tag)),
            _ => None,
        },
        _ => None,
    };
    let matches: Vec<(&Rmw, Field)> = steps.iter().map_while(|step| tag_match(step)).collect();
    let Some(&(first, tag)) = matches.first() else { return Vec::new() };
    let alike = |(rmw, other): &&(&Rmw, Field)| {
        let keeps = rmw.out.is_none_or(|out| out != first.index && out != tag);
        rmw.index == first.index && *other == tag && keeps
    };
    matches.iter().take_while(alike).map(|(rmw, _)| *rmw).collect()
}

struct Flattener<'a> {
    source: &'a ProgramBuilder,
    steps: Vec<Body>,
    ways: Vec<Way>,
    selects: Vec<[Option<Case>; SELECTORS]>,
    tables: Vec<FlatTable>,
    primitives: Vec<Primitive>,
    targets: Vec<u16>,
}

impl<'a> Flattener<'a> {
    const fn new(source: &'a ProgramBuilder) -> Self {
        Self {
            source,
            steps: Vec::new(),
            ways: Vec::new(),
            selects: Vec::new(),
            tables: Vec::new(),
            primitives: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Steps, and what follows; `starts` says where the blocks before this begin.
    fn block(&mut self, steps: &[Step], next: Option<&Split>, starts: &[u16]) -> Result<(), BuildError> {
        for (gate, members) in schedule(steps) {
            let at = self.steps.len();
            if let Some(gate) = gate {
                self.steps.push(Body::Gate { gate, skip: 0 });
            }
            self.members(&members)?;
            let members = self.steps.len() - at;
            if let Some(Body::Gate { skip, .. }) = self.steps.get_mut(at) {
                *skip = small(members - 1)?;
            }
        }
        self.steps.push(match next {
            None => Body::End,
            Some(Split { field, to }) if let [no, yes] = to[..] => {
                Body::Branch { field: *field, to: [starts[no], starts[yes]] }
            }
            Some(Split { field, to }) => {
                let mask = small(to.len() - 1)?;
                let targets = to.iter().map(|block| starts[*block]);
                Body::Decide { field: *field, mask, to: appended(&mut self.targets, targets)?.from }
            }
        });
        Ok(())
    }

    /// Steps that share a gate.
    fn members(&mut self, mut rest: &[&Step]) -> Result<(), BuildError> {
        while let Some(step) = rest.first() {
            let found = lookup(rest);
            rest = &rest[found.len().max(1)..];
            let body = match step {
                Step::Rmw(_) if found.len() > 1 => self.lookup(&found)?,
                Step::Rmw(rmw) => self.rmw(rmw)?,
                Step::Table(table) => self.table(table)?,
                Step::Compute(Compute { primitives, .. }) => {
                    self.steps.extend(primitives.iter().copied().map(Body::from));
                    continue;
                }
            };
            self.steps.push(body);
        }
        Ok(())
    }

    fn lookup(&mut self, rmws: &[&Rmw]) -> Result<Body, BuildError> {
        let way = |rmw: &&Rmw| Ok(Way { array: small(rmw.array.0)?, out: rmw.out.unwrap_or(Field::SINK) });
        let ways: Result<Vec<Way>, _> = rmws.iter().map(way).collect();
        let operand = rmws[0].cases[0].1.operand().unwrap_or(Field::SINK);
        let ways = appended(&mut self.ways, ways?)?;
        Ok(Body::Lookup { index: rmws[0].index, operand, ways })
    }

    fn rmw(&mut self, rmw: &Rmw) -> Result<Body, BuildError> {
        let case = |alu: Alu| {
            let out = rmw.out.filter(|_| alu.has_output()).unwrap_or(Field::SINK);
            Case { work: alu.code(), operand: alu.operand().unwrap_or(Field::SINK), out }
        };
        let (array, index, select) = (small(rmw.array.0)?, rmw.index, rmw.select);
        if let (DECIDED, [(_, alu)]) = (select, &rmw.cases[..]) {
            return Ok(Body::Rmw { array, index, case: case(*alu) });
        }
        let mut cases = [None; SELECTORS];
        for (value, alu) in &rmw.cases {
            cases[small::<usize, _>(*value)?] = Some(case(*alu));
        }
        self.selects.push(cases);
        Ok(Body::Select { array, index, select, cases: small(self.selects.len() - 1)? })
    }

    fn actions(&mut self, table: &Table) -> Result<Actions, BuildError> {
        let all = || core::iter::once(&table.default).chain(table.rows.iter().map(|row| &row.action));
        if let Some(constants) = all().map(|action| constant(action)).collect::<Option<Vec<_>>>()
            && let Some((to, _)) = constants.iter().flatten().next().copied()
            && constants.iter().flatten().all(|(field, _)| *field == to)
        {
            let values = constants.into_iter().map(|set| set.map(|(_, value)| value)).collect();
            return Ok(Actions::Set { to, values });
        }
        let ranges: Result<_, _> =
            all().map(|action| appended(&mut self.primitives, action.iter().copied())).collect();
        Ok(Actions::Any(ranges?))
    }

    fn table(&mut self, table: &Table) -> Result<Body, BuildError> {
        let mut parts = Vec::with_capacity(table.key.len());
        let mut bits = 0;
        for field in &table.key {
            let width = self.source.fields[field.index()].bits;
            parts.push(KeyPart { field: *field, mask: mask(width), shift: bits });
            bits += width;
        }
        let rows: Vec<(u64, u64)> = table
            .rows
            .iter()
            .map(|row| {
                row.key.iter().zip(&parts).fold((0, 0), |packed, (part, place)| {
                    let (mask, value) = part.ternary(place.mask);
                    (packed.0 | mask << place.shift, packed.1 | value << place.shift)
                })
            })
            .collect();
        let actions = self.actions(table)?;
        let rows = if bits <= DIRECT_BITS { direct(&rows, bits)? } else { Rows::Scan(rows.into()) };
        let mut key = [KeyPart { field: Field::SINK, mask: 0, shift: 0 }; KEY_PARTS];
        let more_key = parts.split_off(parts.len().min(KEY_PARTS)).into();
        key[..parts.len()].copy_from_slice(&parts);
        self.tables.push(FlatTable { key, more_key, rows, actions });
        Ok(Body::Table(small(self.tables.len() - 1)?))
    }
}

/// Where things are that a list gets.
fn appended<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> Result<Range, BuildError> {
    let from = small(list.len())?;
    list.extend(more);
    Ok(Range { from, to: small(list.len())? })
}

/// The constant to which an action sets a field, if that is all it does. An empty action sets none.
fn constant(action: &[Primitive]) -> Option<Option<(Field, u64)>> {
    match *action {
        [] => Some(None),
        [Primitive::Set { to, value }] => Some(Some((to, value))),
        _ => None,
    }
}

fn direct(rows: &[(u64, u64)], bits: u32) -> Result<Rows, BuildError> {
    let action = |key: u64| rows.iter().position(|(mask, value)| key & mask == *value);
    let all: Result<Box<[u8]>, _> =
        (0..1 << bits).map(|key| action(key).map_or(Ok(0), |row| small(row + 1))).collect();
    Ok(Rows::Direct(all?))
}

/// A number in the narrower form of the flat program.
fn small<T: TryFrom<V>, V>(value: V) -> Result<T, BuildError> {
    T::try_from(value).map_err(|_| BuildError::TooLarge)
}
