//! Files that are not as they were written: none is taken for a snapshot, and nothing in the rack is changed.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use apps::kv::{KvConfig, KvStore};
use apps::kv_locked::{LockedStore, LockedStoreConfig};
use apps::named;
use apps::snapshot::{self, Error, Existing, Snapshot};
use rackmem::{
    ByteObjects, Config, Locked, LockedRegions, NodeHandle, NodeId, Rack, Region, Value, Words, block_on,
};
use random::Dice;

use crate::snapshots::{WAIT, rack, restored, saved};
use crate::support::{self, Replay};

/// A small one of each way in which content is kept.
fn files(here: &mut NodeHandle) -> Vec<Vec<u8>> {
    here.named::<Locked<[u64; 2]>>("lock").create([1, 2]).unwrap();
    let config = KvConfig { expected_keys: 9, ..KvConfig::default() };
    let store: KvStore = named::open_or(here, "store", &config).unwrap();
    for key in [b"a", b"b"] {
        block_on(store.put(here, key, b"value")).unwrap();
    }
    ["lock", "store"].map(|name| saved(here, name).0).into()
}

fn refused(file: &[u8]) -> Error {
    match Snapshot::open(Cursor::new(file)) {
        Ok(snapshot) => panic!("taken for a snapshot: {:?}", snapshot.about()),
        Err(why) => {
            assert!(why.is_of_file(), "{why}");
            why
        }
    }
}

#[test]
fn a_file_that_is_cut_short_anywhere_is_refused() {
    for file in files(&mut rack().node(NodeId(0))) {
        assert!(matches!(refused(&[]), Error::NotASnapshot));
        for len in 1..file.len() {
            let why = refused(&file[..len]);
            assert!(matches!(why, Error::CutShort { len: said } if said == len as u64), "{len}: {why}");
        }
        Snapshot::open(Cursor::new(&file)).unwrap();
    }
}

#[test]
fn a_file_in_which_any_bit_is_another_is_refused() {
    for mut file in files(&mut rack().node(NodeId(0))) {
        for at in 0..file.len() {
            for bit in 0..8 {
                file[at] ^= 1 << bit;
                refused(&file);
                file[at] ^= 1 << bit;
            }
        }
        Snapshot::open(Cursor::new(&file)).unwrap();
    }
}

#[test]
fn a_file_that_goes_on_behind_its_end_is_refused() {
    for file in files(&mut rack().node(NodeId(0))) {
        let why = refused(&[&file[..], &[0]].concat());
        assert!(matches!(why, Error::Damaged { at } if at == file.len() as u64), "{why}");
        refused(&[&file[..], &file].concat());
    }
}

#[test]
fn a_file_from_the_future_says_which_version_it_is_of() {
    let mut file = files(&mut rack().node(NodeId(0))).remove(0);
    file[8..12].copy_from_slice(&2u32.to_le_bytes());
    let why = refused(&file);
    assert!(matches!(why, Error::Version { version: 2 }), "{why}");
    assert!(why.to_string().contains("version 2, and this program knows version 1"), "{why}");
}

#[test]
fn other_files_are_no_snapshots() {
    for file in [&b"[rack]\nname = \"lab\"\n"[..], b"rackmsnq", &[0; 4096], b"x"] {
        assert!(matches!(refused(file), Error::NotASnapshot));
    }
}

/// Pieces of two snapshots of one region, both of which are whole.
#[test]
fn a_file_that_was_put_together_of_two_is_refused() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let region = here.named::<Region>("region").create(1 << 20).unwrap();
    let (first, _) = saved(&mut here, "region");
    here.write(region.addr(), &[1]).unwrap();
    let (second, _) = saved(&mut here, "region");
    assert_eq!(first.len(), second.len());
    let differ = (0..first.len()).filter(|at| first[*at] != second[*at]);
    // One byte, and the checksum behind each of its records and of all later ones.
    assert!(differ.clone().count() > 8 * 4, "every later checksum is another one");
    let end_of_first_piece = differ.clone().nth(9).unwrap();
    refused(&[&first[..end_of_first_piece], &second[end_of_first_piece..]].concat());
    refused(&[&second[..end_of_first_piece], &first[end_of_first_piece..]].concat());
    // A piece twice, and a piece left out.
    let record = (256 << 10) + 16;
    let begin = first.len() - 33 - 4 * record;
    refused(&[&first[..begin + record], &first[begin..]].concat());
    refused(&[&first[..begin], &first[begin + record..]].concat());
}

/// Whoever writes checksums can write anything.
#[test]
fn what_makes_no_sense_is_refused_also_with_the_right_checksums() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let file = files(&mut here).remove(0);
    let signed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = file.clone();
        change(&mut file);
        signed(&file)
    };
    assert_eq!(signed(&|_| {}), file, "as it was written");
    // Behind the head of the record: the kind, the version, bytes, count.
    const ABOUT: usize = 12 + 8;
    for (at, byte) in
        [(ABOUT, 0), (ABOUT, 4), (ABOUT, 9), (ABOUT + 5, 15), (ABOUT + 13, 2), (ABOUT + 12, 255)]
    {
        let why = refused(&signed(&|file| file[at] = byte));
        assert!(matches!(why, Error::Malformed { .. }), "{at} {byte}: {why}");
    }
    let end = file.len() - 25;
    for at in [end, end + 8, end + 16] {
        let why = refused(&signed(&|file| file[at] = 77));
        assert!(matches!(why, Error::Malformed { .. }), "{why}");
    }
    assert_eq!(here.names("").unwrap().len(), 2);
}

