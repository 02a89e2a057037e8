//! Figure 7: a key-value store with a lock for each bucket.

use super::axis::Axis;
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Buckets, Load, Point, Subject};
use crate::figure::{Figure, FigureReport, Results, Table};

/// Figure 7.
pub(super) struct KeyValue;

const BLADES: &[u32] = &[1, 2, 4, 8];
const MOST: u32 = 8;
const SUBJECTS: [Subject; 3] = [Subject::Rackmem, Subject::Gcs, Subject::Layered];

fn load(blades: u32, gets: u8) -> Load {
    Load::Buckets(Buckets { blades: u8::try_from(blades).expect("few blades"), gets })
}

const READS: Axis = Axis { values: BLADES, load: |blades| load(blades, 100) };
const HALF: Axis = Axis { values: BLADES, load: |blades| load(blades, 50) };
const WRITES: Axis = Axis { values: BLADES, load: |blades| load(blades, 0) };

/// Why ours differs, where the layered lock is compared.
const LAYERED: &str = "Ours touches the lock's page as pthread's does, and refused faults wait as in \
    MIND. But it queues with one change, each waiter has a page of its own, and the hand-over is direct \
    (pthread's sleeps in the kernel and retries).";

/// Why ours differs, from two blades to eight.
const STEADY: &str = "More blades keep more locks busy at once; the hottest lock is as busy with two.";

/// Why threads of the holder's blade that go first bring nothing.
const SHORT: &str = "A hand-over takes as long as one hop of its data and the header's two, so there is little to \
    save by letting threads of the holder's blade go first, and those of others wait longer.";

impl Figure for KeyValue {
    fn name(&self) -> &'static str {
        "gcs-7"
    }

    fn title(&self) -> &'static str {
        "A key-value store with a lock for each bucket, keys by Zipf's law with 0.99"
    }

    fn points(&self) -> Vec<Point> {
        [READS.points(&SUBJECTS), HALF.points(&SUBJECTS), WRITES.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let mops = |axis: &Axis, subject, blades| axis.mops(results, subject, blades);
        let over_layered = |axis: &Axis| mops(axis, Subject::Gcs, MOST) / mops(axis, Subject::Layered, MOST);
        let steady = |axis: &Axis| mops(axis, Subject::Gcs, MOST) / mops(axis, Subject::Gcs, 2);
        let drop = |axis: &Axis| mops(axis, Subject::Gcs, 1) / mops(axis, Subject::Gcs, 2);
        let ours = |axis: &Axis| mops(axis, Subject::Rackmem, MOST) / mops(axis, Subject::Gcs, MOST);
        let claims = vec![
            Claim::quantity("reads only, GCS, 8 blades", 31.2, mops(&READS, Subject::Gcs, MOST), "Mops")
                .calibrated(),
            Claim::ratio(
                "reads only, GCS: 8 blades over 1 (linear)",
                8.0,
                mops(&READS, Subject::Gcs, MOST) / mops(&READS, Subject::Gcs, 1),
            )
            .by_construction(),
            Claim::ratio("reads only, 8 blades: GCS over the layered lock", 331.0, over_layered(&READS))
                .because(LAYERED),
            Claim::ratio("half writes, 8 blades: GCS over the layered lock", 19.0, over_layered(&HALF))
                .because(LAYERED),
            Claim::ratio("writes only, 8 blades: GCS over the layered lock", 22.0, over_layered(&WRITES))
                .because(LAYERED),
            Claim::ahead("writes only, GCS: 1 blade over 2", drop(&WRITES)),
            Claim::ratio("writes only, GCS: 8 blades over 2 (constant)", 1.0, steady(&WRITES))
                .because(STEADY),
            Claim::ahead("half writes, GCS: 8 blades over 2", steady(&HALF)),
            Claim::target("reads only, 8 blades: rackmem over GCS", 0.98, ours(&READS)),
            Claim::target("half writes, 8 blades: rackmem over GCS", 1.0, ours(&HALF)),
            Claim::target("writes only, 8 blades: rackmem over GCS", 1.0, ours(&WRITES)).because(SHORT),
        ];
        let [reads, reads_latency] = READS.charts(
            results,
            ("gcs-7a", "Key-value store, reads only", "compute blades"),
            1.0,
            &SUBJECTS,
        );
        let [half, half_latency] = HALF.charts(
            results,
            ("gcs-7b", "Key-value store, half writes", "compute blades"),
            1.0,
            &SUBJECTS,
        );
        let [writes, writes_latency] = WRITES.charts(
            results,
            ("gcs-7c", "Key-value store, writes only", "compute blades"),
            1.0,
            &SUBJECTS,
        );
        let above = |chart: Chart, times| {
            chart.stated_ratio(
                "GCS, of the layered lock",
                Subject::Layered.name(),
                (times, times),
                [f64::from(MOST)],
            )
        };
        let rows = |axis: &Axis| SUBJECTS.iter().flat_map(|subject| axis.spread(results, *subject)).collect();
        let columns: Vec<String> = BLADES.iter().map(|blades| format!("{blades} blades")).collect();
        let table = |what, axis| Table {
            title: format!("Latencies, {what}, in us"),
            columns: columns.clone(),
            rows: rows(axis),
        };
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Ten threads a blade; 16,384 buckets (our choice) with a value of 1 KB each, which fit \
                 into each blade's cache."
                    .to_owned(),
                "`rackmem` is GCS with up to two threads of the holder's blade before a blade that \
                 waits."
                    .to_owned(),
            ],
            tables: vec![table("half writes", &HALF), table("writes only", &WRITES)],
            remarks: Vec::new(),
            charts: vec![
                above(reads, 331.0),
                reads_latency,
                above(half, 19.0),
                half_latency,
                above(writes, 22.0),
                writes_latency,
            ],
            claims,
        }
    }
}
