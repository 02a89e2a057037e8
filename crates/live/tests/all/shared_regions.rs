//! Regions that processes of one machine share: what each sees of the others, and what becomes of objects whose writers are killed
//! or stopped, at whatever instant.
//!
//! A test that needs another process starts its own executable again, to run the same test; told by the environment, it plays the
//! other node there until it is killed.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use live::memory::regions::{Missing, NotMapped, Region, Regions, Shape, Torn};
use transport::shm::{ShmConfig, ShmTransport};
use transport::{NotObtained, PeerId, SharedMemory, Sharing, Terms, Transport};
use wire::{GlobalAddr, Incarnation, Nanos, NodeId};

const RACK: &str = "RACKMEM_TEST_RACK";
/// The node whose memory it is, and the one that is killed.
const HOME: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(2);
const THIRD: NodeId = NodeId(3);
const INCARNATION: Incarnation = Incarnation(7);
const LONG: Nanos = Nanos(60_000_000_000);
const SHORT: Nanos = Nanos(20_000_000);
/// Objects of a test, and words by which the processes of a test talk.
const OBJECTS: GlobalAddr = GlobalAddr::new(HOME, 0x1000);
const WORDS: GlobalAddr = GlobalAddr::new(HOME, 0x80_0000);
const LEN: usize = 1000;
const COUNT: usize = 8;

/// The directory of a rack, which goes with it.
struct Rack(PathBuf);

