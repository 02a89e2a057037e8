//! No reader of an object ever sees two versions of it, while threads write it: the same checker judges the driver's own
//! reads and those of the SABRe engine over the same memory, and finds what is read without either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use live::memory::NodeMemory;
use live::memory::regions::{Region, Shape};
use nic::objects::{self, Attempt, Effect, Engine, Load, Mode, SabreConfig};
use wire::{BlockSize, GlobalAddr, Nanos, NodeId};

const READS: u64 = 20_000;
/// Objects beside each other; the middle ones are read and written.
const OBJECTS: usize = 4;

fn region(len: usize) -> Arc<Region> {
    let memory = NodeMemory::new(BlockSize::DEFAULT, 1 << 20, 1 << 20);
    let shape = Shape::objects(OBJECTS, len);
    memory.regions.begin(&memory.home, GlobalAddr::new(NodeId(0), 4096), shape, true)
}

/// What the words of a stamped object are: all of one stamp, which says the version, too.
fn stamp_of(bytes: &[u8]) -> Result<u64, (u64, u64)> {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let first = words.next().expect("objects have a word");
    words.find(|word| *word != first).map_or(Ok(first), |other| Err((first, other)))
}

/// Writers stamp objects with their next versions while `read` reads, some times each object. Returns what the checker says of
/// each read that was called whole, until it does not like one.
fn judge(
    len: usize,
    reads: u64,
    read: impl Fn(&Region, usize, &mut [u8]) -> Option<u64>,
) -> Result<u64, String> {
    let region = region(len);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for number in 0..OBJECTS {
                        let writing = region.object(number).unwrap().write().unwrap();
                        let stamp = writing.version().to_le_bytes();
                        (0..len / 8).for_each(|word| writing.write(word * 8, &stamp));
                    }
                    thread::yield_now();
                }
            });
        }
        let verdict = judge_reads(&region, len, reads, &read);
        over.store(true, Ordering::Relaxed);
        verdict
    })
}

fn judge_reads(
    region: &Region,
    len: usize,
    reads: u64,
    read: impl Fn(&Region, usize, &mut [u8]) -> Option<u64>,
) -> Result<u64, String> {
    let (mut bytes, mut whole) = (vec![0; len], 0);
    let mut last = [0; OBJECTS];
    for attempt in 0..reads {
        let number = attempt as usize % OBJECTS;
        let Some(version) = read(region, number, &mut bytes) else { continue };
        whole += 1;
        let stamp = stamp_of(&bytes).map_err(|two| format!("two versions in one read: {two:?}"))?;
        if stamp != version {
            return Err(format!("version {version} with the bytes of {stamp}"));
        }
        if version < last[number] {
            return Err(format!("version {version} after {}", last[number]));
        }
        last[number] = version;
    }
    Ok(whole)
}

/// The engine over the region's words, asked for one object.
fn by_engine(region: &Region, number: usize, into: &mut [u8]) -> Option<u64> {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
    let blocks = ((into.len() + 8) as u32).div_ceil(64);
    let mut engine: Engine = Engine::new(SabreConfig { mode: Mode::VersionFirst, ..SabreConfig::PAPER });
    let attempt = Attempt { requester: 1, number: ATTEMPTS.fetch_add(1, Ordering::Relaxed) };
    let first = number as u64 * u64::from(blocks);
    let (now, mut out) = (Nanos(0), Vec::new());
    engine.on_register(now, attempt, objects::Object { first, blocks, header: 0 }).unwrap();
    engine.on_request(now, attempt, blocks).unwrap();
    let word = |at: u64| region.word(at as usize).unwrap();
    let mut seen = 0;
    while let Some(load) = engine.select(&mut out) {
        match load {
            Load::Version { row, block } => {
                // What was read before is read before; what is read behind it, behind.
                std::sync::atomic::fence(Ordering::Acquire);
                seen = word(block * 8).load(Ordering::Acquire);
                engine.on_version(row, seen, &mut out);
            }
            Load::Block { row, block, index } => {
                let words: Vec<u64> = (0..8).map(|at| word(block * 8 + at).load(Ordering::Relaxed)).collect();
                for (at, value) in words.iter().enumerate() {
                    let byte = (index as usize * 8 + at) * 8;
                    if let Some(place) = byte.checked_sub(8).and_then(|byte| into.get_mut(byte..byte + 8)) {
                        place.copy_from_slice(&value.to_le_bytes());
                    }
                }
                engine.on_block(row, index, words[0], &mut out);
            }
            Load::Lock { .. } => unreachable!("no lock is asked for in this mode"),
        }
    }
    let mut verdicts = out.iter().filter_map(|effect| match effect {
        Effect::Verdict { whole, .. } => Some(*whole),
        _ => None,
    });
    assert_eq!(verdicts.clone().count(), 1, "one verdict for each attempt");
    verdicts.next_back().unwrap().then_some(seen)
}

#[test]
fn a_read_that_is_called_whole_is_of_one_version() {
    for len in [8, 120, 1016, 8184] {
        let whole = judge(len, READS, |region, number, into| region.read(number, into).unwrap().ok());
        assert!(whole.unwrap() > 0, "{len} bytes");
    }
}

#[test]
fn the_engine_reads_the_same_memory_with_the_same_promise() {
    for len in [120, 1016, 8184] {
        assert!(judge(len, READS / 4, by_engine).unwrap() > 0, "{len} bytes");
    }
}

#[test]
fn a_copy_without_a_second_look_at_the_version_is_found_torn() {
    let copy = |region: &Region, number: usize, into: &mut [u8]| {
        let first = number * (into.len() / 8 + 1).next_multiple_of(8);
        let version = region.word(first).unwrap().load(Ordering::Acquire);
        for (word, place) in into.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *place = region.word(first + 1 + word).unwrap().load(Ordering::Relaxed).to_le_bytes();
        }
        version.is_multiple_of(2).then_some(version)
    };
    let late = Instant::now() + Duration::from_secs(60);
    while judge(8184, READS, copy).is_ok() {
        assert!(Instant::now() < late, "the checker finds nothing");
    }
}
