//! The rules of steering, in the order of `Rule::STEERING`: what goes wrong without each, and what catches its mutant.
//!
//! Two tests check it: `crates/switch/tests/all/chains` has the scenarios and all orders of a few appends, and writes the table's part of
//! `docs/mutants.md`; `crates/chain/tests/all/steered` has the random runs. What must always hold: what a row claims is tried, and succeeds.

use wire::Rule;

use Orders::{Appends, Bound, No};

/// Whether a search of all orders of a few appends catches it, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Orders {
    No,
    Appends,
    /// Where words are bound to queue pairs.
    Bound,
}

/// A rule, left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) rule: Rule,
    pub(crate) without: &'static str,
    /// Each rule has one.
    pub(crate) scenario: &'static str,
    pub(crate) orders: Orders,
    /// Random runs of clients and NICs catch it. For the others it would take luck, or performance is all that they cost.
    pub(crate) runs: bool,
}

impl Row {
    /// What catches it, in words.
    pub(crate) fn by(&self) -> String {
        let orders = if self.orders == No { "" } else { ", every order" };
        let runs = if self.runs { ", random runs" } else { "" };
        format!("scenario `{}`{orders}{runs}", self.scenario)
    }
}

macro_rules! rows {
    ($($rule:ident, $scenario:ident, $orders:expr, $runs:literal, $without:literal;)*) => {
        pub(crate) const ROWS: &[Row] = &[$(Row {
            rule: Rule::$rule,
            without: $without,
            scenario: stringify!($scenario),
            orders: $orders,
            runs: $runs,
        }),*];
    };
}

rows! {
    CompareIsRewritten, address_only, Appends, true, "**the published prototype**, which rewrites only the address: once a slot was used before, the memory swaps nothing, and the update is lost; while none was, it works";
    RepeatsAreAlike, repeats, Appends, true, "a packet that comes again goes where the client sent it, and is taken for the steered one";
    NumbersAreNew, late_copies, Appends, true, "a late copy is taken for another append";
    LastWriteCounts, last_write, No, false, "an entry is appended to another key's chain";
    ReadsTakeWhatIsAcknowledged, reads, No, true, "a get returns what may never have been put";
    ReadsBringWhatTheyWereSentFor, other_uses, No, false, "a get returns what was in the slot before";
    UnknownPeersReadNothing, other_incarnations, No, false, "after a restart, a get returns what may never have been put";
    OriginalIsRewritten, original, Appends, true, "the client appends an entry twice, and the chain becomes a ring";
    AcksWait, acks, Appends, true, "a put has ended, and a get does not find it";
    FollowersFall, followers, No, true, "a put has ended whose entry is in no chain";
    MismatchesReset, mismatches, No, false, "every later append is sent behind one that failed";
    AppendsOfUnknownPeersAreIndeterminate, unknown_peers, Appends, true, "after a restart, another word is taken for the one that was asked about";
    AllAreBound, all_are_bound, No, false, "a queue pair that is older than the switch changes a word beside a WRITE, and is overwritten";
    FillersAreAwaited, fillers, No, true, "a client's NIC takes its WRITE for executed, which was lost";
    NumbersAreTakenOnce, numbers, No, true, "an append fails because it has succeeded";
    HolesAreFilled, holes, No, false, "a dead client's entry comes into the chain after its memory was given away";
    BegunAnewIsIndeterminate, anew, Bound, false, "a put has ended that the next bound queue pair never executed";
    OverflowsAreFirst, overflows, No, false, "an append on a client's own queue pair is overwritten by a WRITE that was in flight";
    WritesFindNothingSent, nothing_sent, Bound, true, "an append that is not steered, or the end of a chain, is overwritten";
    WritesTakeWhatIsAcknowledged, acknowledged, No, false, "a WRITE hits the next use of a slot whose append was refused";
    SlotsAreLeftClean, places, No, false, "a key inherits another one's tail";
    KnowledgeExpires, expires, No, false, "an append is sent to a slot that has come round";
    IntroductionsNameTheSwitch, introductions, No, false, "after a restart, a connection is known on which the switch before has moved an append, and another word is taken for the one that was asked about";
}
