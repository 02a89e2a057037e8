//! Figures 2, 9 and 10: what sharing costs.

use super::compare::{Axis, GRAPPA_FASTER, LITTLE_SHARING, extremes, from_to, never_behind};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Load, Micro, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

fn at(sharing: u8) -> Load {
    Load::Micro(Micro::sharing(sharing))
}

/// Figure 2: GAM alone, from no sharing to a little.
pub(super) struct Cost;

const LITTLE: Axis = Axis { values: &[0, 5, 10, 15, 20], load: at };

impl Figure for Cost {
    fn name(&self) -> &'static str {
        "concordia-2"
    }

    fn title(&self) -> &'static str {
        "What a little sharing costs GAM: throughput and packets"
    }

    fn points(&self) -> Vec<Point> {
        LITTLE.points(&[Subject::Gam])
    }

    fn report(&self, results: &Results) -> FigureReport {
        let gam = |sharing| results.at(Subject::Gam, at(sharing));
        let packets = |it: &Measured| it.per_operation(it.packets);
        let of_each: Vec<f64> = LITTLE.values.iter().map(|value| packets(gam(*value))).collect();
        let (least, most) = extremes(&of_each);
        let throughput = Chart::new("concordia-2a", "GAM: throughput", "sharing ratio (%)", "Mops");
        let traffic =
            Chart::new("concordia-2b", "GAM: packets", "sharing ratio (%)", "packets per operation");
        let loses = "GAM loses 75 % from 0 to 20 % sharing: 0 % over 20 %";
        let notes = vec!["Each packet is counted once, at its sender.".to_owned()];
        // Where none was sent, one would have been seen.
        let fewest = least.max(1.0 / gam(0).operations as f64);
        let claims = vec![
            Claim::ratio(loses, 4.0, gam(0).mops() / gam(20).mops()),
            Claim::ratio("packets with sharing over packets without, at most", 18.0, most / fewest).because(
                "Without sharing our GAM sends no packet: its caches hold the working set. The ratio is \
                 to one packet in the whole run.",
            ),
        ];
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes,
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![
                LITTLE.throughput(throughput, results, &[Subject::Gam]).stated_at(
                    "75 % less",
                    20.0,
                    gam(0).mops() / 4.0,
                ),
                traffic.line(Subject::Gam.name(), LITTLE.line(results, Subject::Gam, packets)),
            ],
            claims,
        }
    }
}

/// Figure 9: all systems, from no sharing to nothing else.
pub(super) struct Sharing;

/// "When sharing ratio is larger than 20 %".
const SHARED: [u8; 4] = [40, 60, 80, 100];
const SHARING: Axis = Axis { values: &[0, 20, 40, 60, 80, 100], load: at };
const SUBJECTS: [Subject; 7] = [
    Subject::Rackmem,
    Subject::Concordia,
    Subject::HomeOnly,
    Subject::Gam,
    Subject::GamLarge,
    Subject::GamOneThread,
    Subject::Grappa,
];

