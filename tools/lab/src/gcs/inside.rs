//! Figures 10 and 11: how long threads stay inside a lock, and how much it guards.

use super::axis::Axis;
use crate::figure::claim::Claim;
use crate::figure::point::{Contend, Load, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

const SUBJECTS: [Subject; 1] = [Subject::Gcs];
const EIGHT_BY_TEN: Contend =
    Contend { blades: 8, threads: 10, write: false, access: false, critical: 0, len: 1024 };

/// Figure 10: the critical section.
pub(super) struct CriticalSection;

/// In nanoseconds.
const TIMES: &[u32] = &[0, 1_000, 5_000, 10_000, 50_000, 100_000];

fn staying(critical: u32, write: bool) -> Load {
    Load::Contend(Contend { critical, write, access: true, ..EIGHT_BY_TEN })
}

const READERS: Axis = Axis { values: TIMES, load: |time| staying(time, false) };
const WRITERS: Axis = Axis { values: TIMES, load: |time| staying(time, true) };

/// Figure 11: what a lock guards.
pub(super) struct StateSize;

const SIZES: &[u32] = &[0, 64, 256, 1024, 4096];

fn guarding(len: u32, write: bool) -> Load {
    Load::Contend(Contend { len, write, ..EIGHT_BY_TEN })
}

const SIZED_READERS: Axis = Axis { values: SIZES, load: |len| guarding(len, false) };
const SIZED_WRITERS: Axis = Axis { values: SIZES, load: |len| guarding(len, true) };

/// Why ours differs, where a longer stay should cost nothing.
const HIDDEN: &str = "The paper takes 33 us a hand-over (gcs-8) and ours less, so the same 10 us inside \
    weigh more.";

fn report(
    figure: &dyn Figure,
    results: &Results,
    (readers, writers): (&Axis, &Axis),
    (x, scale): (&str, f64),
    (notes, claims): (&str, Vec<Claim>),
) -> FigureReport {
    let [a, b] = [format!("{}-readers", figure.name()), format!("{}-writers", figure.name())];
    let [reading, reading_latency] = readers.charts(results, (&a, "Readers", x), scale, &SUBJECTS);
    let [writing, writing_latency] = writers.charts(results, (&b, "Writers", x), scale, &SUBJECTS);
    FigureReport {
        figure: figure.name().to_owned(),
        title: figure.title().to_owned(),
        notes: vec![notes.to_owned()],
        tables: Vec::new(),
        remarks: Vec::new(),
        charts: vec![reading, reading_latency, writing, writing_latency],
        claims,
    }
}

impl Figure for CriticalSection {
    fn name(&self) -> &'static str {
        "gcs-10"
    }

    fn title(&self) -> &'static str {
        "Locks against the time that threads stay inside, eight blades of ten threads"
    }

    fn points(&self) -> Vec<Point> {
        [READERS.points(&SUBJECTS), WRITERS.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let reading = |time| READERS.mops(results, Subject::Gcs, time);
        let writing = |time| WRITERS.mops(results, Subject::Gcs, time);
        let claims = vec![
            Claim::ratio(
                "readers: 10 us inside over 100 us (in proportion)",
                10.0,
                reading(10_000) / reading(100_000),
            )
            .by_construction(),
            Claim::ratio("writers: none over 10 us inside (unaffected)", 1.0, writing(0) / writing(10_000))
                .because(HIDDEN),
            Claim::ahead("writers: 10 us over 100 us inside", writing(10_000) / writing(100_000)),
        ];
        let notes = "Each lock guards 1 KB, accessed once besides the time inside.";
        let mut report =
            report(self, results, (&READERS, &WRITERS), ("time inside (us)", 1_000.0), (notes, claims));
        let writers = report.charts[2].clone();
        report.charts[2] = writers.stated_at("as without time inside, to 10 us", 10.0, writing(0));
        report
    }
}

impl Figure for StateSize {
    fn name(&self) -> &'static str {
        "gcs-11"
    }

    fn title(&self) -> &'static str {
        "Locks against the bytes that each guards, eight blades of ten threads"
    }

    fn points(&self) -> Vec<Point> {
        [SIZED_READERS.points(&SUBJECTS), SIZED_WRITERS.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let reading = |len| SIZED_READERS.mops(results, Subject::Gcs, len);
        let writing = |len| SIZED_WRITERS.mops(results, Subject::Gcs, len);
        let claims = vec![
            Claim::ratio("readers: 0 B over 4 KB (unaffected)", 1.0, reading(0) / reading(4096))
                .by_construction(),
            Claim::ahead("writers: 0 B over 64 B", writing(0) / writing(64)),
            Claim::ahead("writers: 64 B over 4 KB", writing(64) / writing(4096)),
            Claim::ahead("writers: 1 KB over 4 KB", writing(1024) / writing(4096)),
        ];
        let notes = "Threads enter and leave, and do nothing inside.";
        let mut report =
            report(self, results, (&SIZED_READERS, &SIZED_WRITERS), ("bytes", 1.0), (notes, claims));
        report.charts[0] = report.charts[0].clone().stated_at("as with no bytes", 4096.0, reading(0));
        report
    }
}
