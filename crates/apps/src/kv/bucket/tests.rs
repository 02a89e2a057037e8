use std::sync::atomic::AtomicU64;

use super::*;

const GEOMETRY: Geometry = Geometry { bytes: 64 };

/// A leaf with three slots.
fn leaf() -> Vec<AtomicU64> {
    (0..8).map(|_| AtomicU64::new(0)).collect()
}

fn window(words: &[AtomicU64]) -> Window<'_> {
    Window::new(words, 0, words.len() * 8)
}

fn entry(tag: u64, number: u64, addr: u64) -> Entry {
    Entry { id: RecordId(tag << NUMBER_BITS | number), addr: GlobalAddr::from_bits(addr) }
}

fn seen(bucket: &Window<'_>, tag: u64) -> Leaf {
    match scan(bucket, GEOMETRY, tag, &[]) {
        Scan::Leaf(leaf) => leaf,
        Scan::Inner { .. } => panic!("a leaf is expected"),
    }
}

fn link_next(bucket: &Window<'_>, tag: u64, addr: u64) -> Entry {
    let leaf = seen(bucket, tag);
    let new = entry(tag, leaf.number + 1, addr);
    assert_eq!(link(bucket, GEOMETRY, &leaf, None, new), Changed::Done);
    new
}

#[test]
fn a_link_after_an_outdated_scan_is_refused() {
    let words = leaf();
    let bucket = window(&words);
    let before = seen(&bucket, 5);
    link_next(&bucket, 5, 16);
    let late = entry(5, before.number + 1, 32);
    assert_eq!(link(&bucket, GEOMETRY, &before, None, late), Changed::Outdated);
    assert_eq!(seen(&bucket, 5).entry, Some(entry(5, 1, 16)));
}

#[test]
fn a_dead_entry_gives_its_place_to_the_next_of_its_key() {
    let words = leaf();
    let bucket = window(&words);
    for addr in [16, 32, 48] {
        link_next(&bucket, addr, addr);
    }
    let full = seen(&bucket, 32);
    let (dead, new) = (entry(32, 2, 32), entry(32, 4, 64));
    assert_eq!(link(&bucket, GEOMETRY, &full, None, new), Changed::Full);
    assert_eq!(link(&bucket, GEOMETRY, &full, Some(dead), new), Changed::Done);
    assert_eq!(seen(&bucket, 32).entry, Some(new));
}

#[test]
fn entries_with_one_id_are_told_apart_by_address() {
    let words = leaf();
    let bucket = window(&words);
    let (first, second) = (entry(5, 1, 16), entry(5, 1, 32));
    for new in [first, second] {
        assert_eq!(link(&bucket, GEOMETRY, &seen(&bucket, 6), None, new), Changed::Done);
    }
    let after_first = scan(&bucket, GEOMETRY, 5, &[first]);
    assert!(matches!(after_first, Scan::Leaf(leaf) if leaf.entry == Some(second)));
    unlink(&bucket, GEOMETRY, second);
    assert_eq!(seen(&bucket, 5).entry, Some(first));
}

#[test]
fn a_leaf_counts_the_successors_that_were_numbered_by_an_older_scan() {
    let words = leaf();
    let bucket = window(&words);
    let old = link_next(&bucket, 5, 16);
    let new = entry(5, 9, 32);
    assert_eq!(swing(&bucket, GEOMETRY, old, new), Changed::Done);
    assert_eq!((seen(&bucket, 5).number, seen(&bucket, 5).entry), (9, Some(new)));
    // And never falls.
    assert_eq!(swing(&bucket, GEOMETRY, new, entry(5, 3, 48)), Changed::Done);
    assert_eq!(seen(&bucket, 5).number, 9);
}

#[test]
fn the_leaves_of_a_split_take_every_entry_and_go_on_counting() {
    let words = leaf();
    let bucket = window(&words);
    // The lowest two bits of the tag choose the child; then the next two.
    let entries = [0b0100, 0b0001, 0b1101].map(|tag| link_next(&bucket, tag, tag << 4));
    let contents = Snapshot::of(&bucket, GEOMETRY).split(0);
    let children: Vec<AtomicU64> =
        contents.as_chunks().0.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect();
    for entry in entries {
        let tag = entry.id.tag();
        let child = usize::try_from(GEOMETRY.child(GlobalAddr::NULL, tag, 0).bits() / 8).unwrap();
        let leaf = seen(&window(&children[child..child + 8]), tag);
        assert_eq!((leaf.entry, leaf.number), (Some(entry), 3), "tag {tag:#b}");
    }
    let deeper = Snapshot::of(&window(&children[8..16]), GEOMETRY);
    assert_eq!(deeper.entries().collect::<Vec<_>>(), entries[1..]);
    assert_eq!(GEOMETRY.child(GlobalAddr::NULL, 0b1101, 1).bits(), 3 * 64);
}

#[test]
fn an_inner_bucket_refuses_every_change() {
    let words = leaf();
    let bucket = window(&words);
    let old = link_next(&bucket, 5, 16);
    let before = seen(&bucket, 5);
    assert!(Snapshot::of(&bucket, GEOMETRY).become_inner(&bucket, GlobalAddr::from_bits(256)));
    let inner = Snapshot::of(&bucket, GEOMETRY);
    let new = entry(5, 2, 32);
    assert_eq!(link(&bucket, GEOMETRY, &before, None, new), Changed::Outdated);
    assert_eq!(swing(&bucket, GEOMETRY, old, new), Changed::Outdated);
    assert_eq!(unlink(&bucket, GEOMETRY, old), Changed::Outdated);
    assert_eq!(Snapshot::of(&bucket, GEOMETRY), inner);
}

#[test]
fn a_leaf_that_changed_since_its_snapshot_is_not_split() {
    let words = leaf();
    let bucket = window(&words);
    let old = link_next(&bucket, 5, 16);
    let snapshot = Snapshot::of(&bucket, GEOMETRY);
    unlink(&bucket, GEOMETRY, old);
    assert!(!snapshot.become_inner(&bucket, GlobalAddr::from_bits(256)));
    assert_eq!(seen(&bucket, 5).entry, None);
}
