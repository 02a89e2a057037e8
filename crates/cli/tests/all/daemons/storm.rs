//! A host at a port that sends whatever it likes: a rack whose switch is in the kernel goes on, and says what it dropped.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use check::AtEnd;
use rackmem::dataplane::network;
use rackmem::{Discipline, Locked, NodeHandle, NodeId, Rack, RackFile};
use random::Dice;

use super::frames::frames_of;
use super::rig::{Home, eventually, networks, text};
use crate::shell::can_have_kernel;

/// Bytes of Ethernet's head, and of that of IP.
const ETHERNET: usize = 14;
const IP: usize = 20;

/// A frame that was seen, or something like it.
fn wrong(dice: &mut Dice, seen: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = seen[dice.below(seen.len() as u64) as usize].clone();
    let length = frame.len();
    let mut at = |from: usize| from + dice.below((length - from) as u64) as usize;
    match at(0) % 9 {
        // Once more, as it was.
        0 => {}
        // Cut short: in the head of IP, or behind it.
        1 => frame.truncate(at(ETHERNET)),
        // Longer than it says.
        2 => frame.extend([0x5a; 40]),
        // A bit of what the tag is over, or of the tag.
        3 => {
            let at = at(ETHERNET + IP + 8);
            frame[at] ^= 1 << (at % 8);
        }
        // A bit of the heads, and with it a wrong checksum.
        4 => {
            let at = ETHERNET + at(0) % (IP + 8);
            frame[at] ^= 1 << (at % 8);
        }
        // With the tag of a virtual network.
        5 => drop(frame.splice(12..12, [0x81, 0, 0, 7])),
        // With an option of IP that nothing means.
        6 => {
            frame[ETHERNET] = 0x46;
            drop(frame.splice(ETHERNET + IP..ETHERNET + IP, [1, 1, 1, 0]));
        }
        // In fragments: this is the first, or a later one.
        7 => frame[ETHERNET + 6 + at(0) % 2] |= 0x20,
        // Nothing that anybody has sent.
        _ => frame[ETHERNET..].iter_mut().for_each(|byte| *byte = dice.next() as u8),
    }
    frame
}

#[test]
fn a_host_that_sends_whatever_it_likes_does_not_disturb_a_rack() {
    const WRONG: usize = 60_000;
    if !can_have_kernel() {
        return;
    }
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let home = Home::new("storm");
    let up = home.up(&["--nodes", "3", "--seats", "0", "--transport", "wire"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let racks = [0, 1, 2].map(|node| Rack::attach(&file, NodeId(node)).unwrap());
    let word = racks[0].here().alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let lock = |here: &mut NodeHandle| here.named::<Locked<u64>>("counted").open_or(|| 0).unwrap();
    let (counted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let count = |here: &mut NodeHandle, lock: &Locked<u64>| {
        here.update(word, 8, |word| word.set_word(0, word.word(0) + 1)).unwrap();
        *lock.write(here).unwrap() += 1;
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let network = &networks(up.id())[1 + 2];
    thread::scope(|scope| {
        let over_at_end = AtEnd(&over);
        for rack in &racks {
            let (over, count, lock) = (&over, &count, &lock);
            scope.spawn(move || {
                let mut here = rack.here();
                let lock = lock(&mut here);
                while !over.load(Ordering::Relaxed) {
                    count(&mut here, &lock);
                }
            });
        }
        let storm = scope.spawn(|| {
            network::enter(network).unwrap();
            let mut frames = frames_of("port").unwrap();
            let mut seen = Vec::new();
            // What node 2 sends to the switch, with its tags, and what it receives.
            while seen.len() < 256 {
                let mut frame = vec![0; 10_000];
                let bytes = frames.read(&mut frame).unwrap();
                frame.truncate(bytes);
                if bytes > ETHERNET + IP + 8 && frame[12..14] == [8, 0] {
                    seen.push(frame);
                }
            }
            let mut dice = Dice::new(seed);
            let mut sent = 0;
            while sent < WRONG {
                // What is no frame at all the kernel refuses; where it has no room, it is tried again.
                sent += usize::from(frames.write(&wrong(&mut dice, &seen)).is_ok());
                if sent.is_multiple_of(64) {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        });
        let began = Instant::now();
        storm.join().expect("it could send");
        let during = counted.load(Ordering::Relaxed);
        drop(over_at_end);
        println!("{WRONG} frames in {:?}, and meanwhile {during} times counted", began.elapsed());
        assert!(during > 100, "the rack went on: {during}");
    });
    let mut here = racks[2].here();
    assert_eq!(here.read_word(word).unwrap(), counted.load(Ordering::Relaxed), "nothing came twice");
    assert_eq!(*lock(&mut here).read(&mut here).unwrap(), counted.load(Ordering::Relaxed));
    eventually("it is said what was dropped", || {
        let status = home.status();
        let kernel = &status["switch"]["kernel"];
        let dropped = |what: &str| {
            let of = |program: &str| kernel[program][what].as_u64().unwrap_or(0);
            of("blocks") + of("locks")
        };
        assert!((0..3).all(|node| status["nodes"][node]["up"] == true), "{status}");
        dropped("wrong_tag") > 0 && dropped("replayed") > 0
    });
    drop((here, racks));
    let ended = up.interrupt();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    home.assert_nothing_left();
}
