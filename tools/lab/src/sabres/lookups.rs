//! Figures 1, 9 and 10: look-ups in FaRM's store, with versions in each cache line and without.

use super::axis::{Axis, SIZES, extremes, latency, transfer};
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Objects, Point, Subject, Use};
use crate::figure::{Figure, FigureReport, Results, Table};

/// Figure 1.
pub(super) struct Breakdown;
/// Figure 9.
pub(super) struct Remote;
/// Figure 10.
pub(super) struct Local;

const BOTH: [Subject; 2] = [Subject::LineVersions, Subject::Sabre];

const fn objects(work: Use, bytes: u32, readers: u8) -> Objects {
    Objects { work, bytes, readers, outstanding: 1, writers: 0 }
}

const ONE: Axis = Axis { values: SIZES, load: |bytes| objects(Use::Lookup, bytes, 1) };
const MANY: Axis = Axis { values: SIZES, load: |bytes| objects(Use::Lookup, bytes, 15) };
const OWN: Axis = Axis { values: SIZES, load: |bytes| objects(Use::Local, bytes, 15) };

const VERSIONS: &str = Subject::LineVersions.name();

/// An access to local memory (section 5.1).
const ACCESS: f64 = 90.0;

/// Why ours differs, for 15 threads.
const SHARED: &str = "Here 15 threads do not saturate the R2P2s, so throughput gains nearly as much as \
    latency. The paper's gains less (52 % of latency would be 2.1x).";

fn sizes() -> Vec<String> {
    SIZES.iter().map(|bytes| format!("{bytes} B")).collect()
}

/// What the time of look-ups is made of.
fn table(results: &Results, subjects: &[Subject]) -> Table {
    let rows = subjects.iter().flat_map(|subject| ONE.parts(results, *subject)).collect();
    Table { title: "Parts of a look-up by one thread, in ns".to_owned(), columns: sizes(), rows }
}

fn report(figure: &dyn Figure, note: &str, claims: Vec<Claim>) -> FigureReport {
    FigureReport {
        figure: figure.name().to_owned(),
        title: figure.title().to_owned(),
        notes: vec![note.to_owned()],
        tables: Vec::new(),
        remarks: Vec::new(),
        charts: Vec::new(),
        claims,
    }
}

impl Figure for Breakdown {
    fn name(&self) -> &'static str {
        "sabres-1"
    }

    fn title(&self) -> &'static str {
        "Where the time of a remote look-up with per-line versions goes"
    }

    fn points(&self) -> Vec<Point> {
        ONE.points(&BOTH[..1])
    }

    fn report(&self, results: &Results) -> FigureReport {
        let at = |bytes| ONE.at(results, Subject::LineVersions, bytes);
        let share = |bytes| 100.0 * at(bytes).cause("check") / latency(at(bytes));
        let claims = vec![
            Claim::quantity("the check's share, 128 B", 10.0, share(128), "%").calibrated(),
            Claim::quantity("the check's share, 8 KB", 50.0, share(8192), "%").calibrated(),
            Claim::range(
                "a transfer of 64 B over an access to local memory",
                (3.0, 4.0),
                transfer(at(64)) / ACCESS,
            )
            .calibrated(),
        ];
        let chart =
            ("sabres-1", "A look-up with per-line versions, and its check", "bytes", "ns, on average");
        let whole = ONE.chart(results, chart, &BOTH[..1], |_, it| latency(it));
        let part = |name| SIZES.iter().map(move |bytes| (f64::from(*bytes), at(*bytes).cause(name)));
        let chart = ["transfer", "check"]
            .into_iter()
            .fold(whole, |chart, name| chart.line(name, part(name)))
            .stated_ratio("check, of the look-up, 128 B", VERSIONS, (0.1, 0.1), [128.0])
            .stated_ratio("check, of the look-up, 8 KB", VERSIONS, (0.5, 0.5), [8192.0]);
        let note = "One thread, objects in memory. \"Look-up\" is software before the transfer, \"use\" \
            after it; the paper draws both as one.";
        FigureReport {
            charts: vec![chart],
            tables: vec![table(results, &BOTH[..1])],
            ..report(self, note, claims)
        }
    }
}

