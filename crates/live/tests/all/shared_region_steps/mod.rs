//! A process dies after each single instruction of a write to an object that it shares with others: whatever it has done by
//! then, the object is as it was, or lost, or as it was written.
//!
//! The test runs its own executable again as the writer, and takes it through the write step by step, as a debugger does. What the
//! memory holds after each step is what a death there leaves: the home finds one after the other, when the writer has been killed.
//! Where the system does not let it lead another process, it says so.
#![cfg(target_os = "linux")]

mod led;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use led::Led;
use live::memory::regions::{Missing, Region, Regions, Shape};
use transport::shm::{ShmConfig, ShmTransport};
use transport::{PeerId, Sharing, Terms, Transport};
use wire::{GlobalAddr, Incarnation, Nanos, NodeId};

const RACK: &str = "RACKMEM_TEST_RACK";
const HOME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const INCARNATION: Incarnation = Incarnation(7);
const LONG: Nanos = Nanos(60_000_000_000);
const OBJECT: GlobalAddr = GlobalAddr::new(HOME, 0x1000);
const WORDS: GlobalAddr = GlobalAddr::new(HOME, 0x80_0000);
const LEN: usize = 24;
const BEFORE: [u8; LEN] = [1; LEN];
const AFTER: [u8; LEN] = [5; LEN];
/// The words by which the two processes talk.
const THREAD: usize = 0;
const GO: usize = 1;
const BEGUN: usize = 2;
const DONE: usize = 3;
/// Instructions that a write takes, at most.
const MOST_STEPS: usize = 4096;

struct Node {
    regions: Regions,
    sharing: Arc<dyn Sharing>,
    _transport: ShmTransport,
}

impl Node {
    fn open(dir: &Path, node: NodeId) -> Self {
        let config = ShmConfig {
            dir: dir.into(),
            me: PeerId::node(node),
            block: 4096,
            ring_bytes: None,
            terms: Terms::default(),
        };
        let transport = ShmTransport::open(&config).unwrap();
        let sharing = transport.sharing().unwrap();
        Self { regions: Regions::default(), sharing, _transport: transport }
    }

    fn begin(&self, addr: GlobalAddr, shape: Shape) -> Arc<Region> {
        self.regions.begin_shared(&self.sharing, addr, shape, INCARNATION).unwrap()
    }

    fn map(&self, addr: GlobalAddr) -> Arc<Region> {
        self.regions
            .map_shared(addr, INCARNATION, |home, name| self.sharing.obtain(home, name, LONG))
            .unwrap()
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// In the other process: writes the object when told to.
fn write_when_told(dir: &Path, write: impl Fn(&Region)) -> ! {
    let node = Node::open(dir, OTHER);
    let (object, words) = (node.map(OBJECT), node.map(WORDS));
    let word = |at: usize| words.word(at).unwrap();
    // "<process>/task/<thread>"
    let me = std::fs::read_link("/proc/thread-self").unwrap();
    let thread: u64 = me.file_name().unwrap().to_str().unwrap().parse().unwrap();
    word(THREAD).store(thread, SeqCst);
    while word(GO).load(SeqCst) == 0 {
        std::hint::spin_loop();
    }
    word(BEGUN).store(1, SeqCst);
    write(&object);
    word(DONE).store(1, SeqCst);
    loop {
        std::thread::park();
    }
}

/// Starts the writer, and leads it to where its write begins. None if it may not be led.
fn start(test: &str, dir: &Path, words: &Region) -> Option<Led> {
    (0..4).for_each(|at| words.word(at).unwrap().store(0, SeqCst));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("shared_region_steps::{test}"), "--nocapture"])
        .env(RACK, dir)
        .stdout(Stdio::null());
    let mut led = Led::new(command.spawn().unwrap());
    until("the writer", || words.word(THREAD).unwrap().load(SeqCst) != 0);
    if !led.take(words.word(THREAD).unwrap().load(SeqCst) as i32) {
        return None;
    }
    words.word(GO).unwrap().store(1, SeqCst);
    while words.word(BEGUN).unwrap().load(SeqCst) == 0 {
        led.step();
    }
    Some(led)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    AsBefore,
    Lost,
    AsWritten,
}

/// A writer dies after 0, 1, 2, ... instructions, until it has ended its write. Returns what became of the object, each time.
fn outcomes(test: &str, prepare: impl Fn(&Region), write: impl Fn(&Region)) -> Option<Vec<Outcome>> {
    let left = what_is_left(test, Shape::objects(1, LEN), (&BEFORE, prepare), write)?;
    let of = |left: Result<Vec<u8>, Missing>| match left {
        Ok(bytes) if bytes == BEFORE => Outcome::AsBefore,
        Ok(bytes) if bytes == AFTER => Outcome::AsWritten,
        Err(Missing::Lost) => Outcome::Lost,
        other => panic!("{other:?}"),
    };
    Some(left.into_iter().map(of).collect())
}

/// The same shape, of so many.
fn of_many(shape: Shape, count: usize) -> Shape {
    match shape {
        Shape::Objects { len, front_last, .. } => Shape::Objects { count, len, front_last },
        other => other,
    }
}

