//! Figure 8: readers and writers on a hundred objects.

use super::axis::Axis;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Objects, Point, Subject, Use};
use crate::figure::{Figure, FigureReport, Results, Table};

/// Figure 8.
pub(super) struct Conflicts;

const SUBJECTS: [Subject; 6] = [
    Subject::Sabre,
    Subject::LineVersions,
    Subject::VersionFirst,
    Subject::LockAndRead,
    Subject::Checksum,
    Subject::RemoteRead,
];
const WRITERS: &[u32] = &[0, 2, 4, 8, 12, 16];

const fn objects(bytes: u32, writers: u32) -> Objects {
    Objects { work: Use::Clean, bytes, readers: 16, outstanding: 1, writers: writers as u8 }
}

const SMALL: Axis = Axis { values: WRITERS, load: |writers| objects(128, writers) };
const MIDDLE: Axis = Axis { values: WRITERS, load: |writers| objects(1024, writers) };
const LARGE: Axis = Axis { values: WRITERS, load: |writers| objects(8192, writers) };

/// Why ours differs, where there are writers.
const LATE: &str = "A SABRe is torn by any write before its last block is read (section 4.2), per-line \
    versions only by a writer that overtakes the reader. Here few overtake, since both go the same way \
    at similar speeds. The paper does not say how its writers write.";

impl Figure for Conflicts {
    fn name(&self) -> &'static str {
        "sabres-8"
    }

    fn title(&self) -> &'static str {
        "Throughput of 16 readers against the writers of 100 objects"
    }

    fn points(&self) -> Vec<Point> {
        [&SMALL, &MIDDLE, &LARGE].into_iter().flat_map(|axis| axis.points(&SUBJECTS)).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let sizes = [
            ("128 B", "a", &SMALL, (1.15, 1.03)),
            ("1 KB", "b", &MIDDLE, (1.30, 1.41)),
            ("8 KB", "c", &LARGE, (1.87, 1.97)),
        ];
        let pair = (Subject::Sabre, Subject::LineVersions);
        let mut claims = Vec::new();
        let mut charts = Vec::new();
        let mut tables = Vec::new();
        for (size, letter, axis, (without, with)) in sizes {
            let ahead = axis.ratios(results, pair, &[0, 16], Measured::mops);
            let what = |writers: &str| format!("{size}, {writers} writers: SABRe over per-line versions");
            claims.push(Claim::ratio(&what("no"), without, ahead[0]));
            claims.push(Claim::ratio(&what("16"), with, ahead[1]).because(LATE));
            let gains = axis.ratios(results, pair, WRITERS, Measured::mops);
            let trend = if with < without { Claim::falls } else { Claim::rises };
            let way = if with < without { "falls" } else { "rises" };
            let ends = [gains[0], gains[gains.len() - 1]];
            claims.push(
                trend(&format!("{size}: the gain over per-line versions {way} from no writers to 16"), &ends)
                    .because(LATE),
            );
            let mops = |writers| axis.at(results, Subject::Sabre, writers).mops();
            claims.push(Claim::ahead(&format!("{size}, SABRe: no writers over 16"), mops(0) / mops(16)));
            let name = format!("sabres-8{letter}");
            let title = format!("Objects of {size}");
            charts.push(
                axis.chart(results, (&name, &title, "writers", "Mops"), &SUBJECTS, |_, it| it.mops())
                    .stated_ratio(
                        "SABRe, of per-line versions",
                        Subject::LineVersions.name(),
                        (without, without),
                        [0.0],
                    )
                    .stated_ratio(
                        "SABRe, of per-line versions, 16",
                        Subject::LineVersions.name(),
                        (with, with),
                        [16.0],
                    ),
            );
            let row = |subject: &Subject| {
                let refused = |writers: &u32| {
                    let it = axis.at(results, *subject, *writers);
                    it.per_operation(it.refused)
                };
                (subject.name().to_owned(), WRITERS.iter().map(refused).collect())
            };
            tables.push(Table {
                title: format!("Failed attempts per operation, {size}"),
                columns: WRITERS.iter().map(|writers| format!("{writers} writers")).collect(),
                rows: SUBJECTS[..5].iter().map(row).collect(),
            });
        }
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Readers read random objects of 100, all in the last-level cache, and repeat torn reads \
                 at once. Writers write their own objects in order, without a pause. The paper has the \
                 first two lines. A remote read checks nothing."
                    .to_owned(),
            ],
            tables,
            remarks: Vec::new(),
            charts,
            claims,
        }
    }
}
