//! How fast the event queue is: pairs of one `pop` and one `push`, with a million events pending all the time.
//!
//! `cargo run --release -p rackmem-sim --example queue_speed`
//!
//! It runs outside of any rack. Of the events pushed, or of those pending, 90 % are due within 2 us and the
//! others within 1 ms, each moment as likely. The standard library's binary heap does the same work in the same
//! run, for comparison: absolute numbers of two machines mean little beside each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sim::queue::EventQueue;
use sim::system::Random;
use wire::Nanos;

const PENDING: usize = 1_000_000;
const RUNS: usize = 5;
/// Delays are drawn beforehand, so that the queues are measured and not the generator.
const DRAWN: usize = 1 << 16;
const NEAR: Nanos = Nanos::from_micros(2);
const FAR: Nanos = Nanos::from_millis(1);

/// How far ahead events are pushed.
#[derive(Clone, Copy)]
struct Mix {
    name: &'static str,
    /// The share that is near, in 2^-64.
    of_pushed: u64,
    of_pending: u64,
}

impl Mix {
    /// An event stays for half of its range on average. That leads from one share to the other.
    fn new(name: &'static str, pushed_near: f64) -> Self {
        let near = pushed_near * NEAR.0 as f64;
        let far = (1.0 - pushed_near) * FAR.0 as f64;
        let of = |share: f64| (share * u64::MAX as f64) as u64;
        Self { name, of_pushed: of(pushed_near), of_pending: of(near / (near + far)) }
    }

    /// The delay of a new event.
    fn ahead(self, random: &mut Random) -> Nanos {
        let range = if random.bits() < self.of_pushed { NEAR } else { FAR };
        Nanos(random.below(range.0))
    }

    /// What is left of the delay of an event that is found pending in a steady state: the probability of still
    /// being there falls linearly over its range.
    fn left(self, random: &mut Random) -> Nanos {
        let range = if random.bits() < self.of_pending { NEAR } else { FAR };
        let uniform = random.bits() as f64 / u64::MAX as f64;
        Nanos((range.0 as f64 * (1.0 - uniform.sqrt())) as u64)
    }
}

/// Both queues, to measure them with the same code.
trait Queue<E> {
    fn put(&mut self, at: Nanos, event: E);
    fn take(&mut self) -> Option<(Nanos, E)>;
}

impl<E> Queue<E> for EventQueue<E> {
    fn put(&mut self, at: Nanos, event: E) {
        self.push(at, event);
    }

    fn take(&mut self) -> Option<(Nanos, E)> {
        self.pop()
    }
}

/// A heap that keeps the order of pushing, as the event queue does.
struct Heap<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    pushed: u64,
}

struct Entry<E> {
    at: Nanos,
    number: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<E> Queue<E> for Heap<E> {
    fn put(&mut self, at: Nanos, event: E) {
        self.pushed += 1;
        self.entries.push(Reverse(Entry { at, number: self.pushed, event }));
    }

    fn take(&mut self) -> Option<(Nanos, E)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

/// How long this thread has run on a processor, so that others on the same machine count less. The time that
/// has passed, where the system does not tell.
fn processor_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    ran.map_or_else(|| STARTED.elapsed(), Duration::from_nanos)
}

/// Million pairs per second, the median of the runs, and a digest of what was popped in the first of them.
fn measure<E>(
    mut queue: impl Queue<E>,
    mix: Mix,
    pairs: usize,
    new: fn(u64) -> E,
    number: fn(&E) -> u64,
) -> (f64, u64) {
    let mut random = Random::new(1);
    for k in 0..PENDING {
        queue.put(mix.left(&mut random), new(k as u64));
    }
    let ahead: Vec<Nanos> = (0..DRAWN).map(|_| mix.ahead(&mut random)).collect();
    let mut digest = 0u64;
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|run| {
            let started = processor_time();
            for pair in 0..pairs {
                let (now, event) = queue.take().expect("as many are pushed as are popped");
                if run == 0 {
                    digest = digest.rotate_left(5) ^ now.0 ^ number(&event);
                }
                queue.put(now + ahead[pair % DRAWN], black_box(event));
            }
            pairs as f64 / (processor_time() - started).as_secs_f64() / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    (rates[RUNS / 2], digest)
}

fn compare<const WORDS: usize>(mix: Mix) {
    const PAIRS: usize = 2_000_000;
    let new = |k: u64| [k; WORDS];
    let number = |event: &[u64; WORDS]| event[0];
    let (heap, expected) = measure(Heap { entries: BinaryHeap::new(), pushed: 0 }, mix, PAIRS, new, number);
    let (wheel, found) = measure(EventQueue::new(), mix, PAIRS, new, number);
    assert_eq!(expected, found, "the event queue and the heap disagree");
    println!("{:<12} {:>5} B   {wheel:>8.1} {heap:>8.1} {:>7.1}x", mix.name, WORDS * 8, wheel / heap);
}

fn main() {
    println!("million pop+push pairs per second, {PENDING} pending; 90 % due within 2 us, 10 % within 1 ms");
    println!("{:<12} {:>7}   {:>8} {:>8} {:>8}", "90 % of", "event", "wheel", "heap", "ratio");
    for mix in [Mix::new("the pushed", 0.9), Mix::new("the pending", 0.9 * 500.0 / (0.9 * 500.0 + 0.1))] {
        // A rack's own events.
        compare::<1>(mix);
        compare::<2>(mix);
        compare::<3>(mix);
        compare::<8>(mix);
    }
}
