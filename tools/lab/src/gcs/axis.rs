//! Locks against one number: the axis of a figure.
//!
//! What must always hold: a latency is that of whole operations, on average, as all threads work without a pause.

use crate::figure::Results;
use crate::figure::chart::Chart;
use crate::figure::measured::Measured;
use crate::figure::point::{Buckets, Contend, Load, Point, Subject};

/// A load that depends on one number.
pub(super) struct Axis {
    /// Its values.
    pub(super) values: &'static [u32],
    /// The load at a value.
    pub(super) load: fn(u32) -> Load,
}

/// Threads that work.
fn threads(load: Load) -> f64 {
    match load {
        Load::Contend(Contend { blades, threads, .. }) => f64::from(blades) * f64::from(threads),
        Load::Buckets(Buckets { blades, .. }) => f64::from(blades) * 10.0,
        other => panic!("{other:?} is not about locks"),
    }
}

impl Axis {
    pub(super) fn points(&self, subjects: &[Subject]) -> Vec<Point> {
        let at = |subject| self.values.iter().map(move |value| Point::new(subject, (self.load)(*value)));
        subjects.iter().copied().flat_map(at).collect()
    }

    pub(super) fn mops(&self, results: &Results, subject: Subject, value: u32) -> f64 {
        results.at(subject, (self.load)(value)).mops()
    }

    /// Microseconds of an operation on average.
    pub(super) fn latency(&self, results: &Results, subject: Subject, value: u32) -> f64 {
        threads((self.load)(value)) / self.mops(results, subject, value)
    }

    /// How many times the throughput of `second` that of `first` is, at each of these values.
    pub(super) fn ratios(
        &self,
        results: &Results,
        (first, second): (Subject, Subject),
        values: &[u32],
    ) -> Vec<f64> {
        let ratio = |value: &u32| self.mops(results, first, *value) / self.mops(results, second, *value);
        values.iter().map(ratio).collect()
    }

    fn chart(
        &self,
        (name, title, x, y): (&str, &str, &str, &str),
        scale: f64,
        subjects: &[Subject],
        number: impl Fn(Subject, u32) -> f64,
    ) -> Chart {
        subjects.iter().fold(Chart::new(name, title, x, y), |chart, subject| {
            let points =
                self.values.iter().map(|value| (f64::from(*value) / scale, number(*subject, *value)));
            chart.line(subject.name(), points)
        })
    }

    /// Throughput, and latency. The axis is labelled with the values over `scale`.
    pub(super) fn charts(
        &self,
        results: &Results,
        (name, title, x): (&str, &str, &str),
        scale: f64,
        subjects: &[Subject],
    ) -> [Chart; 2] {
        let throughput = (name, &*format!("{title}: throughput"), x, "Mops");
        let latency = (&*format!("{name}-latency"), &*format!("{title}: latency"), x, "us, on average");
        [
            self.chart(throughput, scale, subjects, |subject, value| self.mops(results, subject, value)),
            self.chart(latency, scale, subjects, |subject, value| self.latency(results, subject, value)),
        ]
    }

    /// Half and nearly all operations, of one system.
    pub(super) fn spread(&self, results: &Results, subject: Subject) -> Vec<(String, Vec<f64>)> {
        let of = |number: fn(&Measured) -> f64| {
            self.values.iter().map(|value| number(results.at(subject, (self.load)(*value)))).collect()
        };
        let name = subject.name();
        vec![
            (format!("{name}, half of the operations within"), of(|it| it.median)),
            (format!("{name}, 99 in 100 within"), of(|it| it.slow)),
        ]
    }
}