/// The same of any object: its bytes, each time.
fn what_is_left(
    test: &str,
    shape: Shape,
    (before, prepare): (&[u8], impl Fn(&Region)),
    write: impl Fn(&Region),
) -> Option<Vec<Result<Vec<u8>, Missing>>> {
    if let Some(dir) = std::env::var_os(RACK) {
        write_when_told(dir.as_ref(), write);
    }
    let dir = std::env::temp_dir().join(format!("rackmem-steps-{}-{}", std::process::id(), test.len()));
    let home = Node::open(&dir, HOME);
    let words = home.begin(WORDS, Shape::Words { count: 4 });
    // The first one is written. What it is after each step comes into one of the others.
    let region = home.begin(OBJECT, of_many(shape, 1 + MOST_STEPS));
    let stride = usize::try_from((of_many(shape, 2).bytes().unwrap() - shape.bytes().unwrap()) / 8).unwrap();
    let word = |number: usize, at: usize| region.word(number * stride + at).unwrap();
    region.object(0).unwrap().overwrite(before).unwrap();
    prepare(&region);
    let Some(led) = start(test, &dir, &words) else {
        println!("skipped: the system lets nobody lead another process");
        let _ = std::fs::remove_dir_all(&dir);
        return None;
    };
    let mut steps = 0;
    loop {
        steps += 1;
        assert!(steps <= MOST_STEPS, "it takes more instructions");
        (0..stride).for_each(|at| word(steps, at).store(word(0, at).load(SeqCst), SeqCst));
        if words.word(DONE).unwrap().load(SeqCst) == 1 {
            break;
        }
        led.step();
    }
    // Killed, where its last step has left it.
    drop(led);
    let mut is_told = home.regions.node_died(OTHER);
    until("certainty", || {
        is_told = is_told || home.regions.lose_objects_of(OTHER);
        is_told
    });
    let found = |step: usize| {
        let mut bytes = vec![0; before.len()];
        let version = region.object(step).and_then(|object| object.read(&mut bytes));
        version.map(|version| {
            assert!(version.is_ok(), "{version:?} after {} instructions: {bytes:?}", step - 1);
            bytes
        })
    };
    let outcomes: Vec<_> = (1..=steps).map(found).collect();
    let _ = std::fs::remove_dir_all(&dir);
    println!("{} instructions", outcomes.len());
    Some(outcomes)
}

#[test]
fn a_writer_killed_after_any_instruction_leaves_the_object_as_before_or_lost_or_written() {
    const NAME: &str = "a_writer_killed_after_any_instruction_leaves_the_object_as_before_or_lost_or_written";
    let write = |region: &Region| {
        let object = region.object(0).unwrap();
        let writing = object.write().unwrap();
        writing.write(0, &AFTER[..LEN / 2]);
        writing.write(LEN / 2, &AFTER[LEN / 2..]);
    };
    let Some(outcomes) = outcomes(NAME, |_| {}, write) else { return };
    assert!(outcomes.is_sorted(), "{outcomes:?}");
    for each in [Outcome::AsBefore, Outcome::Lost, Outcome::AsWritten] {
        assert!(outcomes.contains(&each), "never {each:?}");
    }
}

#[test]
fn a_lost_object_stays_lost_until_the_last_instruction_that_writes_it_over() {
    const NAME: &str = "a_lost_object_stays_lost_until_the_last_instruction_that_writes_it_over";
    // As `Regions::node_died` leaves it: nobody's, in the version that its writer had taken.
    let lose = |region: &Region| region.word(0).unwrap().store(127 << 57 | 77, SeqCst);
    let write = |region: &Region| assert_eq!(region.object(0).unwrap().overwrite(&AFTER), Ok(78));
    let Some(outcomes) = outcomes(NAME, lose, write) else { return };
    let written = outcomes.iter().position(|outcome| *outcome == Outcome::AsWritten).expect("it ended");
    assert!(written > 0 && outcomes[..written].iter().all(|outcome| *outcome == Outcome::Lost));
    assert!(outcomes[written..].iter().all(|outcome| *outcome == Outcome::AsWritten));
}

#[test]
fn an_object_that_is_written_front_last_is_never_lost_and_its_front_is_of_what_is_behind_it() {
    const NAME: &str =
        "an_object_that_is_written_front_last_is_never_lost_and_its_front_is_of_what_is_behind_it";
    // Ends in the middle of a word.
    const LEN: usize = Shape::FRONT + 37;
    let shape = Shape::Objects { count: 1, len: LEN, front_last: true };
    let write = |region: &Region| {
        region.object(0).unwrap().write().unwrap().write(0, &[5; LEN]);
    };
    let Some(left) = what_is_left(NAME, shape, (&[1; LEN], |_: &Region| {}), write) else { return };
    let mut seen = std::collections::BTreeSet::new();
    for bytes in left {
        let bytes = bytes.expect("nothing is lost");
        let (front, behind) = bytes.split_at(Shape::FRONT);
        // Words of the front that are written: the last ones.
        let written = front.chunks(8).rev().take_while(|word| **word == [5; 8]).count();
        assert!(front[..Shape::FRONT - written * 8].iter().all(|byte| *byte == 1), "{bytes:?}");
        assert!(written == 0 || behind.iter().all(|byte| *byte == 5), "{bytes:?}");
        seen.insert((written, behind.contains(&1)));
    }
    assert!(
        seen.is_superset(&[(0, true), (0, false), (1, false), (2, false), (3, false)].into()),
        "{seen:?}"
    );
}
