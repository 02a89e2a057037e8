//! Reads that are done where the block is, on every kind of rack.

use std::time::Duration;

use rackmem::{Discipline, NodeId, Rack};

/// A reader of what another node keeps writing gets every value, without a copy of the block.
pub(crate) fn small_reads_bring_no_copy(nodes: &[Rack]) {
    const ENOUGH: u64 = 100;
    let (mut writer, mut reader) = (nodes[0].here(), nodes[1].here());
    let addr = writer.alloc(4096, NodeId(1), Discipline::Coherent).unwrap();
    let peeked = || nodes[0].counters().protocol().peeked;
    for value in 1..=100 * ENOUGH {
        if peeked() >= ENOUGH {
            break;
        }
        // Of any length, at any place, also across words.
        let at = addr + 3 + value * 7 % 1000;
        let bytes: Vec<u8> = (0..value % 97 + 1).map(|byte| (byte * value) as u8).collect();
        writer.write(at, &bytes).unwrap();
        // While the write's UNLOCK is in flight nobody says who has the block, and a copy is fetched.
        std::thread::sleep(Duration::from_micros(100));
        let mut read = vec![0xee; bytes.len()];
        reader.read(at, &mut read).unwrap();
        assert_eq!(read, bytes);
    }
    let of = |node: usize| nodes[node].counters().protocol();
    assert!(peeked() >= ENOUGH, "{:?}\n{:?}", of(0), of(1));
    assert_eq!(reader.inspect(addr, 0, |window| window.len()), Ok(0), "nothing can be read, too");
    // A long read fetches the block, and the next one finds it.
    let mut whole = [0; 4096];
    reader.read(addr, &mut whole).unwrap();
    let provided = || nodes[0].counters().protocol().provided;
    let before = (provided(), peeked());
    reader.read(addr, &mut whole).unwrap();
    assert_eq!((provided(), peeked()), before);
}
