//! A page of metrics in the text format of OpenMetrics.
//!
//! What must always hold: all samples of a name stand together, under its kind and meaning.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rackmem::LockTimes;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
struct Family {
    kind: MetricKind,
    help: &'static str,
    samples: Vec<(Labels, Sample)>,
}

#[derive(Debug)]
enum Sample {
    Number(f64),
    Times(Box<LockTimes>),
}

/// A page in the making.
#[derive(Debug, Default)]
pub(super) struct Page {
    families: BTreeMap<&'static str, Family>,
}

impl Page {
    pub(super) fn counter(&mut self, name: &'static str, help: &'static str, count: u64) {
        self.add::<&str>(MetricKind::Counter, name, help, &[], count);
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.add::<&str>(MetricKind::Gauge, name, help, &[], value);
    }

    pub(super) fn add<V: AsRef<str>>(
        &mut self,
        kind: MetricKind,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, V)],
        value: u64,
    ) {
        // Prometheus has no other numbers than these.
        self.sample(kind, name, help, labels, Sample::Number(value as f64));
    }

    pub(super) fn add_float<V: AsRef<str>>(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, V)],
        value: f64,
    ) {
        self.sample(MetricKind::Gauge, name, help, labels, Sample::Number(value));
    }

    pub(super) fn times<V: AsRef<str>>(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, V)],
        times: LockTimes,
    ) {
        self.sample(MetricKind::Histogram, name, help, labels, Sample::Times(Box::new(times)));
    }

    fn sample<V: AsRef<str>>(
        &mut self,
        kind: MetricKind,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, V)],
        value: Sample,
    ) {
        let labels = labels.iter().map(|(name, value)| (*name, value.as_ref().to_owned())).collect();
        let family = self.families.entry(name).or_insert_with(|| Family { kind, help, samples: Vec::new() });
        family.samples.push((labels, value));
    }

    pub(super) fn finish(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a string takes everything");
        text
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, Family { kind, help, samples }) in &self.families {
            // The format adds a full stop of its own.
            let help = help.trim_end_matches('.');
            let kind_of = match kind {
                MetricKind::Counter => ConstCounter::new(0.0).metric_type(),
                MetricKind::Gauge => ConstGauge::new(0.0).metric_type(),
                MetricKind::Histogram => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(name, help, None, kind_of)?;
            for (labels, value) in samples {
                if labels.is_empty() {
                    // Then there is only one.
                    encode_sample(*kind, value, family)?;
                    break;
                }
                encode_sample(*kind, value, family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

fn encode_sample(
    kind: MetricKind,
    sample: &Sample,
    mut encoder: MetricEncoder<'_>,
) -> Result<(), fmt::Error> {
    const SECOND: f64 = 1e9;
    let value = match sample {
        Sample::Number(value) => *value,
        Sample::Times(times) => {
            let most = |at| LockTimes::at_most(at).map_or(f64::INFINITY, |most| most.0 as f64 / SECOND);
            let buckets = times.buckets.iter().enumerate().map(|(at, count)| (most(at), *count));
            let (sum, buckets) = (times.sum.0 as f64 / SECOND, buckets.collect::<Vec<_>>());
            return encoder.encode_histogram::<NoLabelSet>(sum, times.count(), &buckets, None);
        }
    };
    // Most are whole, and shown so.
    let whole = value as u64;
    match (kind, whole as f64 == value) {
        (MetricKind::Gauge, false) => ConstGauge::new(value).encode(encoder),
        (MetricKind::Gauge, true) => ConstGauge::new(whole).encode(encoder),
        _ => ConstCounter::new(whole).encode(encoder),
    }
}