impl Figure for Remote {
    fn name(&self) -> &'static str {
        "sabres-9"
    }

    fn title(&self) -> &'static str {
        "FaRM's remote look-ups, with per-line versions and with SABRes"
    }

    fn points(&self) -> Vec<Point> {
        [ONE.points(&BOTH), MANY.points(&BOTH)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let pair = (Subject::Sabre, Subject::LineVersions);
        let shorter = ONE.ratios(results, pair, &[128, 8192], latency);
        let (least, most) = extremes(&MANY.ratios(results, pair, SIZES, Measured::mops));
        let uses = ONE.ratios(results, pair, &[8192], |it| it.cause("use"));
        let claims = vec![
            Claim::ratio("latency, 128 B: SABRe over per-line versions (35 % less)", 0.65, shorter[0])
                .calibrated(),
            Claim::ratio("latency, 8 KB: SABRe over per-line versions (52 % less)", 0.48, shorter[1]),
            Claim::range("throughput, all sizes: SABRe over per-line versions, at least", (1.3, 1.6), least)
                .because(SHARED),
            Claim::range("throughput, all sizes: SABRe over per-line versions, at most", (1.3, 1.6), most)
                .because(SHARED),
            Claim::ahead("8 KB: the application's own part, SABRe over per-line versions", uses[0]),
        ];
        let charts = vec![
            ONE.chart(
                results,
                ("sabres-9a", "Latency of a remote look-up", "bytes", "ns, on average"),
                &BOTH,
                |_, it| latency(it),
            )
            .stated_ratio("SABRe, of per-line versions, 128 B", VERSIONS, (0.65, 0.65), [128.0])
            .stated_ratio("SABRe, of per-line versions, 8 KB", VERSIONS, (0.48, 0.48), [8192.0]),
            MANY.chart(results, ("sabres-9b", "Look-ups by 15 threads", "bytes", "Mops"), &BOTH, |_, it| {
                it.mops()
            })
            .stated_ratio(
                "SABRe, of per-line versions",
                VERSIONS,
                (1.3, 1.6),
                SIZES.iter().copied().map(f64::from),
            ),
        ];
        let note = "Latency: one thread. Throughput: 15 threads. Objects are in the other chip's \
            memory, never in its cache.";
        FigureReport { charts, tables: vec![table(results, &BOTH)], ..report(self, note, claims) }
    }
}

impl Figure for Local {
    fn name(&self) -> &'static str {
        "sabres-10"
    }

    fn title(&self) -> &'static str {
        "FaRM's local look-ups, with per-line versions and without"
    }

    fn points(&self) -> Vec<Point> {
        OWN.points(&BOTH)
    }

    fn report(&self, results: &Results) -> FigureReport {
        let ahead =
            OWN.ratios(results, (Subject::Sabre, Subject::LineVersions), &[128, 1024, 8192], Measured::mops);
        let claim = |size: &str, paper, ours| {
            Claim::ratio(&format!("throughput, {size}: the plain layout over per-line versions"), paper, ours)
        };
        let claims =
            vec![claim("128 B", 1.2, ahead[0]), claim("1 KB", 1.53, ahead[1]), claim("8 KB", 2.1, ahead[2])];
        let title = ("sabres-10", "Local look-ups by 15 threads", "bytes", "Mops");
        let note = "15 threads on the chip that has the objects in memory. \"SABRe\" is the plain \
            layout that SABRes allow: objects are used in place.";
        let chart = OWN.chart(results, title, &BOTH, |_, it| it.mops());
        let charts = vec![[(128.0, 1.2), (1024.0, 1.53), (8192.0, 2.1)].into_iter().fold(
            chart,
            |chart, (bytes, times)| {
                chart.stated_ratio(
                    &format!("of per-line versions, {bytes} B"),
                    VERSIONS,
                    (times, times),
                    [bytes],
                )
            },
        )];
        FigureReport { charts, ..report(self, note, claims) }
    }
}
