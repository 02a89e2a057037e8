//! The evidence against a history, and how it reads: a table of a few operations with their time lines.

use std::fmt;

use crate::history::{Digest, Op, Operation};

/// Rows of the table, at most.
const ROWS: usize = 24;
/// Characters for a time line, at most.
const WIDTH: usize = 48;

/// A key whose operations have no order that explains their results. Prints as a readable explanation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation<K = String> {
    /// Which key.
    pub key: K,
    /// Its value before the history.
    pub initial: Option<Digest>,
    /// The operation whose return leaves no order: before it, the history was linearizable.
    pub culprit: Operation<K>,
    /// The smallest prefix of the key's history that is not linearizable, by invocation; it ends with
    /// the return of the culprit, and what had not returned by then has no `ret`. (A longer prefix if the
    /// limits did not allow for finding the smallest.)
    pub prefix: Vec<Operation<K>>,
    /// Operations of the prefix that are not linearizable by themselves: as few as were found.
    pub core: Vec<Operation<K>>,
    /// How many other keys failed too, none of them earlier.
    pub other_keys: usize,
}

impl<K: fmt::Debug> fmt::Display for Violation<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, culprit, prefix, core, .. } = self;
        writeln!(f, "no order of the operations on key {key:?} explains what they returned")?;
        write!(f, "It fails when client {} is told: {}", culprit.client, culprit.op)?;
        match culprit.ret {
            Some(ret) => writeln!(f, ", at {} ns.", ret.0)?,
            None => writeln!(f, ".")?,
        }
        write!(
            f,
            "Of the {} operations invoked until then, these {} are enough to show it",
            prefix.len(),
            core.len()
        )?;
        match self.initial {
            Some(digest) => writeln!(f, " (the key begins as {digest:016x}):")?,
            None => writeln!(f, " (the key begins absent):")?,
        }
        let rows = self.rows();
        let line = TimeLine::new(&rows);
        writeln!(
            f,
            "  {:>8}  {:<42}  {:>16}  {:>16}  time ->",
            "client", "operation", "invoked ns", "returned ns"
        )?;
        // Of operations that look the same, the last is the one that could not be explained.
        let culprit = rows.iter().rposition(|row| self.is_culprit(row));
        for (place, row) in rows.iter().enumerate() {
            let ret = row.ret.map_or_else(|| "never".to_owned(), |ret| ret.0.to_string());
            let mark = if culprit == Some(place) { "  <- fails here" } else { "" };
            // The operation becomes a string first, so that it can be padded.
            let op = row.op.to_string();
            write!(f, "  {:>8}  {op:<42}  {:>16}  {ret:>16}  ", row.client, row.invoke.0)?;
            writeln!(f, "{}{mark}", line.draw(row))?;
        }
        if rows.len() < core.len() {
            writeln!(f, "  … and {} more that have less to do with it", core.len() - rows.len())?;
        }
        if self.other_keys > 0 {
            writeln!(f, "{} other keys fail too, none of them earlier.", self.other_keys)?;
        }
        Ok(())
    }
}

impl<K> Violation<K> {
    fn is_culprit(&self, operation: &Operation<K>) -> bool {
        let Operation { client, op, invoke, ret, .. } = &self.culprit;
        (operation.client, &operation.op, &operation.invoke, &operation.ret) == (*client, op, invoke, ret)
    }

    /// The operations of the core that say most, by invocation.
    fn rows(&self) -> Vec<&Operation<K>> {
        let mut rows: Vec<&Operation<K>> = self.core.iter().collect();
        if rows.len() > ROWS {
            let about = values(&self.culprit.op);
            let begins = self.culprit.invoke;
            // First the culprit, then who has to do with its values, then who overlaps it, then the latest.
            rows.sort_by_key(|row| {
                let shares = values(&row.op).iter().flatten().any(|value| about.contains(&Some(*value)));
                let overlaps = row.ret.is_none_or(|ret| ret >= begins);
                let class = (!self.is_culprit(row), !shares, !overlaps);
                (class, std::cmp::Reverse(row.invoke))
            });
            rows.truncate(ROWS);
            rows.sort_by_key(|row| row.invoke);
        }
        rows
    }
}

/// What an operation observes and what it leaves; the inner `None` is "absent".
fn values(op: &Op) -> [Option<Option<Digest>>; 2] {
    match *op {
        Op::Read { value } | Op::Update { value } => [Some(value), None],
        Op::Insert { value } => [Some(Some(value)), None],
        Op::Delete => [Some(None), None],
        Op::Rmw { value, new } => [Some(value), Some(Some(new))],
    }
}

/// Draws operations so that it can be seen which overlap. The scale is the order of the instants, not
/// their distance: a run's pauses would squeeze everything else.
struct TimeLine {
    instants: Vec<u64>,
    columns: usize,
}

impl TimeLine {
    fn new<K>(rows: &[&Operation<K>]) -> Self {
        let mut instants: Vec<u64> =
            rows.iter().flat_map(|row| [Some(row.invoke), row.ret]).flatten().map(|at| at.0).collect();
        instants.sort_unstable();
        instants.dedup();
        let columns = (2 * instants.len()).min(WIDTH);
        Self { instants, columns }
    }

    fn column(&self, at: u64) -> usize {
        let rank = self.instants.partition_point(|&instant| instant < at);
        rank * (self.columns - 1) / self.instants.len().saturating_sub(1).max(1)
    }

    fn draw<K>(&self, row: &Operation<K>) -> String {
        let start = self.column(row.invoke.0);
        let (end, tip) = match row.ret {
            Some(ret) => (self.column(ret.0), '|'),
            None => (self.columns, '>'),
        };
        let mut line: Vec<char> = vec![' '; self.columns + 1];
        line[start..=end].fill('-');
        line[start] = '|';
        line[end] = tip;
        String::from_iter(line).trim_end().to_owned()
    }
}
