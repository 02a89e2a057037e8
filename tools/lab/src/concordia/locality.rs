//! Figure 12: data locality.

use super::compare::{ALL, Axis, never_behind};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Load, Micro, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 12.
pub(super) struct Locality;

fn at(locality: u8) -> Load {
    Load::Micro(Micro { sharing: 20, reads: 50, locality })
}

const LOCALITY: Axis = Axis { values: &[0, 20, 40, 60, 80, 100], load: at };

impl Figure for Locality {
    fn name(&self) -> &'static str {
        "concordia-12"
    }

    fn title(&self) -> &'static str {
        "Throughput against data locality, half of the operations read"
    }

    fn points(&self) -> Vec<Point> {
        LOCALITY.points(&ALL)
    }

    fn report(&self, results: &Results) -> FigureReport {
        let mops = |subject, locality| results.at(subject, at(locality)).mops();
        let gains = |subject| mops(subject, 80) / mops(subject, 0);
        let all = |subject| {
            LOCALITY.line(results, subject, |it| it.mops()).map(|(_, mops)| mops).collect::<Vec<_>>()
        };
        let chart = Chart::new(self.name(), "Throughput against locality", "locality (%)", "Mops");
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "FlowCC's and GAM's costs of a local access are calibrated at 100 % locality. The paper \
                 does not give the sharing ratio; we use 20 %."
                    .to_owned(),
            ],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![
                LOCALITY
                    .throughput(chart, results, &ALL)
                    .stated("133 and 23 Mops", [(100.0, 133.0, 133.0), (100.0, 23.0, 23.0)]),
            ],
            claims: vec![
                Claim::quantity("100 % locality: Concordia", 133.0, mops(Subject::Concordia, 100), "Mops")
                    .calibrated(),
                Claim::quantity("100 % locality: GAM", 23.0, mops(Subject::Gam, 100), "Mops").calibrated(),
                Claim::rises("Concordia rises with every step of locality", &all(Subject::Concordia)),
                never_behind(&LOCALITY.ratios(
                    results,
                    Subject::Rackmem,
                    Subject::Concordia,
                    LOCALITY.values,
                )),
                Claim::rises("GAM rises with every step of locality", &all(Subject::Gam)),
                Claim::ratio("Grappa does not: 80 % over 0 %", 1.0, gains(Subject::Grappa)),
            ],
        }
    }
}
