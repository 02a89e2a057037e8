//! Figure 7: latency and peak throughput of transfers.

use super::axis::{Axis, SIZES, extremes, gigabytes, transfer};
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Objects, Point, Subject, Use};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 7.
pub(super) struct Transfers;

const SUBJECTS: [Subject; 3] = [Subject::RemoteRead, Subject::Sabre, Subject::VersionFirst];
const WITH_LOCKS: [Subject; 4] = [SUBJECTS[0], SUBJECTS[1], SUBJECTS[2], Subject::LockAndRead];

const ALONE: Axis = Axis {
    values: SIZES,
    load: |bytes| Objects { work: Use::Transfer, bytes, readers: 1, outstanding: 1, writers: 0 },
};
const CROWD: Axis = Axis {
    values: SIZES,
    load: |bytes| Objects { work: Use::Transfer, bytes, readers: 16, outstanding: 16, writers: 0 },
};

/// R2P2s.
const R2P2S: f64 = 4.0;

/// Why ours differs, without speculation, in throughput.
const ROWS: &str = "The paper omits this curve, as identical. Ours has 16 SABRes in flight at each \
    R2P2, one a row; without speculation a row is also taken for reading the version twice.";
/// Why ours differs, without speculation, where there is one block.
const ONE: &str = "Without speculation the engine reads the version before and after even one block.";

impl Figure for Transfers {
    fn name(&self) -> &'static str {
        "sabres-7"
    }

    fn title(&self) -> &'static str {
        "Latency and peak throughput of transfers, from memory and without writers"
    }

    fn points(&self) -> Vec<Point> {
        [ALONE.points(&WITH_LOCKS), CROWD.points(&SUBJECTS)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let [read, sabre, first] = SUBJECTS;
        let slower = |subject, sizes: &[u32]| ALONE.ratios(results, (subject, read), sizes, transfer);
        let throughput = |subject| CROWD.ratios(results, (subject, read), SIZES, Measured::mops);
        let peak = |subject| {
            let rates = SIZES.iter().map(|bytes| gigabytes(*bytes, CROWD.at(results, subject, *bytes)));
            rates.fold(0.0, f64::max) / R2P2S
        };
        let short: Vec<u32> = SIZES.iter().copied().filter(|bytes| *bytes <= 2048).collect();
        let claims = vec![
            Claim::ratio(
                "latency up to 2 KB: SABRe over remote read, at most (the same)",
                1.0,
                extremes(&slower(sabre, &short)).1,
            ),
            Claim::ahead("latency, 8 KB: SABRe over remote read", slower(sabre, &[8192])[0]),
            Claim::ratio(
                "latency, one block: no speculation over remote read (the same)",
                1.0,
                slower(first, &[64])[0],
            )
            .because(ONE),
            Claim::ratio(
                "latency, two blocks: no speculation over remote read",
                1.4,
                slower(first, &[128])[0],
            ),
            Claim::quantity("peak of an R2P2, remote reads", 20.0, peak(read), "GB/s").by_construction(),
            Claim::quantity("peak of an R2P2, SABRes", 20.0, peak(sabre), "GB/s").by_construction(),
            Claim::ratio(
                "throughput, all sizes: SABRe over remote read, at least (identical)",
                1.0,
                extremes(&throughput(sabre)).0,
            ),
            Claim::ratio(
                "throughput, all sizes: no speculation over remote read, at least (identical)",
                1.0,
                extremes(&throughput(first)).0,
            )
            .because(ROWS),
        ];
        let latency = ("sabres-7a", "Latency of a transfer", "bytes", "ns, on average");
        let rate = ("sabres-7b", "Throughput of 16 threads", "bytes", "GB/s");
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Latency: one thread, one transfer at a time. Throughput: 16 threads with 16 transfers \
                 each (our choice). Locks are not in the paper's figure; unlocking is not waited for."
                    .to_owned(),
            ],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![
                ALONE.chart(results, latency, &WITH_LOCKS, |_, it| transfer(it)).stated_ratio(
                    "no speculation, of remote read",
                    Subject::RemoteRead.name(),
                    (1.4, 1.4),
                    [128.0],
                ),
                CROWD.chart(results, rate, &SUBJECTS, gigabytes).stated_at(
                    "four R2P2s of 20 GB/s",
                    8192.0,
                    80.0,
                ),
            ],
            claims,
        }
    }
}
