//! Figure 13: the switch fails, and comes back empty.

use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::point::{Load, Micro, Point, Subject};
use crate::figure::{Figure, FigureReport, Results};

/// Figure 13.
pub(super) struct SwitchFailure;

const LOAD: Load = Load::Failure(Micro::sharing(60));

/// Moments of a run, in their order. The names are what is marked on the chart.
pub(crate) const STOPS: &str = "switch stops";
/// The switch forwards packets again, with an empty directory.
pub(crate) const RESTARTS: &str = "switch is up";
/// The homes have rebuilt their directories.
pub(crate) const RECOVERED: &str = "metadata rebuilt";
/// The hot blocks are in the switch again.
pub(crate) const MIGRATED: &str = "hot blocks back";

impl Figure for SwitchFailure {
    fn name(&self) -> &'static str {
        "concordia-13"
    }

    fn title(&self) -> &'static str {
        "The switch stops and comes back, at 60 % sharing"
    }

    fn points(&self) -> Vec<Point> {
        vec![Point::new(Subject::Concordia, LOAD)]
    }

    fn report(&self, results: &Results) -> FigureReport {
        let it = results.at(Subject::Concordia, LOAD);
        let moment = |name| it.moment(name).unwrap_or(f64::NAN);
        let between = |from: f64, to: f64| {
            let inside = it.curve.iter().filter(|(at, _)| *at > from && *at <= to).map(|(_, rate)| *rate);
            let (sum, count) = inside.fold((0.0, 0_u32), |(sum, count), rate| (sum + rate, count + 1));
            sum / f64::from(count.max(1))
        };
        let before = between(0.0, moment(STOPS));
        let end = it.curve.last().map_or(0.0, |(at, _)| *at);
        let after = between(moment(MIGRATED), end);
        let mut chart = Chart::new(self.name(), "Throughput while the switch fails", "time (ms)", "Mops")
            .line(Subject::Concordia.name(), it.curve.iter().map(|(at, rate)| (at * 1e3, rate / 1e6)));
        chart.marks = it.moments.iter().map(|(name, at)| (at * 1e3, name.clone())).collect();
        const SMALLER: &str = "Not known. Here reports cross an idle network, many blocks to a packet, \
            and the control plane takes no time.";
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "The paper's 20 s before the failure and 16 s of initialisation are 8 ms each here. \
                 Recovery is not scaled: caches and directories are full."
                    .to_owned(),
            ],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![chart],
            claims: vec![
                Claim::quantity("metadata rebuilt after", 1.9, moment(RECOVERED) - moment(RESTARTS), "s")
                    .because(SMALLER),
                Claim::quantity(
                    "hot blocks back in the switch after",
                    1.5,
                    moment(MIGRATED) - moment(RECOVERED),
                    "s",
                )
                .because(SMALLER),
                Claim::ratio("throughput returns: after over before", 1.0, after / before),
            ],
        }
    }
}
