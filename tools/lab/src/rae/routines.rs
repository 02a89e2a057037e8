//! Figure 3: instructions of an operation. Nothing is run for it: these are the counts that the simulator charges.

use riscv::library::{Library, Routine};

use super::{ACCESS, average, report, saved};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Point, Subject};
use crate::figure::{Figure, FigureReport, Results};
use crate::systems::programs::library;

/// Figure 3.
pub(super) struct Routines;

/// Atomics that are an instruction.
const ATOMICS: [Routine; 8] = [
    Routine::FetchAdd,
    Routine::FetchInc,
    Routine::Add,
    Routine::Inc,
    Routine::FetchAnd,
    Routine::FetchOr,
    Routine::FetchXor,
    Routine::CompareSwap,
];
/// And other accesses of a word.
const WORDS: [Routine; 4] = [Routine::Fetch, Routine::Set, Routine::G, Routine::P];

impl Figure for Routines {
    fn name(&self) -> &'static str {
        "rae-3"
    }

    fn title(&self) -> &'static str {
        "Instructions of an operation: the instruction set against a library"
    }

    fn points(&self) -> Vec<Point> {
        Vec::new()
    }

    fn report(&self, _: &Results) -> FigureReport {
        let libraries = [Subject::LibraryNear, Subject::LibraryTcp]
            .map(|subject| (subject, library(subject).expect("it was counted")));
        let count = |library: &Library, routine| {
            let count = library.counts().iter().find(|count| count.routine == routine);
            let count = count.expect("files of counts have every routine");
            (count.least as f64, count.most as f64)
        };
        let row = |routine: &Routine| {
            let of = |(_, library): &(Subject, Library)| {
                let (least, most) = count(library, *routine);
                [least, most]
            };
            let counts: Vec<f64> = libraries.iter().flat_map(of).collect();
            (routine.name().to_owned(), [vec![ACCESS as f64], counts].concat())
        };
        let claim = |(subject, library): &(Subject, Library)| {
            let each = ATOMICS.iter().map(|routine| saved(ACCESS as f64, count(library, *routine).0));
            Claim::quantity(
                &format!("instructions saved, one call, average of the atomics: {}", subject.name()),
                89.71,
                average(each),
                "%",
            )
        };
        let versions = libraries
            .iter()
            .map(|(_, library)| format!("{}: {}.", library.name(), library.versions().join("; ")));
        FigureReport {
            charts: vec![
                Chart::bars(
                    ("rae-3", "Instructions of the caller for one call", "instructions"),
                    &["RAE", "shared memory, least", "shared memory, most", "TCP, least", "TCP, most"],
                    ATOMICS.iter().chain(&WORDS).map(row).collect(),
                )
                .logarithmic(),
            ],
            claims: libraries.iter().map(claim).collect(),
            remarks: versions.collect(),
            ..report(
                self,
                "RAE: the instruction, and the one that sets its extension register. Library: counted \
                 by callgrind on Debian's Open MPI, without the kernel's. A call that waits polls; the \
                 least is charged. The paper has Open MPI 4.0.",
            )
        }
    }
}
