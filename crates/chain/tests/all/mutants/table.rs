//! The rules of chains, in the order of `wire::rules::CHAIN_NAMES`: what goes wrong without each, and what catches its mutant.
//!
//! Three tests check it: `tests/chains`, which also writes the table's part of `docs/mutants.md`, `tests/steered` and `tests/copies`.
//! What must always hold: what a row claims is tried, and succeeds.

use Runs::{Native, No, Steered};

/// Whether random runs catch it, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runs {
    No,
    /// With one copy and with several.
    Native,
    /// Through a switch that steers.
    Steered,
}

/// A rule, left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) rule: &'static str,
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
            Native => Some("random runs".to_owned()),
            Steered => Some("random runs, steered".to_owned()),
        };
        let orders = self.orders.then(|| "every order".to_owned());
        [scenario, runs, orders].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Of this rule.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn of(rule: &str) -> Self {
        *ROWS.iter().find(|row| row.rule == rule).unwrap_or_else(|| panic!("no row is for {rule}"))
    }
}

/// Asserts that all these rows' mutants were caught.
///
/// # Panics
/// If one was not.
pub(crate) fn assert_caught(of: impl Fn(&Row) -> bool, caught: &[&str]) {
    for row in ROWS.iter().filter(|row| of(row)) {
        let Row { rule, without, .. } = row;
        assert!(caught.contains(rule), "nothing catches {rule} ({without}), but its row says {}", row.by());
    }
}

macro_rules! rows {
    ($($rule:ident, $scenario:literal, $runs:expr, $orders:literal, $without:literal;)*) => {
        pub(crate) const ROWS: &[Row] = &[$(Row {
            rule: stringify!($rule),
            without: $without,
            scenario: $scenario,
            runs: $runs,
            orders: $orders,
        }),*];
    };
}

rows! {
    CURSORS_EXPIRE, "torn", No, false, "a reader that was held up takes the head of one entry and the value of the next one in its slot";
    DOUBTS_ARE_SETTLED, "", Native, false, "an entry that was appended after all is written again, in the middle of a chain";
    SLOTS_REST, "torn", No, false, "a slot is used anew while somebody reads it";
    USES_BEGIN_WITH_ONE, "", Steered, false, "an append behind an entry whose WRITE is still under way goes to memory that nobody has written to, and is overwritten";
    CHAINS_ARE_CLOSED, "", Native, false, "somebody appends to a chain that the metadata server has forgotten";
    THE_DEAD_ARE_SWEPT, "", Native, false, "what a dead client was given is lost";
    REFUSED_ARE_RENEWED, "", Steered, false, "an entry is appended that others stand behind, who were refused";
    DOUBTS_WAIT, "doubt", No, false, "a slot is used anew, and comes into a chain with the entry that it stands behind";
    ALL_COPIES_ARE_WRITTEN, "", Native, true, "an entry is in a chain whose second copy was never written";
    ALL_COPIES_ARE_LINKED, "", Native, true, "a put has ended that is only in the copy that dies";
    COPIES_HAVE_AN_ORDER, "", Native, true, "what the metadata server brings to the other copies is another entry than a put has brought there";
    GETS_READ_THE_LAST_COPY, "last_copy", No, true, "a get returns what is only in the copy that dies";
    APPENDS_WAIT_FOR_COPIES, "", Native, true, "a put has ended behind an entry that is only in the copy that dies";
    LATE_LINKS_ARE_SETTLED, "late_link", Native, false, "an entry that the metadata server has finished long ago is appended once more";
    WALKS_FINISH_LINKS, "", Native, true, "what a client that died has left in the first copy is gone behind, and dies with it";
    ALL_COPIES_ARE_CLOSED, "", Native, true, "somebody appends to a chain that is closed in the copy that died";
}
