//! What reading an object whole costs where the memory is within reach: `ByteObjects`, beside objects with a version in every
//! cache line (FaRM's layout) and a copy that checks nothing, in the same run, while 0 to 16 threads write.
//!
//! ```text
//! cargo run --release -p rackmem --example object_reads
//! ```
//!
//! One thread reads, objects at random. Writers write all the time, each its own objects, and let others run after each write.
//! Times are medians of small batches of successful reads, with what was read in vain; so on a machine with fewer cores than
//! threads they leave out the waiting for a core. `torn` is how many attempts in a hundred were in vain.
//!
//! Versions in lines are for memory whose reader gets lines whole and in any order, as a NIC does: a READ brings the lines, then
//! the reader checks and strips them. A processor may strip them where they are, too; that is in the table as `in place`.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{ByteObjects, Config, NodeHandle, NodeId, Rack, ReadError, Retry, Window};

const OBJECTS: usize = 16;
const WRITERS: [usize; 6] = [0, 1, 2, 4, 8, 16];
const ROUNDS: usize = 5;
const BATCH: usize = 32;
/// How long each kind of reader reads in a round.
const ROUND: Duration = Duration::from_millis(40);
/// Words of a line, of which one is the version.
const LINE: usize = 8;
const STRIPPED: usize = (LINE - 1) * 8;

/// A way to keep objects.
trait Kept: Sync {
    /// Tries to read one whole; false if it was torn.
    fn read(&self, node: &mut NodeHandle, index: usize, into: &mut [u8], lines: &mut [u64]) -> bool;
    /// Fills one.
    fn write(&self, node: &mut NodeHandle, index: usize, bytes: &[u8]);
}

impl Kept for ByteObjects {
    fn read(&self, node: &mut NodeHandle, index: usize, into: &mut [u8], _: &mut [u64]) -> bool {
        match ByteObjects::read(self, node, index, into, Retry::Never) {
            Ok(_) => true,
            Err(ReadError::Torn { .. }) => false,
            Err(why) => panic!("{why}"),
        }
    }

    fn write(&self, node: &mut NodeHandle, index: usize, bytes: &[u8]) {
        ByteObjects::write(self, node, index, 0, bytes).expect("it is there");
    }
}

/// Nothing is checked: what is read may be of many versions.
struct Unchecked {
    words: Vec<AtomicU64>,
    len: usize,
}

impl Unchecked {
    fn new(len: usize) -> Self {
        Self { words: (0..OBJECTS * len / 8).map(|_| AtomicU64::new(0)).collect(), len }
    }

    fn window(&self, index: usize) -> Window<'_> {
        Window::new(&self.words, index * self.len, self.len)
    }
}

impl Kept for Unchecked {
    fn read(&self, _: &mut NodeHandle, index: usize, into: &mut [u8], _: &mut [u64]) -> bool {
        self.window(index).read(0, into);
        true
    }

    fn write(&self, _: &mut NodeHandle, index: usize, bytes: &[u8]) {
        self.window(index).write(0, bytes);
    }
}

/// A version at the end of every line; that of the first line is the object's. Nobody but its writer writes an object.
struct Versions<const IN_PLACE: bool> {
    words: Vec<AtomicU64>,
    lines: usize,
}

impl<const IN_PLACE: bool> Versions<IN_PLACE> {
    fn new(len: usize) -> Self {
        let lines = len.div_ceil(STRIPPED);
        let words = (0..OBJECTS * lines * LINE + LINE).map(|_| AtomicU64::new(0)).collect();
        Self { words, lines }
    }

    fn lines(&self, index: usize) -> &[[AtomicU64; LINE]] {
        // On cache lines.
        let first = self.words.as_ptr().align_offset(64);
        &self.words[first..].as_chunks().0[index * self.lines..][..self.lines]
    }
}

