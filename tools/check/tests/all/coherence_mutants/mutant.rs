//! A rule left out, and how its mutant is caught: what the tables of all protocols share.

use std::fmt;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};

use check::explore::coherence::{Coverage, FlowCC};
use check::explore::joint::Joint;
use check::explore::{Explored, Protocol, Verdict};
use check::rack::{self, Effort, Failure};
use check::{coherence, locks};
use wire::{AllRules, Rule, Rules, Without};

/// What became of a mutant: what was found wrong, or nothing.
type Found = Option<String>;

/// A rule, left out.
pub(crate) struct Mutant {
    pub(crate) rule: Rule,
    /// What catches it.
    pub(crate) by: By,
    pub(crate) without: &'static str,
}

/// A handler given the packets of a rare run.
type Scenario<R> = fn(R) -> Result<(), String>;

/// What catches a mutant. Numbers are the first seed that is tried.
pub(crate) enum By {
    /// All states of a scope.
    Scope(&'static str),
    /// All states of a scope in which memory comes and goes.
    JointScope(&'static str),
    /// Nothing: without the rule a scope has the very same states.
    Subsumed(&'static str),
    /// Random runs.
    Runs,
    /// With restarts.
    Restarts(u64),
    /// With restarts, and memory with copies.
    Copies(u64),
    /// Random runs of locks, in which nothing is lost and nothing comes twice.
    Lossless(u64),
    /// With all faults.
    LockRuns(u64),
    /// With restarts.
    LockRestarts(u64),
    /// In which locks end, too.
    LockEnds(u64),
    /// A scenario, which must go well with all rules in place.
    Scenario(&'static str, Scenario<Without>, Scenario<AllRules>),
}

/// The scenario of this name in the `scenarios` of a table.
macro_rules! scenario {
    ($name:ident) => {
        $crate::coherence_mutants::mutant::By::Scenario(stringify!($name), scenarios::$name, scenarios::$name)
    };
}
pub(crate) use scenario;

/// A table: a rule, what catches its mutant, what goes wrong without it.
macro_rules! mutants {
    ($($rule:ident, $by:expr, $without:literal;)*) => {
        pub(crate) const MUTANTS: &[Mutant] =
            &[$(Mutant { rule: wire::Rule::$rule, by: $by, without: $without }),*];
    };
}
pub(crate) use mutants;

/// Where it is looked for at most.
const MOST: usize = 400_000;
const SEEDS: u64 = 300;
/// A death at the wrong moment is rare.
const MANY_SEEDS: u64 = 1000;
const STEPS: usize = 3000;

impl By {
    /// What it finds where this rule does not hold.
    fn look(&self, rule: Rule) -> Found {
        let rules = Without(rule);
        match *self {
            Self::Scope(name) => found(explore(rules, name)),
            Self::JointScope(name) => {
                let scope = Joint::scope(name).unwrap_or_else(|| panic!("there is no scope {name}"));
                found(Joint::explore_with_rules(rules, scope, MOST, |_| {}))
            }
            Self::Subsumed(name) => {
                let facts = |it: Explored<Coverage>| (it.states, it.steps, it.verdict);
                let same = facts(explore(rules, name)) == facts(explore(AllRules, name));
                same.then(|| "the same states".to_owned())
            }
            Self::Runs => blocks(rules, coherence::Plan::from_seed, 0),
            Self::Restarts(from) => blocks(rules, coherence::Plan::with_restarts, from),
            Self::Copies(from) => {
                let run = |seed| {
                    let plan = coherence::Plan::with_copies(seed);
                    coherence::Rack::run_seed(rules, plan, seed, Effort::steps(2 * STEPS)).err()
                };
                first_of(from..from + MANY_SEEDS, run)
            }
            Self::Lossless(from) => regions(rules, locks::Plan::lossless, from),
            Self::LockRuns(from) => regions(rules, locks::Plan::from_seed, from),
            Self::LockRestarts(from) => regions(rules, locks::Plan::with_restarts, from),
            Self::LockEnds(from) => regions(rules, |seed| locks::Plan::with_restarts(seed).freeing(), from),
            Self::Scenario(_, mutant, faithful) => {
                assert_eq!(faithful(AllRules), Ok(()), "the whole protocol must stand it");
                let caught = panic::catch_unwind(AssertUnwindSafe(|| mutant(rules)));
                caught.map_or_else(|_| Some("a panic".into()), Result::err)
            }
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(name) => write!(f, "scope {name}"),
            Self::JointScope(name) => write!(f, "joint scope {name}"),
            Self::Subsumed(name) => write!(f, "subsumed in {name}"),
            Self::Runs | Self::LockRuns(_) => f.write_str("random runs"),
            Self::Restarts(_) | Self::LockRestarts(_) => f.write_str("runs with restarts"),
            Self::Copies(_) => f.write_str("runs with copies"),
            Self::Lossless(_) => f.write_str("runs without faults"),
            Self::LockEnds(_) => f.write_str("runs in which locks end"),
            Self::Scenario(name, ..) => write!(f, "scenario {name}"),
        }
    }
}

fn explore<R: Rules>(rules: R, name: &str) -> Explored<Coverage> {
    let scope = FlowCC::scope(name).unwrap_or_else(|| panic!("there is no scope {name}"));
    FlowCC::explore_with_rules(rules, scope, MOST, |_| {})
}

fn found<C>(explored: Explored<C>) -> Found {
    let Verdict::Broken(found) = explored.verdict else { return None };
    Some(format!("{} (after {} states)", first_line(&found.what), explored.states))
}

/// The first random run of blocks, from this seed on, that goes wrong.
fn blocks(rules: Without, plan: fn(u64) -> coherence::Plan, from: u64) -> Found {
    first(from, |seed| coherence::Rack::run_seed(rules, plan(seed), seed, Effort::steps(STEPS)).err())
}

/// The same of locks.
fn regions(rules: Without, plan: fn(u64) -> locks::Plan, from: u64) -> Found {
    first(from, |seed| locks::LockRack::run_seed(rules, plan(seed), seed, Effort::steps(STEPS)).err())
}

fn first(from: u64, run: impl Fn(u64) -> Option<rack::Failure>) -> Found {
    first_of(from..from + SEEDS, run)
}

fn first_of(mut seeds: Range<u64>, run: impl Fn(u64) -> Option<rack::Failure>) -> Found {
    seeds.find_map(|seed| {
        let why: Failure = run(seed)?;
        Some(format!("{} (seed {seed})", first_line(why.what())))
    })
}

/// What fits into a line of the output.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(140).collect()
}

/// Asserts that every mutant is caught, or the one that `RACKMEM_MUTANT` names; prints what caught it.
///
/// # Panics
/// If one is not.
pub(crate) fn assert_caught(mutants: &[Mutant]) {
    let only = std::env::var("RACKMEM_MUTANT").unwrap_or_default();
    let mut missed = Vec::new();
    for Mutant { rule, by, .. } in mutants {
        let name = format!("{rule:?}");
        if !only.is_empty() && name != only {
            continue;
        }
        let start = std::time::Instant::now();
        let found = by.look(*rule);
        let took = start.elapsed();
        match found {
            Some(what) => println!("{name:<30} {:<26} {took:>6.1?} {what}", by.to_string()),
            None => missed.push(rule),
        }
    }
    assert!(missed.is_empty(), "nothing catches {missed:?}");
}

/// The rows of a table in the document.
pub(crate) fn rows(mutants: &[Mutant]) -> String {
    mutants.iter().map(|it| format!("| `{:?}` | {} | {} |\n", it.rule, it.without, it.by)).collect()
}
