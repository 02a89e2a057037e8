//! Figure 11: the read ratio, with a little sharing and with much.

use super::compare::{ALL, Axis, CONFLICT_MISSES, extremes, from_to, never_behind};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Load, Micro, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 11.
pub(super) struct Reads;

const READS: &[u8] = &[0, 25, 50, 75, 100];
/// Where the paper calls throughput stable.
const FEW: &[u8] = &[0, 25];

fn lightly(reads: u8) -> Load {
    Load::Micro(Micro { sharing: 20, reads, locality: 0 })
}

fn heavily(reads: u8) -> Load {
    Load::Micro(Micro { sharing: 60, reads, locality: 0 })
}

const LIGHT: Axis = Axis { values: READS, load: lightly };
const HEAVY: Axis = Axis { values: READS, load: heavily };

impl Figure for Reads {
    fn name(&self) -> &'static str {
        "concordia-11"
    }

    fn title(&self) -> &'static str {
        "Throughput against the read ratio, at 20 % and at 60 % sharing"
    }

    fn points(&self) -> Vec<Point> {
        [LIGHT.points(&ALL), HEAVY.points(&ALL)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let mops = |subject, load| results.at(subject, load).mops();
        let mut claims = Vec::new();
        for (axis, sharing, base, gam) in
            [(LIGHT, "20 %", (1.22, 1.22), (3.5, 3.9)), (HEAVY, "60 %", (1.48, 1.5), (4.5, 5.1))]
        {
            for (other, paper, cause) in [(Subject::HomeOnly, base, ""), (Subject::Gam, gam, CONFLICT_MISSES)]
            {
                let what = format!("{sharing} sharing, under 50 % reads: Concordia over {}", other.name());
                let ratios = axis.ratios(results, Subject::Concordia, other, FEW);
                claims.extend(from_to(&what, paper, &ratios, cause));
            }
        }
        let (gam, concordia) = (Subject::Gam, Subject::Concordia);
        const CACHED: &str = "A node's data, some 640 MiB, fit its cache of 1024 MiB, so hardly any \
            access misses. The paper does not say what misses there.";
        claims.push(
            Claim::ahead(
                "20 % sharing, 100 % reads: GAM ahead of Concordia",
                mops(gam, lightly(100)) / mops(concordia, lightly(100)),
            )
            .because("Too few of Concordia's accesses miss for GAM to lead. The paper gives no number."),
        );
        let all_read = |subject| mops(subject, heavily(100));
        claims.push(
            Claim::quantity("60 % sharing, 100 % reads: Concordia", 60.0, all_read(concordia), "Mops")
                .because(CACHED),
        );
        claims.push(
            Claim::quantity("60 % sharing, 100 % reads: GAM", 16.0, all_read(gam), "Mops").because(CACHED),
        );
        let systems = [Subject::Gam, Subject::HomeOnly, Subject::Concordia];
        for (axis, sharing) in [(&LIGHT, "20 %"), (&HEAVY, "60 %")] {
            for subject in systems {
                let all: Vec<f64> =
                    axis.line(results, subject, |it| it.mops()).map(|(_, mops)| mops).collect();
                let (least, most) = extremes(&all[..FEW.len()]);
                let what = |trend| format!("{sharing} sharing: {}, {trend}", subject.name());
                claims.push(Claim::ratio(
                    &what("stable under 50 % reads: most over least"),
                    1.0,
                    most / least,
                ));
                claims.push(Claim::rises(&what("rises from 50 % to 100 % reads"), &all[FEW.len()..]));
            }
        }
        let ours = |axis: &Axis| axis.ratios(results, Subject::Rackmem, Subject::Concordia, READS);
        claims.push(never_behind(&[ours(&LIGHT), ours(&HEAVY)].concat()));
        let chart = |axis: Axis, part, sharing| {
            let title = format!("Throughput against reads, {sharing} sharing");
            let empty = Chart::new(&format!("{}{part}", self.name()), &title, "read ratio (%)", "Mops");
            let (base, gam) =
                if part == "a" { ((1.22, 1.22), (3.5, 3.9)) } else { ((1.48, 1.5), (4.5, 5.1)) };
            axis.throughput(empty, results, &ALL)
                .stated_ratio(
                    "Concordia, of home-only",
                    Subject::HomeOnly.name(),
                    base,
                    FEW.iter().copied().map(f64::from),
                )
                .stated_ratio(
                    "Concordia, of GAM",
                    Subject::Gam.name(),
                    gam,
                    FEW.iter().copied().map(f64::from),
                )
        };
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "The paper's plot omits Concordia and GAM at 60 % sharing and 100 % reads.".to_owned(),
            ],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![
                chart(LIGHT, "a", "20 %"),
                chart(HEAVY, "b", "60 %")
                    .stated("Concordia 60, GAM 16 Mops", [(100.0, 60.0, 60.0), (100.0, 16.0, 16.0)]),
            ],
            claims,
        }
    }
}
