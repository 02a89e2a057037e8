//! What a run asks of the store: YCSB's core workloads by letter, or as a property file describes one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::keys::KeyNames;
use crate::size::Bytes;

/// Records of a workload given by its letter. With its key and the store's header a record of YCSB's 1000 bytes
/// takes a third of a 4 KiB block, so these are 52 MiB: they fit into the default cache of one node, and misses
/// are those of first use and of sharing.
const LETTER_RECORDS: u64 = 40_000;
/// Operations of a workload given by its letter: some seconds of two cores.
const LETTER_OPERATIONS: u64 = 1_000_000;

/// How many kinds of operations there are.
pub(crate) const KINDS: usize = 5;

/// The operations of the core workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OperationKind {
    /// Reads a record.
    Read,
    /// Writes one field of a record, or all of them.
    Update,
    /// Adds a record.
    Insert,
    /// Reads a record and writes it back changed, atomically. (YCSB reads and then updates.)
    ReadModifyWrite,
    /// Reads a record, and some that follow it in the order of keys.
    Scan,
}

impl OperationKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; KINDS] =
        [Self::Read, Self::Update, Self::Insert, Self::ReadModifyWrite, Self::Scan];

    /// Its place in [`OperationKind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name in results.
    pub fn name(self) -> &'static str {
        ["read", "update", "insert", "rmw", "scan"][self.index()]
    }
}

/// The shares of the kinds of operations. They sum up to 1.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mix([f64; KINDS]);

impl Mix {
    /// A mix in these proportions, of which at least one must be positive, and none negative. There are no scans.
    pub fn new(read: f64, update: f64, insert: f64, read_modify_write: f64) -> Self {
        Self::of([read, update, insert, read_modify_write, 0.0])
    }

    /// The same of all kinds, in the order of [`OperationKind::ALL`].
    pub(crate) fn of(parts: [f64; KINDS]) -> Self {
        let sum: f64 = parts.iter().sum();
        assert!(sum > 0.0 && parts.iter().all(|part| *part >= 0.0), "a mix of {parts:?}");
        Self(parts.map(|part| part / sum))
    }

    /// The share of a kind.
    pub fn share(&self, kind: OperationKind) -> f64 {
        self.0[kind.index()]
    }

    /// The share of inserts.
    pub fn insert_share(&self) -> f64 {
        self.share(OperationKind::Insert)
    }

    /// True if there are scans.
    pub fn scans(&self) -> bool {
        self.share(OperationKind::Scan) > 0.0
    }

    /// The kinds that occur, and their shares.
    pub fn parts(&self) -> impl Iterator<Item = (OperationKind, f64)> {
        OperationKind::ALL.into_iter().zip(self.0).filter(|(_, share)| *share > 0.0)
    }

    /// The kind that a number in [0, 1) falls on.
    pub fn choose(&self, unit: f64) -> OperationKind {
        let mut rest = unit;
        let mut last = OperationKind::Read;
        for (kind, share) in self.parts() {
            if rest < share {
                return kind;
            }
            rest -= share;
            last = kind;
        }
        // Rounding may leave a last sliver.
        last
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, share)) in self.parts().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let percent = (share * 1000.0).round() / 10.0;
            write!(f, "{comma}{percent} % {}", kind.name())?;
        }
        Ok(())
    }
}

/// How requests choose their record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Requests {
    /// All alike.
    Uniform,
    /// A few are popular, wherever they are.
    Zipfian,
    /// New ones are popular.
    Latest,
}

impl Requests {
    /// Its name in property files and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::Latest => "latest",
        }
    }
}

/// One workload, complete.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Workload {
    /// Its letter, or the name of its file.
    pub name: String,
    /// Which share of the operations is of which kind.
    pub mix: Mix,
    /// Which records they ask for.
    pub requests: Requests,
    /// Records that are loaded before the run; at least 1.
    pub records: u64,
    /// Operations of the run, all clients together; at least 1.
    pub operations: u64,
    /// Of a record.
    pub fields: usize,
    /// Bytes.
    pub field_len: usize,
    /// How many records a scan reads, at least and at most; each number as often as any other.
    pub scan_lengths: (u64, u64),
    /// Updates write the whole record.
    pub write_all_fields: bool,
    /// What records are called.
    pub names: KeyNames,
}