impl Rack {
    fn new() -> Self {
        static RACKS: AtomicU32 = AtomicU32::new(0);
        let name = format!("rackmem-regions-{}-{}", std::process::id(), RACKS.fetch_add(1, SeqCst));
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self, node: NodeId) -> Node {
        Node::open(&self.0, node)
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An incarnation of a node, in whichever process.
struct Node {
    regions: Regions,
    sharing: Arc<dyn Sharing>,
    _transport: ShmTransport,
}

impl Node {
    fn open(dir: &std::path::Path, node: NodeId) -> Self {
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

    fn begin_objects(&self) -> Arc<Region> {
        self.begin(OBJECTS, Shape::objects(COUNT, LEN))
    }

    fn map(&self, addr: GlobalAddr) -> Arc<Region> {
        self.try_map(addr, LONG).unwrap()
    }

    fn try_map(&self, addr: GlobalAddr, timeout: Nanos) -> Result<Arc<Region>, NotMapped> {
        self.regions.map_shared(addr, INCARNATION, |home, name| self.sharing.obtain(home, name, timeout))
    }
}

/// The other process, killed at the latest when the test ends.
struct Other(Child);

impl Other {
    fn start(test: &str, rack: &Rack) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", &format!("shared_regions::{test}"), "--nocapture"])
            .env(RACK, &rack.0)
            .stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: i32) {
        let done = Command::new("kill").arg(format!("-{signal}")).arg(self.0.id().to_string()).status();
        assert!(done.unwrap().success());
    }

    /// Returns when it has stopped, all threads of it.
    fn stop(&self) {
        self.signal(19);
        let threads = || std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        until("it to stop", || {
            threads().all(|thread| {
                let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
                stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
            })
        });
    }

    fn go_on(&self) {
        self.signal(18);
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other node, if this is the other process.
fn as_other() -> Option<Node> {
    std::env::var_os(RACK).map(|dir| Node::open(dir.as_ref(), OTHER))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}

/// Tells of a death until it is certain.
fn until_lost(home: &Node, node: NodeId) {
    let mut done = home.regions.node_died(node);
    until("the dead one's objects to be lost", || {
        done = done || home.regions.lose_objects_of(node);
        done
    });
}

fn read(region: &Region, number: usize) -> Result<Result<(u64, Vec<u8>), Torn>, Missing> {
    let mut bytes = vec![0; LEN];
    Ok(region.read(number, &mut bytes)?.map(|version| (version, bytes)))
}

/// In the other process: takes object 0, writes half of it, says so, and waits for a sign to go on.
fn write_half(node: &Node) {
    let (objects, words) = (node.map(OBJECTS), node.map(WORDS));
    let object = objects.object(0).unwrap();
    let writing = object.write().unwrap();
    writing.write(0, &[5; LEN / 2]);
    words.word(0).unwrap().store(1, SeqCst);
    until("a sign", || words.word(1).unwrap().load(SeqCst) == 1);
    writing.write(0, &[5; LEN]);
    drop(writing);
    words.word(0).unwrap().store(2, SeqCst);
    sleep_for_ever();
}

/// Starts the other process, and returns when it has written half of object 0.
fn half_written(test: &str, rack: &Rack, home: &Node) -> (Other, Arc<Region>, Arc<Region>) {
    let words = home.begin(WORDS, Shape::Words { count: 2 });
    let objects = home.begin_objects();
    for number in 0..COUNT {
        objects.object(number).unwrap().overwrite(&[1; LEN]).unwrap();
    }
    let other = Other::start(test, rack);
    until("half of an object", || words.word(0).unwrap().load(SeqCst) == 1);
    assert_eq!(read(&objects, 0), Ok(Err(Torn::Written)));
    (other, objects, words)
}

#[test]
fn operations_of_two_processes_on_one_word_add_up() {
    const TIMES: u64 = 200_000;
    if let Some(other) = as_other() {
        let words = other.map(WORDS);
        words.word(0).unwrap().store(1, SeqCst);
        for _ in 0..TIMES {
            words.word(9).unwrap().fetch_add(1, SeqCst);
        }
        words.word(0).unwrap().store(2, SeqCst);
        sleep_for_ever();
    }
    let rack = Rack::new();
    let home = rack.open(HOME);
    let words = home.begin(WORDS, Shape::Words { count: 10 });
    let _other = Other::start("operations_of_two_processes_on_one_word_add_up", &rack);
    until("the other", || words.word(0).unwrap().load(SeqCst) >= 1);
    for _ in 0..TIMES {
        words.word(9).unwrap().fetch_add(1, SeqCst);
    }
    until("the other to end", || words.word(0).unwrap().load(SeqCst) == 2);
    assert_eq!(words.word(9).unwrap().load(SeqCst), 2 * TIMES);
    assert_eq!(words.word(10).unwrap_err(), Missing::Beyond);
}

#[test]
fn every_process_sees_the_end_of_a_region_and_its_place_can_be_used_anew() {
    let rack = Rack::new();
    let (home, other) = (rack.open(HOME), rack.open(OTHER));
    let former = home.begin_objects();
    let theirs = other.map(OBJECTS);
    assert!(Arc::ptr_eq(&theirs, &other.map(OBJECTS)), "a process has it once");
    let held = theirs.object(0).unwrap();
    let writing = held.write().unwrap();
    // Nobody waits for the writer: the memory is nobody else's.
    assert!(home.regions.end(OBJECTS));
    assert_eq!(read(&theirs, 1), Err(Missing::Ended));
    assert_eq!(theirs.object(0).err(), Some(Missing::Ended));
    assert_eq!(held.write().err(), Some(Missing::Ended));
    assert_eq!(other.try_map(OBJECTS, SHORT).unwrap_err(), NotMapped::NotObtained(NotObtained::NotPublished));
    let next = home.begin(OBJECTS, Shape::Words { count: 3 });
    drop(writing);
    assert_eq!(next.word(0).unwrap().load(SeqCst), 0);
    assert_eq!(other.map(OBJECTS).shape(), Shape::Words { count: 3 });
    assert!(!former.is_alive() && !theirs.is_alive());
}

#[test]
fn an_object_whose_writer_was_killed_is_lost_until_it_is_written_as_a_whole() {
    const NAME: &str = "an_object_whose_writer_was_killed_is_lost_until_it_is_written_as_a_whole";
    if let Some(other) = as_other() {
        write_half(&other);
    }
    let rack = Rack::new();
    let (home, third) = (rack.open(HOME), rack.open(THIRD));
    let (mut killed, objects, _words) = half_written(NAME, &rack, &home);
    let thirds = third.map(OBJECTS);
    killed.kill();
    assert_eq!(read(&thirds, 0), Ok(Err(Torn::Written)), "nobody has been told");
    until_lost(&home, OTHER);
    for region in [&objects, &thirds] {
        assert_eq!(read(region, 0), Err(Missing::Lost));
        assert_eq!(region.object(0).unwrap().write().err(), Some(Missing::Lost), "half a write would not do");
        assert_eq!(read(region, 1).unwrap().unwrap(), (2, vec![1; LEN]), "the one beside it");
    }
    assert_eq!(thirds.object(0).unwrap().overwrite(&[6; LEN]), Ok(4));
    assert_eq!(read(&objects, 0), Ok(Ok((4, vec![6; LEN]))));
    assert_eq!(objects.object(0).unwrap().write().unwrap().version(), 6);
}

#[test]
fn what_a_former_incarnation_left_half_written_is_lost_when_the_next_one_begins() {
    const NAME: &str = "what_a_former_incarnation_left_half_written_is_lost_when_the_next_one_begins";
    if let Some(other) = as_other() {
        write_half(&other);
    }
    let rack = Rack::new();
    let home = rack.open(HOME);
    let (mut killed, objects, _words) = half_written(NAME, &rack, &home);
    killed.kill();
    // The home has heard of nothing.
    let next_incarnation = rack.open(OTHER).map(OBJECTS);
    assert_eq!(read(&next_incarnation, 0), Err(Missing::Lost));
    let beside = next_incarnation.object(1).unwrap();
    let writing = beside.write().unwrap();
    assert!(!home.regions.lose_objects_of(OTHER), "the next incarnation may write");
    drop(writing);
    assert_eq!(objects.object(0).unwrap().overwrite(&[7; LEN]), Ok(4));
    assert_eq!(read(&next_incarnation, 0), Ok(Ok((4, vec![7; LEN]))));
}

#[test]
fn a_stopped_writer_keeps_its_object_and_nobody_waits_for_it() {
    const NAME: &str = "a_stopped_writer_keeps_its_object_and_nobody_waits_for_it";
    if let Some(other) = as_other() {
        write_half(&other);
    }
    let rack = Rack::new();
    let home = rack.open(HOME);
    let (mut stopped, objects, words) = half_written(NAME, &rack, &home);
    stopped.stop();
    assert!(!home.regions.node_died(OTHER), "it is believed to be dead, and is not");
    assert_eq!(read(&objects, 0), Err(Missing::Lost));
    let object = objects.object(0).unwrap();
    assert_eq!(object.write().err(), Some(Missing::Lost));
    assert_eq!(object.overwrite(&[6; LEN]), Err(Missing::Lost), "it may still store in it");
    words.word(1).unwrap().store(1, SeqCst);
    stopped.go_on();
    until("its end", || words.word(0).unwrap().load(SeqCst) == 2);
    assert_eq!(read(&objects, 0), Ok(Ok((4, vec![5; LEN]))), "what it ended is whole");
    stopped.kill();
    until("its memory to be free", || home.regions.lose_objects_of(OTHER));
    assert_eq!(read(&objects, 0), Ok(Ok((4, vec![5; LEN]))));
}

#[test]
fn a_incarnation_that_still_has_the_memory_keeps_the_next_one_out() {
    let rack = Rack::new();
    let home = rack.open(HOME);
    home.begin_objects();
    let Node { sharing: former, .. } = rack.open(OTHER);
    let former = former.obtain(PeerId::node(HOME), OBJECTS.bits(), LONG).unwrap();
    let next = rack.open(OTHER);
    let why = next.try_map(OBJECTS, SHORT).unwrap_err();
    assert_eq!(why, NotMapped::NotObtained(NotObtained::Claimed));
    drop(former);
    next.map(OBJECTS);
}

/// An application that has mapped the region.
fn seated(rack: &Rack) -> Arc<Region> {
    let memory = transport::shm::borrow(&rack.0, PeerId::node(HOME), OBJECTS.bits(), LONG).unwrap();
    Arc::new(Region::map(memory, OBJECTS, INCARNATION).unwrap())
}

#[test]
fn what_an_application_leaves_half_written_is_lost_when_the_home_looks_or_when_another_has_its_seat() {
    let rack = Rack::new();
    let home = rack.open(HOME);
    let objects = home.begin_objects();
    let half_write = |region: &Region, number: usize| {
        let writing = region.object(number).unwrap().write().unwrap();
        writing.write(0, &[5; LEN / 2]);
        // As if its process had been killed, and its mapping goes with this region.
        std::mem::forget(writing);
    };
    let stays = seated(&rack);
    half_write(&stays, 0);
    for next_comes in [false, true] {
        let goes = seated(&rack);
        half_write(&goes, 1);
        drop(goes);
        until("its seat to be free", || {
            if next_comes {
                drop(seated(&rack))
            } else {
                home.regions.look_at_applications()
            }
            read(&objects, 1) == Err(Missing::Lost)
        });
        assert_eq!(read(&objects, 0), Ok(Err(Torn::Written)), "that one is still there");
        objects.object(1).unwrap().overwrite(&[6; LEN]).unwrap();
    }
}

#[test]
fn an_application_that_is_stopped_in_an_object_is_waited_for_until_the_home_has_looked_often_enough() {
    let rack = Rack::new();
    let home = rack.open(HOME);
    let objects = home.begin_objects();
    let stopped = seated(&rack);
    let object = stopped.object(3).unwrap();
    let writing = object.write().unwrap();
    (0..20).for_each(|_| home.regions.look_at_applications());
    for _ in 0..8 {
        assert_eq!(read(&objects, 3), Ok(Err(Torn::Written)), "nobody has waited so long");
        home.regions.look_at_applications();
    }
    assert_eq!(read(&objects, 3), Err(Missing::Lost));
    assert_eq!(objects.object(3).unwrap().write().err(), Some(Missing::Lost));
    assert_eq!(objects.object(3).unwrap().overwrite(&[1; LEN]).err(), Some(Missing::Lost), "it may go on");
    writing.write(0, &[4; LEN]);
    drop(writing);
    assert_eq!(read(&objects, 3), Ok(Ok((2, vec![4; LEN]))), "it counts");
    assert_eq!(objects.object(3).unwrap().overwrite(&[1; LEN]), Ok(4));
}

#[test]
fn a_former_incarnation_of_a_home_is_over_for_those_who_are_told_and_for_who_maps_the_next() {
    let rack = Rack::new();
    let home = rack.open(HOME);
    home.begin_objects();
    let map = |regions: &Regions, incarnation| {
        regions
            .map_shared(OBJECTS, incarnation, |home, name| transport::shm::borrow(&rack.0, home, name, LONG))
    };
    let (told, maps) = (Regions::default(), Regions::default());
    let next = Incarnation(INCARNATION.0 + 1);
    let former = map(&told, INCARNATION).unwrap();
    assert_eq!(told.mapped_homes(), [(HOME, INCARNATION)]);
    told.home_died(HOME, next);
    told.home_died(OTHER, INCARNATION);
    assert!(former.is_alive(), "another incarnation, another home");
    told.home_died(HOME, INCARNATION);
    assert_eq!((former.word(0).unwrap_err(), told.mapped_homes()), (Missing::HomeDied, vec![]));
    home.regions.end(OBJECTS);
    home.begin_objects();
    let former = map(&maps, INCARNATION).unwrap();
    assert!(map(&maps, Incarnation(6)).is_err() && former.is_alive(), "an earlier one says nothing");
    assert!(map(&maps, next).is_err(), "it is not there yet");
    assert_eq!(former.word(0).unwrap_err(), Missing::HomeDied);
}

/// Stamps objects with their versions until it is killed.
fn stamp(node: &Node) -> ! {
    let (objects, words) = (node.map(OBJECTS), node.map(WORDS));
    for number in (0..COUNT).cycle() {
        let object = objects.object(number).unwrap();
        match object.write() {
            Ok(writing) => {
                let stamp = writing.version().to_le_bytes();
                for at in (0..LEN / 8).rev() {
                    writing.write(at * 8, &stamp);
                }
            }
            Err(why) => {
                assert_eq!(why, Missing::Lost);
                object.overwrite(&[0xee; LEN]).unwrap();
            }
        }
        words.word(0).unwrap().fetch_add(1, SeqCst);
    }
    unreachable!("it goes round for ever");
}

#[test]
fn whenever_a_writer_is_killed_each_object_is_whole_or_lost() {
    const NAME: &str = "whenever_a_writer_is_killed_each_object_is_whole_or_lost";
    if let Some(other) = as_other() {
        stamp(&other);
    }
    let rack = Rack::new();
    let home = rack.open(HOME);
    let words = home.begin(WORDS, Shape::Words { count: 1 });
    let objects = home.begin_objects();
    let check = |number| match read(&objects, number) {
        Ok(Ok((version, bytes))) => {
            let stamps: Vec<u64> =
                bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let overwritten = u64::from_le_bytes([0xee; 8]);
            assert!(
                stamps.iter().all(|stamp| *stamp == version)
                    || stamps.iter().all(|stamp| *stamp == overwritten),
                "version {version} of {stamps:?}"
            );
            Ok(true)
        }
        Ok(Err(torn)) => Err(torn),
        Err(why) => {
            assert_eq!(why, Missing::Lost);
            Ok(false)
        }
    };
    let (mut lost, mut incarnations) = (0, 0);
    // Deaths in the middle of an object are common, as that is where it is most of the time.
    while incarnations < 20 || lost < 5 {
        incarnations += 1;
        assert!(incarnations < 500, "no writer died inside an object");
        let before = words.word(0).unwrap().load(SeqCst);
        let mut other = Other::start(NAME, &rack);
        until("writes", || {
            for number in 0..COUNT {
                let _ = check(number);
            }
            words.word(0).unwrap().load(SeqCst) > before + 100 + incarnations * 7
        });
        other.kill();
        until_lost(&home, OTHER);
        let whole = (0..COUNT).filter(|number| check(*number).expect("nobody writes")).count();
        assert!(whole >= COUNT - 1, "it writes one at a time");
        lost += COUNT - whole;
    }
    println!("{lost} of {incarnations} deaths were inside an object");
}

#[test]
fn when_the_home_dies_everybody_hears_of_it_and_nothing_faults() {
    const NAME: &str = "when_the_home_dies_everybody_hears_of_it_and_nothing_faults";
    const THEIRS: GlobalAddr = GlobalAddr::new(OTHER, 0x4000);
    if let Some(other) = as_other() {
        let region = other.begin(THEIRS, Shape::Words { count: 4_000_000 });
        region.word(0).unwrap().store(1, SeqCst);
        sleep_for_ever();
    }
    let rack = Rack::new();
    let (us, third) = (rack.open(HOME), rack.open(THIRD));
    let mut other = Other::start(NAME, &rack);
    until("the region", || us.try_map(THEIRS, LONG).is_ok());
    let (ours, thirds) = (us.map(THEIRS), third.map(THEIRS));
    until("the word", || ours.word(0).unwrap().load(SeqCst) == 1);
    other.kill();
    ours.word(3_999_999).unwrap().fetch_add(5, SeqCst);
    assert_eq!(thirds.word(3_999_999).unwrap().load(SeqCst), 5);
    assert!(us.regions.node_died(OTHER));
    // One of them has said so: both know.
    for region in [ours, thirds] {
        assert_eq!(region.word(0).unwrap_err(), Missing::HomeDied);
    }
    let why = us.try_map(THEIRS, SHORT).unwrap_err();
    assert_eq!(why, NotMapped::NotObtained(NotObtained::Unreachable));
}

#[test]
fn a_region_of_another_incarnation_of_its_home_is_not_taken_for_the_one_asked_for() {
    let rack = Rack::new();
    let (home, other) = (rack.open(HOME), rack.open(OTHER));
    home.begin_objects();
    let next = Incarnation(INCARNATION.0 + 1);
    let got = other.regions.map_shared(OBJECTS, next, |home, name| other.sharing.obtain(home, name, SHORT));
    assert_eq!(got.unwrap_err(), NotMapped::NoSuchRegion);
    other.map(OBJECTS);
}

#[test]
fn a_header_that_no_home_would_write_is_refused() {
    let rack = Rack::new();
    let (home, other) = (rack.open(HOME), rack.open(OTHER));
    let region = home.begin_objects();
    let genuine = other.sharing.obtain(PeerId::node(HOME), OBJECTS.bits(), LONG).unwrap();
    let header: Vec<u64> = genuine.words()[..8].iter().map(|word| word.load(SeqCst)).collect();
    drop((genuine, region));
    let with = |words: usize, at: usize, value: u64| {
        let forged = Arc::new(SharedMemory::create(words).unwrap());
        for (word, value) in forged.words().iter().zip(&header) {
            word.store(*value, SeqCst);
        }
        forged.words()[at].store(value, SeqCst);
        home.sharing.publish(OBJECTS.bits(), forged);
        other.try_map(OBJECTS, LONG)
    };
    let words = COUNT * 128 + 8;
    assert_eq!(with(words, 4, 1).map(|region| region.shape()), Ok(Shape::objects(COUNT, LEN)));
    let objects = 5 << 56;
    for (at, value) in [
        (0, 0),
        (1, OBJECTS.bits() + 8),
        (2, 0),
        (2, objects),
        (2, LEN as u64),
        (2, 1 << 56 | LEN as u64),
        (2, 4 << 56 | LEN as u64),
        (2, objects | ((1 << 56) - 1)),
        (2, objects | 1 << 40),
        (3, 0),
        (3, 1 << 20),
        (3, u64::MAX),
        (3, 1 << 61),
    ] {
        assert_eq!(with(words, at, value).err(), Some(NotMapped::NoSuchRegion), "word {at} is {value:#x}");
    }
    assert_eq!(with(words, 4, 0).err(), Some(NotMapped::Ended));
    assert_eq!(with(1, 4, 1).err(), Some(NotMapped::NoSuchRegion), "the memory ends before the region");
}

#[test]
fn objects_full_of_nonsense_are_read_or_refused_and_written_over() {
    let rack = Rack::new();
    let (home, other) = (rack.open(HOME), rack.open(OTHER));
    home.begin_objects();
    let region = other.map(OBJECTS);
    // Whoever maps a region can store what it likes, versions too.
    for nonsense in [u64::MAX, u64::MAX - 1, 1 << 63, 127 << 57 | 9, 70 << 57 | 9, 0] {
        region.word(0).unwrap().store(nonsense, SeqCst);
        let _ = read(&region, 0);
        assert!(home.regions.lose_objects_of(THIRD));
        if nonsense.is_multiple_of(2) || nonsense >> 57 == 127 {
            let version = region.object(0).unwrap().overwrite(&[9; LEN]).unwrap();
            assert_eq!(read(&region, 0), Ok(Ok((version, vec![9; LEN]))));
        }
    }
}
