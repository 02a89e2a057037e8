//! Figures 8 and 9: what locality and combined data gain, against blades and threads.

use super::axis::Axis;
use crate::figure::claim::Claim;
use crate::figure::point::{Contend, Load, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

const SUBJECTS: [Subject; 3] = [Subject::Gcs, Subject::WithoutLocality, Subject::DataApart];

fn contend(blades: u32, threads: u32, write: bool) -> Load {
    let small = |count| u8::try_from(count).expect("a small rack");
    let (blades, threads) = (small(blades), small(threads));
    Load::Contend(Contend { blades, threads, write, access: true, critical: 0, len: 1024 })
}

/// Figure 8: blades.
pub(super) struct Blades;

const BLADES: &[u32] = &[1, 2, 4, 6, 8];
const READERS: Axis = Axis { values: BLADES, load: |blades| contend(blades, 10, false) };
const WRITERS: Axis = Axis { values: BLADES, load: |blades| contend(blades, 10, true) };

/// Figure 9: threads on each of eight blades.
pub(super) struct Threads;

const THREADS: &[u32] = &[1, 2, 4, 6, 8, 10];
const MANY_READERS: Axis = Axis { values: THREADS, load: |threads| contend(8, threads, false) };
const MANY_WRITERS: Axis = Axis { values: THREADS, load: |threads| contend(8, threads, true) };

/// Why ours differs, where the time of a hand-over counts.
const HAND_OVER: &str = "The paper's 0.3 Mops are a hand-over of each lock every 33 us; MIND moves a \
    page between blades in 18 us. Ours takes the sum of MIND's path, with the data in the lock's \
    packet. The paper supposes a queue in its NIC; ours has none.";
/// Why ours differs, where the data come one after the lock.
const APART: &str = "Four regions of 1 KB share a page of 4 KiB: holders of different locks take it \
    from each other, and a refused fault waits for 50 us or more.";
/// Why ours differs, where two blades contend.
const TWO: &str = "With two blades no thread waits at the holder when a lock arrives, so its threads \
    enter again until the other blade asks, some 10 us later. The paper has one entry per hand-over, \
    and does not say why.";
/// Why ours differs, where a reader has to ask each time.
const ASKS: &str = "Ours is the sum of inputs: 2 us for the request, 4 us for the answer, 4 us to \
    unmap, 1 us inside, and the network.";

const NOTES: &str = "Thread i of each blade takes lock i, accesses 1 KB and releases. \"Without \
    locality\": lock and data go back at each release. \"Without combined data\": the coherence \
    protocol fetches the data.";

/// A ratio of the paper to what is "without combined data": what it is, from, to, and at which values.
type StatedRatio = (&'static str, (f64, f64), &'static [u32]);

/// Throughput and latency of readers and writers.
fn report(
    figure: &dyn Figure,
    results: &Results,
    (readers, writers): (&Axis, &Axis),
    (x, stated): (&str, StatedRatio),
    claims: Vec<Claim>,
) -> FigureReport {
    let [a, b] = [format!("{}-readers", figure.name()), format!("{}-writers", figure.name())];
    let [reading, reading_latency] = readers.charts(results, (&a, "Readers", x), 1.0, &SUBJECTS);
    let [writing, writing_latency] = writers.charts(results, (&b, "Writers", x), 1.0, &SUBJECTS);
    let writing = writing.stated_ratio(
        stated.0,
        Subject::DataApart.name(),
        stated.1,
        stated.2.iter().copied().map(f64::from),
    );
    FigureReport {
        figure: figure.name().to_owned(),
        title: figure.title().to_owned(),
        notes: vec![NOTES.to_owned()],
        tables: Vec::new(),
        remarks: Vec::new(),
        charts: vec![reading, reading_latency, writing, writing_latency],
        claims,
    }
}

fn extremes(ratios: &[f64]) -> (f64, f64) {
    ratios.iter().fold((f64::INFINITY, 0.0), |(least, most), ratio| (ratio.min(least), ratio.max(most)))
}

impl Figure for Blades {
    fn name(&self) -> &'static str {
        "gcs-8"
    }

    fn title(&self) -> &'static str {
        "Locks against the number of blades, without locality and without combined data"
    }

    fn points(&self) -> Vec<Point> {
        [READERS.points(&SUBJECTS), WRITERS.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let reading = |subject, blades| READERS.mops(results, subject, blades);
        let writing = |subject, blades| WRITERS.mops(results, subject, blades);
        let slower =
            READERS.latency(results, Subject::WithoutLocality, 8) / READERS.latency(results, Subject::Gcs, 8);
        let combined = WRITERS.ratios(results, (Subject::Gcs, Subject::DataApart), &BLADES[1..]);
        let (least, most) = extremes(&combined);
        let claims = vec![
            Claim::ratio(
                "readers, GCS: 8 blades over 1 (linear)",
                8.0,
                reading(Subject::Gcs, 8) / reading(Subject::Gcs, 1),
            )
            .by_construction(),
            Claim::ratio(
                "readers, 8 blades: GCS over without locality",
                11.0,
                reading(Subject::Gcs, 8) / reading(Subject::WithoutLocality, 8),
            )
            .because(ASKS),
            Claim::ratio("readers, 8 blades: latency without locality over GCS", 9.0, slower).because(ASKS),
            Claim::ratio(
                "readers, 8 blades: GCS over without combined data (the same)",
                1.0,
                reading(Subject::Gcs, 8) / reading(Subject::DataApart, 8),
            )
            .by_construction(),
            Claim::ahead("writers, GCS: 1 blade over 2", writing(Subject::Gcs, 1) / writing(Subject::Gcs, 2)),
            Claim::ratio(
                "writers, GCS: 8 blades over 2 (constant)",
                1.0,
                writing(Subject::Gcs, 8) / writing(Subject::Gcs, 2),
            )
            .because(TWO),
            Claim::quantity("writers, GCS, 8 blades", 0.3, writing(Subject::Gcs, 8), "Mops")
                .because(HAND_OVER),
            Claim::quantity(
                "writers without combined data, 8 blades",
                0.05,
                writing(Subject::DataApart, 8),
                "Mops",
            )
            .because(APART),
            Claim::ratio("writers, 2 to 8 blades: GCS over without combined data, at least", 6.2, least)
                .because(APART),
            Claim::ratio("writers, 2 to 8 blades: GCS over without combined data, at most", 19.5, most)
                .because(TWO),
            Claim::ratio(
                "writers, 8 blades: GCS over without locality (no effect)",
                1.0,
                writing(Subject::Gcs, 8) / writing(Subject::WithoutLocality, 8),
            ),
        ];
        report(
            self,
            results,
            (&READERS, &WRITERS),
            ("compute blades", ("GCS, of without combined data", (6.2, 19.5), &BLADES[1..])),
            claims,
        )
    }
}

