//! Rounds and medians.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};
use rackmem::{Config, Rack};
use random::Random;
use serde::{Deserialize, Serialize};

use cli::fault::Fault;

/// The middle one; of two, the lower.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples.get(samples.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// A yardstick and what is measured, in one round.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Pair(pub(super) f64, pub(super) f64);

/// The medians of rounds; the ratio is the median of the rounds' ratios.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Against {
    pub(super) yardstick: f64,
    pub(super) measured: f64,
    pub(super) ratio: f64,
}

impl Against {
    pub(super) fn of(pairs: &[Pair]) -> Self {
        let all = |of: fn(&Pair) -> f64| median(pairs.iter().map(of).collect());
        Self {
            yardstick: all(|pair| pair.0),
            measured: all(|pair| pair.1),
            ratio: all(|pair| pair.1 / pair.0),
        }
    }
}

/// Nanoseconds that each of `times` repetitions took.
pub(super) fn time_each(times: u64, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64 / times as f64
}

/// Threads that all work until so much time has passed, and what each has come to.
pub(super) fn until<W: Send, T: Send, E: Send>(
    lasts: Duration,
    workers: impl Iterator<Item = W>,
    work: impl Fn(W, &AtomicBool) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (work, stop) = (&work, &stop);
        let at_work: Vec<_> = workers.map(|worker| scope.spawn(move || work(worker, stop))).collect();
        thread::sleep(lasts);
        stop.store(true, Ordering::Relaxed);
        at_work.into_iter().map(|thread| thread.join().expect("a thread of the benchmark panicked")).collect()
    })
}

/// A rack, or why it cannot be.
pub(crate) fn rack(config: Config) -> Result<Rack, Fault> {
    Rack::embedded(config).map_err(Fault::usage)
}

/// A fault of an access that cannot fail on a sound rack.
pub(super) fn failed(error: rackmem::Error) -> Fault {
    Fault::failed(format_args!("an access of the benchmark failed: {error}"))
}

/// A table whose first column is text and whose others are numbers.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}

/// Another order, the same on every run.
pub(super) fn shuffle<T>(order: &mut [T]) {
    let mut random = Random::new(0);
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn shuffling_keeps_every_element() {
        let mut order: Vec<u64> = (0..1000).collect();
        shuffle(&mut order);
        assert!(order.iter().enumerate().filter(|(at, n)| *at as u64 == **n).count() < 20);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}