impl Figure for Sharing {
    fn name(&self) -> &'static str {
        "concordia-9"
    }

    fn title(&self) -> &'static str {
        "Throughput against the sharing ratio, half of the operations read"
    }

    fn points(&self) -> Vec<Point> {
        SHARING.points(&SUBJECTS)
    }

    fn report(&self, results: &Results) -> FigureReport {
        let mops = |subject, sharing| results.at(subject, at(sharing)).mops();
        let falls = |subject| mops(subject, 0) / mops(subject, 100);
        let shared = &SHARING.values[1..];
        let all_shared = results.at(Subject::Concordia, at(100));
        let mut claims = vec![
            Claim::ratio("GAM, 0 % over 100 % sharing", 17.0, falls(Subject::Gam)),
            Claim::ratio("home-only, 0 % over 100 % sharing", 3.8, falls(Subject::HomeOnly)),
        ];
        let over_gam = SHARING.ratios(results, Subject::HomeOnly, Subject::Gam, shared);
        let [least, most] = from_to("home-only over GAM with sharing", (1.25, 3.5), &over_gam, "");
        claims.extend([least.because(LITTLE_SHARING), most]);
        claims.extend(from_to(
            "Concordia over home-only above 20 % sharing",
            (1.3, 1.48),
            &SHARING.ratios(results, Subject::Concordia, Subject::HomeOnly, &shared[1..]),
            "",
        ));
        claims.push(
            Claim::ahead(
                "GAM ahead of Concordia without sharing",
                mops(Subject::Gam, 0) / mops(Subject::Concordia, 0),
            )
            .calibrated(),
        );
        claims.push(never_behind(&SHARING.ratios(
            results,
            Subject::Rackmem,
            Subject::Concordia,
            SHARING.values,
        )));
        let all = |subject| {
            SHARING.line(results, subject, Measured::mops).map(|(_, mops)| mops).collect::<Vec<_>>()
        };
        for subject in [Subject::Gam, Subject::HomeOnly, Subject::Concordia] {
            claims.push(Claim::falls(
                &format!("{} falls with every step of sharing", subject.name()),
                &all(subject),
            ));
        }
        let others = [Subject::Gam, Subject::HomeOnly, Subject::Concordia]
            .into_iter()
            .flat_map(|subject| SHARING.ratios(results, subject, Subject::Grappa, SHARING.values));
        claims.push(
            Claim::ahead(
                "every other system over Grappa (\"far lower\"), at the worst",
                others.fold(f64::INFINITY, f64::min),
            )
            .because(GRAPPA_FASTER),
        );
        let local = all_shared.per_operation(all_shared.hits) * 100.0;
        claims.push(
            Claim::quantity("Concordia's local accesses at 100 % sharing", 39.0, local, "%").because(
                "With uniform accesses from eight nodes, 2 in 9 reads and 1 in 15 writes find their \
                 block: 14.4 %. The paper does not explain its 39 %.",
            ),
        );
        let chart = Chart::new(self.name(), "Throughput against sharing", "sharing ratio (%)", "Mops");
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: Vec::new(),
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![
                SHARING
                    .throughput(chart, results, &SUBJECTS)
                    .stated_ratio("Concordia, of home-only", "home-only", (1.3, 1.48), SHARED.map(f64::from))
                    .stated_at("GAM, of its own 0 %", 100.0, mops(Subject::Gam, 0) / 17.0)
                    .stated_at("home-only, of its own 0 %", 100.0, mops(Subject::HomeOnly, 0) / 3.8),
            ],
            claims,
        }
    }
}

/// Figure 10: what the home agents have to do in the runs of Figure 9.
pub(super) struct HomePackets;

impl Figure for HomePackets {
    fn name(&self) -> &'static str {
        "concordia-10"
    }

    fn title(&self) -> &'static str {
        "Packets that home agents send and receive, in the runs of Figure 9"
    }

    fn points(&self) -> Vec<Point> {
        SHARING.points(&[Subject::Concordia, Subject::HomeOnly])
    }

    fn report(&self, results: &Results) -> FigureReport {
        let packets = |it: &Measured| it.per_operation(it.home_packets);
        let of = |subject| -> Vec<f64> {
            SHARING.line(results, subject, packets).map(|(_, packets)| packets).collect()
        };
        let (with, without) = (of(Subject::Concordia), of(Subject::HomeOnly));
        let fewer: Vec<f64> = without.iter().zip(&with).map(|(without, with)| without / with).collect();
        let (least, most) = extremes(&with);
        let mut chart = Chart::new(
            self.name(),
            "Packets at home agents",
            "sharing ratio (%)",
            "packets sent and received per operation",
        );
        for subject in [Subject::Concordia, Subject::HomeOnly] {
            chart = chart.line(subject.name(), SHARING.line(results, subject, packets));
        }
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: Vec::new(),
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![chart.stated_ratio(
                "home-only, up to, of Concordia",
                Subject::Concordia.name(),
                (4.8, 4.8),
                [100.0],
            )],
            claims: vec![
                Claim::ratio("home-only over Concordia, at most", 4.8, extremes(&fewer).1).because(
                    "Our switch leaves homes only unshared misses, evictions, and write-backs of \
                     modified blocks that another node reads.",
                ),
                Claim::rises("home-only's packets rise with every step of sharing", &without),
                Claim::ratio("Concordia, steady: most over least", 1.0, most / least).because(
                    "Evictions and misses of a node's own data fall with its footprint; write-backs of \
                     modified blocks that others read rise with sharing.",
                ),
            ],
        }
    }
}