impl Figure for Threads {
    fn name(&self) -> &'static str {
        "gcs-9"
    }

    fn title(&self) -> &'static str {
        "Locks against the threads on each of eight blades, without locality and without combined data"
    }

    fn points(&self) -> Vec<Point> {
        [MANY_READERS.points(&SUBJECTS), MANY_WRITERS.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let combined = MANY_WRITERS.ratios(results, (Subject::Gcs, Subject::DataApart), THREADS);
        let (least, most) = extremes(&combined);
        let more = |axis: &Axis| axis.mops(results, Subject::Gcs, 10) / axis.mops(results, Subject::Gcs, 1);
        let latency = |subject| MANY_WRITERS.latency(results, subject, 10);
        let claims = vec![
            Claim::ratio("readers, GCS: 10 threads over 1 (linear)", 10.0, more(&MANY_READERS))
                .by_construction(),
            Claim::ratio("writers, GCS: 10 threads over 1 (linear)", 10.0, more(&MANY_WRITERS)),
            Claim::ratio("writers: GCS over without combined data, at least", 3.7, least).because(APART),
            Claim::ratio("writers: GCS over without combined data, at most", 6.2, most).because(APART),
            Claim::range(
                "writers, 10 threads: latency without combined data over GCS (71 to 85 % less)",
                (3.4, 6.7),
                latency(Subject::DataApart) / latency(Subject::Gcs),
            )
            .because(APART),
        ];
        report(
            self,
            results,
            (&MANY_READERS, &MANY_WRITERS),
            ("threads", ("GCS, of without combined data", (3.7, 6.2), THREADS)),
            claims,
        )
    }
}
