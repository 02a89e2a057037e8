//! The switch's programs for a kernel, beside their models: in every state that small racks reach, with every packet that may
//! come then, they send the same and keep the same.

use check::bytecode::Beside;
use check::explore::coherence::{self, FlowCC};
use check::explore::locks::{self, Locks};
use check::explore::{Protocol, Verdict};
use wire::Rule;

const BLOCKS: &[&str] = &[
    "switch",
    "switch-loss",
    "switch-duplicate",
    "switch-timeout",
    "add",
    "remove",
    "queue-loss",
    "queue-3-writers",
    "peek-switch",
    "switch-evict",
];
const LOCKS: &[&str] = &[
    "switch-two-turns",
    "switch-loss",
    "switch-duplicate",
    "switch-try",
    "switch-evict",
    "switch-free-loss",
    "full",
];

fn blocks(name: &str, beside: Beside) -> Verdict {
    let scope = FlowCC::scope(name).expect("there is such a scope");
    FlowCC::explore(&coherence::Scope { beside, ..*scope }, 200_000, |_| {}).verdict
}

fn locks(name: &str, beside: Beside) -> Verdict {
    let scope = Locks::scope(name).expect("there is such a scope");
    Locks::explore(&locks::Scope { beside, ..*scope }, 200_000, |_| {}).verdict
}

/// Without each of these rules the program is told from the model in one of these scopes.
fn are_told_apart(rules: &[Rule], names: &[&str], explore: fn(&str, Beside) -> Verdict) {
    for rule in rules {
        let is_told_apart = names.iter().any(|name| match explore(name, Beside::ProgramWithout(*rule)) {
            Verdict::Holds => false,
            Verdict::Broken(found) => {
                assert!(found.what.contains("in the program"), "{rule:?}, {name}: {}", found.what);
                true
            }
            Verdict::Incomplete => panic!("{name} is larger than that"),
        });
        assert!(is_told_apart, "{rule:?}");
    }
}

#[test]
fn in_every_state_the_program_for_blocks_does_what_its_model_does() {
    for name in BLOCKS {
        assert_eq!(blocks(name, Beside::Program), Verdict::Holds, "{name}");
    }
}

#[test]
fn in_every_state_the_program_for_locks_does_what_its_model_does() {
    for name in LOCKS {
        assert_eq!(locks(name, Beside::Program), Verdict::Holds, "{name}");
    }
}

#[test]
fn programs_without_a_rule_are_told_apart_in_some_state() {
    // The others are rules of nodes, or are not missed by the packets of these scopes.
    let of_blocks = [
        Rule::LockSerializes,
        Rule::ReadUnlockMerges,
        Rule::ForwarderSaysRepeated,
        Rule::LastUnlockFiltersRequests,
        Rule::SwitchRecordsAllUnlocks,
        Rule::Scoreboard,
        Rule::JoinsOnce,
    ];
    are_told_apart(&of_blocks, &["switch-duplicate", "add", "queue-loss"], blocks);
    let of_locks = [Rule::MoveIsOfThisTerm, Rule::ReadersAreInvalidated, Rule::HolderQueues];
    are_told_apart(&of_locks, &["switch-two-turns", "switch-duplicate"], locks);
}
