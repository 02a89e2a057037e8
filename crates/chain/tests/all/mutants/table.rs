//! The rules of chains, in the order of `Rule::CHAINS`: what goes wrong without each, and what catches its mutant.
//!
//! Three tests check it: `tests/chains`, which also writes the table's part of `docs/mutants.md`, `tests/steered` and `tests/copies`.
//! What must always hold: what a row claims is tried, and succeeds.

use wire::Rule;

use Runs::{Native, No, Steered, SteeredCopies};

/// Whether random runs catch it, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runs {
    No,
    /// With so many copies, and with more; and the first seed that is tried.
    Native(u8, u64),
    /// Through a switch that steers.
    Steered,
    /// The same, with copies; and the first seed that is tried.
    SteeredCopies(u64),
}

/// A rule, left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) rule: Rule,
    pub(crate) without: &'static str,
    /// Empty: there is none.
    pub(crate) scenario: &'static str,
    pub(crate) runs: Runs,
    /// Every order of a few operations on copies catches it.
    pub(crate) orders: bool,
}

impl Row {
    /// What catches it, in words.
    pub(crate) fn by(&self) -> String {
        let scenario = (!self.scenario.is_empty()).then(|| format!("scenario `{}`", self.scenario));
        let runs = match self.runs {
            No => None,
            Native(..) => Some("random runs".to_owned()),
            Steered => Some("random runs, steered".to_owned()),
            SteeredCopies(_) => Some("random runs, steered, with copies".to_owned()),
        };
        let orders = self.orders.then(|| "every order".to_owned());
        [scenario, runs, orders].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Asserts that all these rows' mutants were caught.
///
/// # Panics
/// If one was not.
pub(crate) fn assert_caught(of: impl Fn(&Row) -> bool, caught: &[Rule]) {
    for row in ROWS.iter().filter(|row| of(row)) {
        let Row { rule, without, .. } = row;
        assert!(caught.contains(rule), "nothing catches {rule:?} ({without}), but its row says {}", row.by());
    }
}

macro_rules! rows {
    ($($rule:ident, $scenario:literal, $runs:expr, $orders:literal, $without:literal;)*) => {
        pub(crate) const ROWS: &[Row] = &[$(Row {
            rule: Rule::$rule,
            without: $without,
            scenario: $scenario,
            runs: $runs,
            orders: $orders,
        }),*];
    };
}

rows! {
    CursorsExpire, "torn", No, false, "a reader that was held up takes the head of one entry and the value of the next one in its slot";
    IndeterminateAppendsAreSettled, "", Native(1, 1), false, "an entry that was appended after all is written again, in the middle of a chain";
    SlotsAreQuarantined, "torn", No, false, "a slot is used anew while somebody reads it";
    UsesBeginWithOne, "", Steered, false, "an append behind an entry whose WRITE is still in flight goes to memory that nobody has written to, and is overwritten";
    ChainsAreClosed, "", Native(1, 1), false, "somebody appends to a chain that the metadata server has forgotten";
    TheDeadAreSwept, "", Native(1, 1), false, "what a dead client was given is lost";
    RefusedAreRenewed, "", Steered, false, "an entry is appended that others stand behind, who were refused";
    IndeterminateAppendsWait, "indeterminate", No, false, "a slot is used anew, and comes into a chain with the entry that it stands behind";
    AllCopiesAreWritten, "", Native(2, 1), true, "an entry is in a chain whose second copy was never written";
    AllCopiesAreLinked, "", Native(2, 1), true, "a put has ended that is only in the copy that dies";
    CopiesHaveAnOrder, "", Native(2, 5), true, "what the metadata server brings to the other copies is another entry than a put has brought there";
    GetsReadTheLastCopy, "last_copy", No, true, "a get returns what is only in the copy that dies";
    AppendsWaitForCopies, "", Native(2, 7), true, "a put has ended behind an entry that is only in the copy that dies";
    SteeredAppendsWaitForCopies, "", SteeredCopies(1), false, "a put has ended that a switch has sent behind an entry that is only in the copy that dies";
    SteeredAppendsOfTheDeadAreSettled, "", SteeredCopies(470), false, "an entry that is in the chain already is appended once more, and follows itself";
    LateLinksAreSettled, "late_link", Native(2, 42), false, "an entry that the metadata server has finished long ago is appended once more";
    WalksFinishLinks, "", Native(2, 9), true, "what a client that died has left in the first copy is gone behind, and dies with it";
    AllCopiesAreClosed, "", Native(2, 9), true, "somebody appends to a chain that is closed in the copy that died";
    BackupsKnowFirst, "", Native(2, 15), false, "a backup that takes over gives a slot to somebody that another one has";
    BackupsHaveAnOrder, "", Native(3, 15), false, "a backup that takes over lacks what the next one has: they are not the same any more";
    BackupsJoinInOrder, "", Native(3, 210), false, "a new backup that takes over lacks what somebody was told, or has more than the one before it";
    WalksAreTakenOver, "", Native(2, 2), false, "whoever waits for a walk of a server that died waits for ever";
}
