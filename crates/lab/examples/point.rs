//! scratch
use lab::figure::point::*;
use lab::figure::run::Unwatched;
use lab::sizes::Sizes;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let subject: Subject = serde_json::from_str(&format!("\"{}\"", a[1])).unwrap();
    let n = |i: usize, d: u64| a.get(i).map_or(d, |x| x.parse().unwrap());
    let load = Load::Micro(Micro { sharing: n(2, 20) as u8, reads: n(3, 50) as u8, locality: n(4, 0) as u8 });
    let sizes = Sizes { operations: n(5, 1_000_000), ..Sizes::FULL };
    let t = std::time::Instant::now();
    let m = lab::systems::measure::measure(&Point::new(subject, load), &sizes, 1, &Unwatched).unwrap();
    println!(
        "{subject:?} {load:?} {:.2} Mops hit {:.3} p50 {} p99 {} pk/op {:.2} home/op {:.3} ref/op {:.3} ev/op {:.3} B/op {:.0} sw {} agents {:?} thr {:.2} up {:.2} ev {} wall {:?}",
        m.mops(),
        m.per_operation(m.hits),
        m.median,
        m.slow,
        m.per_operation(m.packets),
        m.per_operation(m.home_packets),
        m.per_operation(m.refused),
        m.per_operation(m.evictions),
        m.per_operation(m.bytes),
        m.switch_entries,
        m.agents,
        m.threads,
        m.uplinks,
        m.events,
        t.elapsed()
    );
}
