//! The switch stops, and comes back empty: what that costs.

use super::axis::PAPER;
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Chains, Load, Point, Subject};
use crate::figure::{Figure, FigureReport, Results, Table};

/// Beyond the paper's figures (section 5).
pub(super) struct SwitchFailure;

/// Moments of a run, in their order. The names are what is marked on the chart.
pub(crate) const STOPS: &str = "switch stops";
/// It forwards packets again, with empty state.
pub(crate) const RESTARTS: &str = "switch is up, and empty";

const SUBJECTS: [Subject; 4] =
    [Subject::Clover, Subject::Steering, Subject::SteeringScanned, Subject::SteeringAll];

const fn load(subject: Subject) -> Load {
    let held = if matches!(subject, Subject::Clover) { 0 } else { PAPER.held };
    Load::ChainsFailure(Chains { held, ..PAPER })
}

/// Operations per second on average, in this time of the curve, in seconds.
fn between(it: &Measured, from: f64, to: f64) -> f64 {
    let inside = it.curve.iter().filter(|(at, _)| *at > from && *at <= to).map(|(_, rate)| *rate);
    let (sum, count) = inside.fold((0.0, 0_u32), |(sum, count), rate| (sum + rate, count + 1));
    sum / f64::from(count.max(1))
}

impl Figure for SwitchFailure {
    fn name(&self) -> &'static str {
        "steering-failure"
    }

    fn title(&self) -> &'static str {
        "The switch crashes and comes back empty, 64 threads"
    }

    fn points(&self) -> Vec<Point> {
        SUBJECTS.map(|subject| Point::new(subject, load(subject))).to_vec()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let at = |subject| results.at(subject, load(subject));
        let mut chart = SUBJECTS.iter().fold(
            Chart::new(self.name(), "Throughput while the switch fails", "time (ms)", "Mops"),
            |chart, subject| {
                let curve = at(*subject).curve.iter();
                chart.line(subject.name(), curve.map(|(at, rate)| (at * 1e3, rate / 1e6)))
            },
        );
        let it = at(Subject::Steering);
        chart.marks = it.moments.iter().map(|(name, at)| (at * 1e3, name.clone())).collect();
        let moment = |name| it.moment(name).unwrap_or(f64::NAN);
        let end = it.curve.last().map_or(0.0, |(at, _)| *at);
        let before = between(it, 0.0, moment(STOPS));
        // Half of what is left after the switch is up.
        let later = between(it, (moment(RESTARTS) + end) / 2.0, end);
        let row = |subject: &Subject| {
            let it = at(*subject);
            let (stops, starts) = (moment(STOPS), moment(RESTARTS));
            let before = between(it, 0.0, stops);
            let back = |share: f64| {
                let back = it.curve.iter().find(|(at, rate)| *at > starts && *rate >= share * before);
                back.map_or(0.0, |(at, _)| (at - starts) * 1e3)
            };
            let missed = it.curve.iter().filter(|(at, _)| *at > stops).map(|(_, rate)| before - rate);
            let step = it.curve.first().map_or(0.0, |(at, _)| *at);
            let missed: f64 = missed.map(|rate| rate * step).sum();
            (subject.name().to_owned(), vec![before / 1e6, back(0.5), back(0.9), missed / before * 1e3])
        };
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "The switch is down for 4 ms; NICs resend every 1.05 ms. Then steered appends are \
                 indeterminate: their clients wait for 9.4 ms, until nothing can be in flight, and ask \
                 the metadata server. A connection with a READ in flight that may have been redirected \
                 reconnects, in 0.5 ms. No get is stale, no append is lost."
                    .to_owned(),
            ],
            tables: vec![Table {
                title: "What a crash costs".to_owned(),
                columns: [
                    "Mops before",
                    "half of it is back after, ms",
                    "nine tenths, ms",
                    "operations missed, in ms of those before",
                ]
                .map(str::to_owned)
                .to_vec(),
                rows: SUBJECTS.iter().map(row).collect(),
            }],
            remarks: vec![
                "Telling the switch the metadata server's tails does not help: writes teach it all that \
                 matter at once, and an old tail makes appends fail. (Our reading, not tested.)"
                    .to_owned(),
            ],
            charts: vec![chart],
            claims: vec![
                Claim::ratio("throughput returns: after over before", 1.0, later / before).of_ours(),
            ],
        }
    }
}
