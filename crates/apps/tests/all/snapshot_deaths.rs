//! Nodes that die under a snapshot, and what was lost with them and is brought back.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use apps::kv::{KvConfig, KvStore};
use apps::named;
use apps::snapshot::{self, Error, Existing, Snapshot};
use rackmem::{Config, Locked, NameError, NodeHandle, NodeId, Region, Value, block_on};

use crate::rig::{Processes, until};
use crate::snapshots::{WAIT, restored, saved};

const DIES: usize = 1;

fn processes(copies: usize) -> Processes {
    let config = Config { nodes: 3, copies, memory: 16 << 20, cache: 1 << 20, ..Config::default() };
    Processes::start_with(false, config)
}

/// A name that this node keeps.
fn name_at(handle: &NodeHandle, node: usize, what: &str) -> String {
    let mut names = (0..).map(|number| format!("{what}/{number}"));
    names.find(|name| handle.home_of_name(name) == NodeId(node as u16)).unwrap()
}

/// A file; whoever has written or read so many bytes of it loses a node.
struct Deadly<'a> {
    file: Cursor<Vec<u8>>,
    rack: &'a mut Processes,
    after: u64,
}

impl Deadly<'_> {
    fn passed(&mut self, bytes: usize) -> usize {
        if self.file.position() > self.after {
            self.rack.cut_off(DIES);
        }
        bytes
    }
}

impl Write for Deadly<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        Ok(self.passed(written))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Deadly<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        Ok(self.passed(read))
    }
}

impl Seek for Deadly<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn a_death_while_a_region_is_saved_is_an_error_and_what_was_written_is_no_snapshot() {
    let mut rack = processes(1);
    let mut here = rack.nodes[0].here();
    let name = name_at(&here, DIES, "region");
    here.named::<Region>(&name).create(2 << 20).unwrap();
    let mut deadly = Deadly { file: Cursor::default(), rack: &mut rack, after: 300 << 10 };
    let why = snapshot::save(&mut here, &name, WAIT, &mut deadly).unwrap_err();
    assert!(matches!(why, Error::Memory { why: rackmem::Error::NodeDown { .. }, .. }), "{why}");
    let file = deadly.file.into_inner();
    assert!(matches!(Snapshot::open(Cursor::new(file)).err(), Some(Error::CutShort { .. })));
    let why = snapshot::save(&mut here, &name, WAIT, Vec::new()).unwrap_err();
    assert!(matches!(why, Error::Name(NameError::Lost { .. })), "{why}");
}

#[test]
fn a_death_while_a_store_is_saved_is_an_error() {
    let mut rack = processes(1);
    let mut here = rack.nodes[0].here();
    let name = name_at(&here, 0, "store");
    let store: KvStore = named::open_or(&mut here, &name, &KvConfig::default()).unwrap();
    for key in 0..400u32 {
        block_on(store.put(&mut here, &key.to_le_bytes(), &[1; 5000])).unwrap();
    }
    let mut deadly = Deadly { file: Cursor::default(), rack: &mut rack, after: 300 << 10 };
    let why = snapshot::save(&mut here, &name, WAIT, &mut deadly).unwrap_err();
    let Error::Store { why: apps::kv::Error::Memory(why), .. } = why else { panic!("{why}") };
    assert!(matches!(why, rackmem::Error::NodeDown { .. } | rackmem::Error::Lost { .. }), "{why}");
}

#[test]
fn a_death_while_a_region_is_brought_back_says_what_is_left_and_the_next_one_makes_it_whole() {
    let mut rack = processes(1);
    let mut here = rack.nodes[0].here();
    let name = name_at(&here, DIES, "region");
    let region = here.named::<Region>(&name).create(2 << 20).unwrap();
    here.write(region.addr(), &[7; 2 << 20]).unwrap();
    let (file, _) = saved(&mut here, &name);
    let whole = file.clone();
    let after = file.len() as u64 * 3 / 2;
    let mut snapshot =
        Snapshot::open(Twice { read: 0, after, file: Cursor::new(file), rack: &mut rack }).unwrap();
    let why = snapshot.restore(&mut here, &name, Existing::Replace, WAIT).unwrap_err();
    assert!(matches!(why, Error::Partly { made: false, .. }), "{why}");
    drop(snapshot);
    rack.rejoin(DIES);
    until(|| matches!(here.name_info(&name), Err(NameError::Lost { .. })).then_some(()));
    let done = until(|| restored(&mut here, &name, &whole, Existing::Keep).ok());
    assert!(done.made, "what was lost is not there any more");
    let region = here.named::<Region>(&name).open().unwrap();
    let mut bytes = vec![0; 2 << 20];
    here.read(region.addr(), &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7));
}

