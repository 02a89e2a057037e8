//! Racks with memory that outlives its node, in which nodes die at every step.

use check::explore::Protocol;
use check::explore::joint::Joint;
use wire::{Rule, Without};

use crate::exhaustive::{Counts, broken, holds, large_too};

const SCOPES: &[(&str, Counts)] = &[
    ("copies", [106_127, 349_761, 158]),
    ("copies-alone", [8720, 25_294, 27]),
    ("copies-alone-again", [24_353, 87_294, 101]),
    ("copies-backup", [30_755, 89_872, 138]),
    ("copies-allocate-again", [29_802, 103_134, 164]),
    ("copies-loss", [57_756, 190_392, 90]),
    ("copies-guard", [52_770, 177_914, 192]),
];

/// With [`LARGE_TOO`](crate::exhaustive::LARGE_TOO).
const LARGE: &[(&str, Counts)] = &[
    ("copies-backup-again", [68_756, 245_894, 431]),
    ("copies-again", [207_718, 874_153, 427]),
    ("copies-home", [101_078, 332_755, 144]),
    ("copies-home-again", [192_183, 811_617, 470]),
    ("copies-twice", [92_821, 260_854, 323]),
    ("copies-both", [121_788, 395_626, 242]),
    ("copies-return", [2_193_155, 8_530_004, 1660]),
    ("copies-return-alone", [190_634, 683_321, 293]),
    ("copies-return-home", [511_274, 1_962_927, 429]),
    ("copies-restart", [1_115_287, 3_972_012, 1083]),
    ("copies-duplicate", [120_167, 464_867, 54]),
    ("copies-three", [41_201, 146_741, 94]),
    ("copies-three-again", [78_679, 322_079, 301]),
    ("copies-two", [392_785, 1_666_778, 61]),
    ("copies-two-again", [611_479, 3_270_654, 335]),
    ("copies-two-read", [108_044, 349_303, 203]),
    ("copies-two-read-any", [9_563_263, 39_847_026, 1319]),
    ("copies-moment", [467_185, 2_302_230, 274]),
    ("copies-guard-any", [1_408_517, 5_351_272, 698]),
    ("copies-guard-again", [2_489_449, 11_854_597, 2195]),
    ("copies-allocate", [11_323, 28_134, 32]),
];

#[test]
fn what_is_promised_of_memory_with_copies_holds_whoever_dies_whenever() {
    holds::<Joint>(SCOPES);
    if large_too() {
        holds::<Joint>(LARGE);
    }
}

/// A rule, a scope that has a counterexample without it, after how many states it is found, and what it says.
type Caught = (Rule, &'static str, usize, &'static str);

const LOST: &str = "was promised";
const OLD: &str = "3:0x0 is found with write 1, and the last one is 0";

const CAUGHT: &[Caught] = &[
    (Rule::CommitBeforeGiving, "copies-backup", 19_378, LOST),
    (Rule::BatchesProtect, "copies-alone", 73, "is cached as Modified"),
    (Rule::CommitBeforeRelease, "copies-guard", 21_738, LOST),
    (Rule::BatchesAreWhole, "copies-two-again", 24_294, "is lost"),
    (Rule::FateIsAsked, "copies-alone", 1211, "the copies of 3:0x0 differ"),
    (Rule::HomeAwaitsBatches, "copies", 21_047, LOST),
    (Rule::CallsAreReplicated, "copies-allocate", 1003, "is refused the block: Unallocated"),
    (Rule::FreshIsKept, "copies-backup-again", 43_737, LOST),
    (Rule::RefillAwaitsBatches, "copies-backup-again", 26_778, LOST),
    (Rule::BatchesEndWithMemories, "copies-alone-again", 6621, OLD),
    (Rule::MemoriesBeginEmpty, "copies-alone-again", 10_673, OLD),
];

#[test]
fn some_order_of_messages_goes_wrong_without_a_rule_of_copies() {
    let mut wrong = Vec::new();
    for (rule, name, states, what) in CAUGHT {
        let scope = Joint::scope(name).expect("there is such a scope");
        let explored = Joint::explore_with_rules(Without(*rule), scope, 400_000, |_| {});
        let after = explored.states;
        let found = broken(explored);
        if after != *states || !found.what.contains(what) {
            wrong.push(format!("{rule:?}: after {after} states of {name}: {}", found.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Whoever writes again and again only delays a batch. No scope here frees memory.
    let others = Rule::COPIES.iter().filter(|rule| CAUGHT.iter().all(|(caught, ..)| caught != *rule));
    assert!(others.eq(&[Rule::BatchesAreOneMoment, Rule::CommitBeforeFree]));
}
