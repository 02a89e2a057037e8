//! Figure 12: data locality.

use super::compare::{ALL, Axis, never_behind};
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Load, Micro, Point, Subject};
use crate::figure::{Figure, Report, Results};

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

    fn report(&self, results: &Results) -> Report {
        let mops = |subject, locality| results.at(subject, at(locality)).mops();
        let gains = |subject| mops(subject, 80) / mops(subject, 0);
        let chart = Chart::new(self.name(), "Throughput against locality", "locality (%)", "Mops");
        Report {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "At 100 % locality there is nothing but local access: this is where each system's declared calibration comes \
                 from, so those two claims hold by construction. The paper does not say how much is shared here; we take 20 %."
                    .to_owned(),
            ],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![LOCALITY.throughput(chart, results, &ALL)],
            claims: vec![
                Claim::quantity("100 % locality: Concordia", 133.0, mops(Subject::Concordia, 100), "Mops"),
                Claim::quantity("100 % locality: GAM", 23.0, mops(Subject::Gam, 100), "Mops"),
                Claim::ahead("Concordia gains from locality: 80 % over 0 %", gains(Subject::Concordia)),
                never_behind(&LOCALITY.ratios(results, Subject::Rackmem, Subject::Concordia, LOCALITY.values)),
                Claim::ahead("GAM gains from locality: 80 % over 0 %", gains(Subject::Gam)),
                Claim::ratio("Grappa does not: 80 % over 0 %", 1.0, gains(Subject::Grappa)),
            ],
        }
    }
}