/// Strips lines into bytes while they are what `of_line` accepts: the words of one line, or none. Whole lines with constant lengths,
/// which the compiler unrolls.
#[inline(always)]
fn strip(lines: usize, into: &mut [u8], mut of_line: impl FnMut(usize) -> Option<[u64; LINE - 1]>) -> bool {
    let (whole, last) = into.as_chunks_mut::<STRIPPED>();
    let in_whole = whole.len();
    for (number, bytes) in whole.iter_mut().enumerate() {
        let Some(words) = of_line(number) else { return false };
        for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
    if in_whole < lines {
        let Some(words) = of_line(in_whole) else { return false };
        for (bytes, word) in last.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
    true
}

impl<const IN_PLACE: bool> Kept for Versions<IN_PLACE> {
    fn read(&self, _: &mut NodeHandle, index: usize, into: &mut [u8], raw: &mut [u64]) -> bool {
        let lines = self.lines(index);
        if IN_PLACE {
            let version = lines[0][LINE - 1].load(Acquire);
            if !version.is_multiple_of(2) {
                return false;
            }
            return strip(self.lines, into, |number| {
                let line = &lines[number];
                let words = std::array::from_fn(|word| line[word].load(Relaxed));
                fence(Acquire);
                (line[LINE - 1].load(Relaxed) == version).then_some(words)
            });
        }
        // The READ: every line whole. The first one first, as the others must not be older.
        let (raw, _) = raw.as_chunks_mut::<LINE>();
        let version = lines[0][LINE - 1].load(Acquire);
        for (line, raw) in lines.iter().zip(raw.iter_mut()) {
            *raw = std::array::from_fn(|word| if word < LINE - 1 { line[word].load(Relaxed) } else { 0 });
            fence(Acquire);
            raw[LINE - 1] = line[LINE - 1].load(Relaxed);
        }
        let raw = black_box(&raw[..self.lines]);
        // What the reader does with it.
        if !version.is_multiple_of(2) {
            return false;
        }
        strip(self.lines, into, |number| {
            let line = &raw[number];
            (line[LINE - 1] == version).then(|| std::array::from_fn(|word| line[word]))
        })
    }

    fn write(&self, _: &mut NodeHandle, index: usize, bytes: &[u8]) {
        let lines = self.lines(index);
        let first = &lines[0][LINE - 1];
        let version = first.load(Relaxed);
        first.store(version + 1, Relaxed);
        fence(Release);
        for (number, (line, bytes)) in lines.iter().zip(bytes.chunks(STRIPPED)).enumerate() {
            if number > 0 {
                line[LINE - 1].store(version + 2, Relaxed);
                fence(Release);
            }
            for (word, bytes) in line.iter().zip(bytes.as_chunks::<8>().0) {
                word.store(u64::from_le_bytes(*bytes), Relaxed);
            }
        }
        first.store(version + 2, Release);
    }
}

/// What one round found: time of a read, in nanoseconds, and attempts.
struct Found {
    each: f64,
    attempts: usize,
    reads: usize,
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn round(rack: &Rack, kept: &impl Kept, len: usize, writers: usize, checked: bool) -> Found {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..writers {
            let (mut node, over) = (rack.node(NodeId(1)), &over);
            scope.spawn(move || {
                let mut stamp = 0_u64;
                let mut bytes = vec![0_u8; len];
                while !over.load(Relaxed) {
                    for index in (writer..OBJECTS).step_by(writers) {
                        stamp += 1;
                        bytes.as_chunks_mut::<8>().0.fill(stamp.to_le_bytes());
                        kept.write(&mut node, index, &bytes);
                        // Or it would lose its core in the middle of a write as often as not, where there are fewer cores
                        // than threads.
                        thread::yield_now();
                    }
                }
            });
        }
        let mut node = rack.node(NodeId(0));
        let (mut into, mut lines) = (vec![0; len], vec![0; len.div_ceil(STRIPPED) * LINE]);
        let (mut times, mut attempts, mut random) = (Vec::new(), 0, 1_u64);
        let round = Instant::now();
        while round.elapsed() < ROUND {
            let began = Instant::now();
            for _ in 0..BATCH {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let index = (random >> 60) as usize % OBJECTS;
                let mut vain = 0;
                while !kept.read(&mut node, index, black_box(&mut into), &mut lines) {
                    vain += 1;
                    if vain % 16 == 0 { thread::yield_now() } else { std::hint::spin_loop() }
                }
                attempts += vain + 1;
            }
            times.push(began.elapsed().as_secs_f64() * 1e9 / BATCH as f64);
            let words = into.as_chunks::<8>().0;
            assert!(!checked || words.iter().all(|word| *word == words[0]), "a torn read was called whole");
        }
        over.store(true, Relaxed);
        let reads = times.len() * BATCH;
        Found { each: median(times), attempts, reads }
    })
}

fn main() {
    let config = Config { nodes: 2, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let mut node = rack.node(NodeId(0));
    println!(
        "{:>8} {:>7} {:>13} {:>15} {:>15} {:>24} {:>17}",
        "", "", "unchecked", "ours", "versions", "versions in place", "torn"
    );
    println!(
        "{:>8} {:>7} {:>13} {:>15} {:>15} {:>24} {:>17}",
        "bytes", "writers", "ns", "ns (unchecked)", "ns (ours)", "ns (ours)", "ours, versions %"
    );
    for len in [128, 1024, 8192] {
        let ours = node.byte_objects(OBJECTS, len, NodeId(1)).expect("there is room");
        let unchecked = Unchecked::new(len);
        let (versions, in_place) = (Versions::<false>::new(len), Versions::<true>::new(len));
        for writers in WRITERS {
            let rounds: Vec<[Found; 4]> = (0..ROUNDS)
                .map(|_| {
                    [
                        round(&rack, &unchecked, len, writers, false),
                        round(&rack, &ours, len, writers, true),
                        round(&rack, &versions, len, writers, true),
                        round(&rack, &in_place, len, writers, true),
                    ]
                })
                .collect();
            let each = |kind: usize| median(rounds.iter().map(|round| round[kind].each).collect());
            let against = |kind: usize, other: usize| {
                median(rounds.iter().map(|round| round[kind].each / round[other].each).collect())
            };
            let torn = |kind: usize| {
                let sum =
                    |of: fn(&Found) -> usize| rounds.iter().map(|round| of(&round[kind])).sum::<usize>();
                let (attempts, reads) = (sum(|found| found.attempts), sum(|found| found.reads));
                100.0 * (attempts - reads) as f64 / attempts as f64
            };
            println!(
                "{len:>8} {writers:>7} {:>13.1} {:>7.1} ({:.2}x) {:>7.1} ({:.2}x) {:>16.1} ({:.2}x) {:>7.1}, {:.1}",
                each(0),
                each(1),
                against(1, 0),
                each(2),
                against(2, 1),
                each(3),
                against(3, 1),
                torn(1),
                torn(2)
            );
        }
        ours.free(&mut node).expect("it is there");
    }
}
