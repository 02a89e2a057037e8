//! No layout but the plain one ever returns an object of two versions, while threads of two nodes write it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use apps::objects::{Layout, Sabres};
use lab::objects::stamp::{stamp, stamp_of};
use lab::objects::{Checksum, Lines, LockAndRead, Plain};
use rackmem::NodeId;

use crate::objects::Racks;

const OBJECTS: usize = 3;
/// Whole reads that are judged, for each length.
const ENOUGH: u32 = 300;
const LATE: Duration = Duration::from_secs(60);

/// What a reader found: whole objects, and how many of them are of two versions.
struct Found {
    whole: u32,
    mixed: u32,
}

/// A thread at the home and one on another node write objects of the home; a third node reads, until it has seen enough.
fn read_while_others_write<L: Layout>(
    racks: &Racks,
    len: usize,
    enough: impl Fn(&Found) -> bool,
    writers: &[u16],
) -> Found {
    let home = NodeId(1);
    let objects = L::create(&mut racks.node(1), OBJECTS, len, home).unwrap();
    let (addr, over) = (objects.addr(), AtomicBool::new(false));
    let found = thread::scope(|scope| {
        for writer in writers {
            let (mut node, over) = (racks.node(*writer), &over);
            scope.spawn(move || {
                let objects = L::open(&mut node, addr, len).unwrap();
                let (mut bytes, mut raw) = (vec![0; len], Vec::new());
                // No two writes have the same one, in any of their bytes.
                for turn in 1_u64.. {
                    let number = turn * 2 + u64::from(*writer) / 2;
                    stamp(&mut bytes, number.wrapping_mul(0x0101_0101_0101_0101));
                    objects.write(&mut node, turn as usize % OBJECTS, &bytes, &mut raw).unwrap();
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    thread::yield_now();
                }
            });
        }
        let mut node = racks.node(0);
        let objects = L::open(&mut node, addr, len).unwrap();
        let (mut bytes, mut raw) = (vec![0; len], Vec::new());
        let mut found = Found { whole: 0, mixed: 0 };
        let late = Instant::now() + LATE;
        for turn in 0.. {
            if enough(&found) || Instant::now() > late {
                break;
            }
            match objects.try_read(&mut node, turn % OBJECTS, &mut bytes, &mut raw).unwrap() {
                Some(_) => found.whole += 1,
                None => {
                    thread::yield_now();
                    continue;
                }
            }
            found.mixed += u32::from(stamp_of(&bytes).is_err());
        }
        over.store(true, Ordering::Relaxed);
        found
    });
    objects.free(&mut racks.node(1)).unwrap();
    found
}

fn never_torn<L: Layout>(racks: &Racks) {
    for len in [8, 128, 1000, 8192] {
        let found = read_while_others_write::<L>(racks, len, |found| found.whole >= ENOUGH, &[1, 2]);
        assert_eq!(found.mixed, 0, "{} of {len} bytes: {} whole ones", L::NAME, found.whole);
        assert!(found.whole > 0, "{} of {len} bytes are never whole", L::NAME);
    }
}

/// The checker finds what is torn, so what it does not find is not.
fn plain_is_torn(racks: &Racks) {
    let found = read_while_others_write::<Plain>(racks, 8192, |found| found.mixed > 0, &[1]);
    assert!(found.mixed > 0, "{} plain reads, and none is torn", found.whole);
}

macro_rules! on {
    ($($rack:ident)*) => {$(
        mod $rack {
            use super::*;

            #[test]
            fn objects_of_the_rack_are_read_whole() {
                never_torn::<Sabres>(&Racks::$rack());
            }

            #[test]
            fn objects_with_a_version_in_every_line_are_read_whole() {
                never_torn::<Lines>(&Racks::$rack());
            }

            #[test]
            fn objects_with_a_checksum_are_read_whole() {
                never_torn::<Checksum>(&Racks::$rack());
            }

            #[test]
            fn objects_behind_locks_are_read_whole() {
                never_torn::<LockAndRead>(&Racks::$rack());
            }

            #[test]
            fn a_plain_read_of_an_object_is_torn_sooner_or_later() {
                plain_is_torn(&Racks::$rack());
            }
        }
    )*};
}

on!(inline shared_memory udp bad_network);
