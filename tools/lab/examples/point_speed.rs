//! Where the processor time of the figures goes: for each point of a figure, how much preparing it takes and how much an
//! operation.
//!
//! `cargo run --release -p rackmem-lab --example point_speed [figure] [operations] [part of a point's name] [anything: prints all]`
//!
//! Everything up to the first report of progress counts as preparing, less what the operations until then take at the
//! rate of the rest. What must always hold: the points are measured one after the other, so their times do not disturb
//! each other.

use std::fs;
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use lab::concordia::FIGURES;
use lab::figure::input::Inputs;
use lab::figure::points_of;
use lab::figure::run::{Watch, measure_all};
use lab::sizes::Sizes;
use lab::systems::measure::measure;

/// When progress was reported first, and how much by then and since.
#[derive(Default)]
struct Clock(Mutex<(Option<f64>, u64, u64)>);

/// Seconds that all threads of this process had a processor, so that others on the same machine count less: user and
/// system time in `/proc`, in hundredths. The time that has passed, where there is no such thing.
fn processor_time() -> f64 {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = fs::read_to_string("/proc/self/stat").ok().and_then(|told| {
        let fields: Vec<&str> = told.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?)
    });
    told.map_or_else(|| STARTED.elapsed().as_secs_f64(), |ticks| ticks / 100.0)
}

impl Watch for Clock {
    fn advance(&self, operations: u64) -> bool {
        let mut clock = self.0.lock().expect("nobody panics with it");
        match clock.0 {
            Some(_) => clock.2 += operations,
            None => (clock.0, clock.1) = (Some(processor_time()), operations),
        }
        true
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("concordia-9", String::as_str);
    let operations = arguments.get(1).map_or(200_000, |text| text.parse().expect("a number"));
    let sizes = Sizes { operations, ..Sizes::FULL };
    let chosen: Vec<_> =
        FIGURES.into_iter().filter(|figure| figure.name() == name || name == "all").collect();
    let (mut preparing, mut running) = (0.0, 0.0);
    let part = arguments.get(2).map_or("", String::as_str);
    for point in points_of(&chosen) {
        let label = format!("{:?} {:?}", point.subject, point.load);
        if !label.contains(part) {
            continue;
        }
        let (clock, begun) = (Clock::default(), processor_time());
        let results = measure_all(&[point], 1, 1, |point, seed| {
            measure(point, &sizes, &Inputs::declared(), seed, &clock)
        });
        let ended = processor_time() - begun;
        let (first, before, since) = clock.0.into_inner().expect("nobody panics with it");
        let until_first = first.expect("every run reports progress") - begun;
        let each = (ended - until_first) / since.max(1) as f64;
        let prepared = until_first - before as f64 * each;
        let it = results.expect("nobody interrupts it");
        let events = it.at(point.subject, point.load).events;
        println!(
            "{label:<70} {prepared:>7.2} s, {:>6.0} ns/op, {:>5.1} events/op, digest {:016x}",
            each * 1e9,
            events as f64 / it.at(point.subject, point.load).operations as f64,
            it.digest(),
        );
        if arguments.get(3).is_some() {
            println!("{:#?}", it.at(point.subject, point.load));
        }
        preparing += prepared;
        running += ended - prepared;
    }
    println!("preparing {preparing:.1} s, running {running:.1} s");
}