/// A file; whoever has read so many bytes of it in all loses a node.
struct Twice<'a> {
    file: Cursor<Vec<u8>>,
    rack: &'a mut Processes,
    read: u64,
    after: u64,
}

impl Read for Twice<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read += read as u64;
        if self.read > self.after {
            self.rack.cut_off(DIES);
        }
        Ok(read)
    }
}

impl Seek for Twice<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn a_store_that_has_lost_a_part_is_made_anew_from_its_snapshot() {
    let mut rack = processes(1);
    let mut here = rack.nodes[0].here();
    let name = name_at(&here, 0, "store");
    let config = KvConfig { expected_keys: 100, ..KvConfig::default() };
    let store: KvStore = named::open_or(&mut here, &name, &config).unwrap();
    let put = |store: &KvStore, here: &mut NodeHandle| {
        (0..100u32)
            .try_for_each(|key| block_on(store.put(here, &key.to_le_bytes(), &[key as u8; 50])).map(drop))
    };
    put(&store, &mut here).unwrap();
    let (file, _) = saved(&mut here, &name);
    rack.cut_off(DIES);
    until(|| put(&store, &mut here).is_err().then_some(()));
    // Without that node there is no memory for it, and nothing has changed.
    let why = restored(&mut here, &name, &file, Existing::Replace).unwrap_err();
    assert!(matches!(why, Error::Store { .. }), "{why}");
    rack.rejoin(DIES);
    let done = until(|| restored(&mut here, &name, &file, Existing::Replace).ok());
    assert!(done.made);
    let (store, mut value) = (named::open::<KvStore>(&mut here, &name).unwrap(), Vec::new());
    for key in 0..100u32 {
        assert_eq!(block_on(store.get(&mut here, &key.to_le_bytes(), &mut value)), Ok(true));
        assert_eq!(value, [key as u8; 50]);
    }
}

#[test]
fn what_is_brought_back_with_copies_outlives_the_node_that_keeps_it() {
    let mut rack = processes(2);
    let mut here = rack.nodes[0].here();
    let names = ["value", "lock", "region", "store"].map(|what| name_at(&here, DIES, what));
    let [value, lock, region, store] = &names;
    here.named::<Value<u64>>(value).create(1).unwrap();
    here.named::<Locked<u64>>(lock).create(2).unwrap();
    let made = here.named::<Region>(region).create(10_000).unwrap();
    here.write(made.addr(), &[3; 10_000]).unwrap();
    let made: KvStore =
        named::open_or(&mut here, store, &KvConfig { expected_keys: 9, ..KvConfig::default() }).unwrap();
    block_on(made.put(&mut here, b"key", b"4")).unwrap();
    let files = names.each_ref().map(|name| saved(&mut here, name).0);
    for name in &names {
        here.remove_name(name).unwrap();
    }
    here.keep_copies(true).unwrap();
    for (name, file) in names.iter().zip(&files) {
        let done = restored(&mut here, name, file, Existing::Keep).unwrap();
        assert!(done.made && done.copies, "{done:?}");
    }
    rack.cut_off(DIES);
    let mut there = rack.nodes[2].here();
    let found = until(|| there.named::<Value<u64>>(value).open().and_then(|it| Ok(it.get(&mut there)?)).ok());
    assert_eq!(found, 1);
    let it = there.named::<Locked<u64>>(lock).open().unwrap();
    assert_eq!(it.read(&mut there).map(|it| *it), Ok(2));
    let it = there.named::<Region>(region).open().unwrap();
    let mut bytes = vec![0; it.len()];
    there.read(it.addr(), &mut bytes).unwrap();
    assert_eq!(bytes, [3; 10_000]);
    let (it, mut bytes) = (named::open::<KvStore>(&mut there, store).unwrap(), Vec::new());
    assert_eq!(block_on(it.get(&mut there, b"key", &mut bytes)), Ok(true));
    // What has copies is saved as anything else.
    saved(&mut there, lock);
    saved(&mut there, store);
}