/// What a file says is what somebody has written into it: whatever that is, it is refused, or it is what is made.
#[test]
fn whatever_stands_in_a_file_with_the_right_checksums_is_refused_or_made() {
    for seed in support::seeds(300) {
        let _replay = Replay {
            file: "snapshot_files",
            test: "whatever_stands_in_a_file_with_the_right_checksums_is_refused_or_made",
            seed,
        };
        let mut random = Dice::new(seed);
        let config = Config { nodes: 1, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
        let rack = Rack::embedded(config).unwrap();
        let mut here = rack.node(NodeId(0));
        let mut file = whatever(&mut here, random.pick(8));
        for _ in 0..1 + random.pick(3) {
            // Not in the heads of records, so that these can be found.
            let at = loop {
                let at = 12 + random.pick(file.len() - 12);
                if payloads(&file).iter().any(|payload| payload.contains(&at)) {
                    break at;
                }
            };
            file[at] = [0, 1, 2, 8, 255, random.pick(256) as u8][random.pick(6)];
        }
        let Ok(mut snapshot) = Snapshot::open(Cursor::new(signed(&file))) else { continue };
        // Refused for want of memory, or because of what has the name.
        let _ = snapshot.restore(&mut here, "new", Existing::Keep, WAIT);
        let _ = snapshot.restore(&mut here, "it", Existing::Replace, WAIT);
    }
}

/// One of each kind.
fn whatever(here: &mut NodeHandle, kind: usize) -> Vec<u8> {
    match kind {
        0 => drop(here.named::<Locked<u64>>("it").create(7).unwrap()),
        1 => {
            let it = here.named::<LockedRegions>("it").create(256).unwrap();
            it.write(here).unwrap().replace(&[[1; 9], [2; 9]]).unwrap();
        }
        2 => drop(here.named::<Value<u64>>("it").create(7).unwrap()),
        3 => drop(here.named::<Region>("it").create(100).unwrap()),
        4 => drop(here.named::<Words<u32>>("it").create(3).unwrap()),
        5 => drop(here.named::<ByteObjects>("it").create((3, 7)).unwrap()),
        6 => {
            let config = KvConfig { expected_keys: 9, ..KvConfig::default() };
            let it: KvStore = named::open_or(here, "it", &config).unwrap();
            block_on(it.put(here, b"key", b"value")).unwrap();
        }
        _ => {
            let config = LockedStoreConfig { expected_keys: 9, ..LockedStoreConfig::default() };
            let it: LockedStore = named::open_or(here, "it", &config).unwrap();
            it.put(here, b"key", b"value").unwrap();
        }
    }
    saved(here, "it").0
}

/// Where the payloads of the records of a file are.
fn payloads(file: &[u8]) -> Vec<Range<usize>> {
    let (mut at, mut all) = (12, Vec::new());
    while at < file.len() {
        let len = u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
        all.push(at + 8..at + 8 + len);
        at += 16 + len;
    }
    all
}

/// The file with the checksums that it should have.
fn signed(file: &[u8]) -> Vec<u8> {
    let mut digest = crc64fast::Digest::new();
    let (head, mut rest) = file.split_at(12);
    digest.write(head);
    let mut signed = head.to_vec();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let (record, behind) = rest.split_at(8 + len);
        digest.write(record);
        signed.extend(record);
        signed.extend(digest.sum64().to_le_bytes());
        rest = &behind[8..];
    }
    signed
}

/// A file that fails when it is read for the second time, or is another one then.
struct Fickle {
    first: Cursor<Vec<u8>>,
    then: Option<Vec<u8>>,
}

impl Read for Fickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.first.read(into)
    }
}

impl Seek for Fickle {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if to == SeekFrom::Start(0)
            && let Some(then) = self.then.take()
        {
            self.first = Cursor::new(then);
        }
        self.first.seek(to)
    }
}

#[test]
fn a_file_that_is_another_one_when_it_is_read_again_is_said_to_have_come_in_part() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let region = here.named::<Region>("region").create(1 << 20).unwrap();
    here.write(region.addr(), &[1; 1 << 20]).unwrap();
    let (file, _) = saved(&mut here, "region");
    here.write(region.addr(), &[2; 1 << 20]).unwrap();
    let cut = || {
        let (first, then) = (Cursor::new(file.clone()), Some(file[..600 << 10].to_vec()));
        Snapshot::open(Fickle { first, then }).unwrap()
    };
    // What was made for it goes again.
    let why = cut().restore(&mut here, "new", Existing::Keep, WAIT).unwrap_err();
    assert!(matches!(why, Error::CutShort { .. }), "{why}");
    assert_eq!(here.names("new").unwrap(), []);
    let why = cut().restore(&mut here, "region", Existing::Replace, WAIT).unwrap_err();
    assert!(matches!(why, Error::Partly { made: false, .. }), "{why}");
    assert!(why.to_string().contains("\"region\" has a part of the snapshot now"), "{why}");
    let mut bytes = vec![0; 1 << 20];
    here.read(region.addr(), &mut bytes).unwrap();
    assert!(bytes.contains(&1) && bytes.contains(&2));
    restored(&mut here, "region", &file, Existing::Replace).unwrap();
    here.read(region.addr(), &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 1));
}

/// A disk that has room for so many bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.min(bytes.len()) {
            0 => Err(io::ErrorKind::StorageFull.into()),
            some => {
                self.0 -= some;
                Ok(some)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_is_full_at_any_byte_is_an_error() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    here.named::<Value<u64>>("value").create(1).unwrap();
    let (file, _) = saved(&mut here, "value");
    for room in 0..file.len() {
        let why = snapshot::save(&mut here, "value", WAIT, Disk(room)).unwrap_err();
        assert!(matches!(why, Error::Write(_)), "{room}: {why}");
    }
    snapshot::save(&mut here, "value", WAIT, Disk(file.len())).unwrap();
}