impl Workload {
    /// YCSB's core workload of that letter.
    pub fn letter(letter: char) -> Option<Self> {
        let (mix, requests) = match letter.to_ascii_uppercase() {
            'A' => (Mix::new(0.5, 0.5, 0.0, 0.0), Requests::Zipfian),
            'B' => (Mix::new(0.95, 0.05, 0.0, 0.0), Requests::Zipfian),
            'C' => (Mix::new(1.0, 0.0, 0.0, 0.0), Requests::Zipfian),
            'D' => (Mix::new(0.95, 0.0, 0.05, 0.0), Requests::Latest),
            'E' => (Mix::of([0.0, 0.0, 0.05, 0.0, 0.95]), Requests::Zipfian),
            'F' => (Mix::new(0.5, 0.0, 0.0, 0.5), Requests::Zipfian),
            _ => return None,
        };
        Some(Self {
            name: letter.to_ascii_uppercase().to_string(),
            mix,
            requests,
            records: LETTER_RECORDS,
            // A scan reads fifty records.
            operations: if mix.scans() { LETTER_OPERATIONS / 20 } else { LETTER_OPERATIONS },
            fields: 10,
            field_len: 100,
            scan_lengths: (1, if mix.scans() { 100 } else { 1000 }),
            write_all_fields: false,
            names: KeyNames { ordered: false, digits: 1 },
        })
    }

    /// Bytes in a record, which are its fields one after another.
    pub fn record_len(&self) -> usize {
        self.fields * self.field_len
    }

    /// Bytes in all records that are loaded, without keys.
    pub fn data_bytes(&self) -> Bytes {
        Bytes(self.records.saturating_mul(self.record_len() as u64))
    }

    /// Records that there may be at the end, if inserts come as often as they should, and somewhat more often.
    pub fn expected_records(&self) -> u64 {
        if self.mix.insert_share() == 0.0 {
            return self.records;
        }
        let inserts = (self.operations as f64 * self.mix.insert_share() * 1.1) as u64 + 1000;
        self.records.saturating_add(inserts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_are_the_core_workloads() {
        let letters: String = ('A'..='Z').filter(|letter| Workload::letter(*letter).is_some()).collect();
        assert_eq!(letters, "ABCDEF");
        assert!(
            letters.chars().all(|letter| Workload::letter(letter).unwrap().mix.scans() == (letter == 'E'))
        );
        assert_eq!(Workload::letter('a'), Workload::letter('A'));
    }

    #[test]
    fn a_mix_chooses_each_kind_as_often_as_its_share() {
        let mix = Mix::new(2.0, 1.0, 1.0, 0.0);
        let chosen = |kind| (0_u32..1000).filter(|at| mix.choose(f64::from(*at) / 1000.0) == kind).count();
        assert_eq!(OperationKind::ALL.map(chosen), [500, 250, 250, 0, 0]);
        assert_eq!(mix.to_string(), "50 % read, 25 % update, 25 % insert");
        assert_eq!(Workload::letter('E').unwrap().mix.to_string(), "5 % insert, 95 % scan");
    }

    #[test]
    fn rounding_never_chooses_a_kind_that_does_not_occur() {
        let mix = Mix::new(0.1, 0.2, 0.3, 0.0);
        assert_eq!(mix.choose(1.0_f64.next_down()), OperationKind::Insert);
    }

    #[test]
    fn only_workloads_that_insert_expect_more_records() {
        assert_eq!(Workload::letter('A').unwrap().expected_records(), LETTER_RECORDS);
        let growing = Workload::letter('D').unwrap();
        assert!(growing.expected_records() >= LETTER_RECORDS + LETTER_OPERATIONS / 20);
    }
}
