//! Code of others, which knows nothing of a rack, on mapped memory of two nodes: a sort, and a B-tree that lies in bytes.
//!
//! Unsafe code: plain bytes of memory that is otherwise seen as atomic words.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use rackmem::Mapping;
use random::Random;
use rayon::slice::ParallelSliceMut as _;
use rkyv::api::high::to_bytes_in;
use rkyv::collections::btree_map::ArchivedBTreeMap;
use rkyv::rancor::Error;
use rkyv::rend::u64_le;
use rkyv::ser::writer::Buffer;
use zerocopy::FromBytes as _;

use super::{PAGE, PLAIN, Way, alloc, can_map, map_everywhere, rack_with};

/// What nodes cache here, and what they map.
const CACHED: usize = 16 * PAGE;
const MAPPED: usize = 100 * PAGE;

/// All bytes of a mapping, none of them pinned: pages come and go under whoever uses them.
fn all_bytes(map: &mut Mapping) -> &mut [u8] {
    // SAFETY: the bytes are mapped for as long as the mapping is borrowed, and nobody else in this process has them under these
    // addresses: it is borrowed uniquely. Other nodes change them in no test here while the slice is there.
    unsafe { std::slice::from_raw_parts_mut(map.as_ptr(), map.len()) }
}

/// As a program that uses several threads does it.
fn sort(words: &mut [u64]) {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    threads.install(|| words.par_sort_unstable());
}

fn words(bytes: &mut [u8]) -> &mut [u64] {
    <[u64]>::mut_from_bytes(bytes).unwrap()
}

fn drawn(seed: u64, len: usize) -> Vec<u64> {
    let mut dice = Random::new(seed);
    (0..len).map(|_| dice.bits()).collect()
}

#[test]
fn a_sort_by_several_threads_sorts_pinned_pages_and_pages_that_come_and_go() {
    if !can_map() {
        return;
    }
    for (faulty, cached, mapped, is_pinned) in [
        (false, 4 * 64 * PAGE, 64 * PAGE, true),
        (false, CACHED, MAPPED, false),
        (true, CACHED, MAPPED, false),
    ] {
        // Both ways to resolve faults.
        let rack = rack_with(2, faulty, cached as u64, Way { in_place: faulty, ..PLAIN });
        let mut maps = map_everywhere(&rack, alloc(&rack, 0, mapped), mapped);
        let mut expected = drawn(1, mapped / 8);
        words(all_bytes(&mut maps[0])).copy_from_slice(&expected);
        if is_pinned {
            sort(words(&mut maps[1].pin_bytes(0..mapped).unwrap()));
        } else {
            sort(words(all_bytes(&mut maps[1])));
        }
        expected.sort_unstable();
        assert!(words(all_bytes(&mut maps[0])) == expected, "faulty {faulty}, pinned {is_pinned}");
    }
}

#[test]
fn a_b_tree_that_one_node_has_made_is_looked_up_and_changed_by_another() {
    if !can_map() {
        return;
    }
    type Tree = ArchivedBTreeMap<u64_le, u64_le>;
    for faulty in [false, true] {
        let rack =
            rack_with(2, faulty, CACHED as u64, Way { in_place: faulty, copies: 1 + usize::from(faulty) });
        let mut maps = map_everywhere(&rack, alloc(&rack, 1, MAPPED), MAPPED);
        let keys = drawn(2, 15_000);
        let mut expected: BTreeMap<u64, u64> = keys.iter().map(|key| (*key, key ^ 1)).collect();
        let made = to_bytes_in::<_, Error>(&expected, Buffer::from(all_bytes(&mut maps[0]))).unwrap();
        let len = made.len();
        assert!(len > 3 * CACHED, "{len} B all fit into the cache");

        // SAFETY: in these bytes there is a tree, unless the rack has damaged it.
        let mut tree = unsafe { rkyv::access_unchecked_mut::<Tree>(&mut all_bytes(&mut maps[1])[..len]) };
        for key in keys.iter().step_by(17) {
            let value = ArchivedBTreeMap::get_seal(tree.as_mut(), &u64_le::from(*key)).unwrap().unseal();
            assert_eq!(*value, key ^ 1);
            *value += 1;
            *expected.get_mut(key).unwrap() += 1;
        }
        for key in drawn(3, 100) {
            assert_eq!(tree.contains_key(&u64_le::from(key)), expected.contains_key(&key));
        }

        // SAFETY: as above.
        let tree = unsafe { rkyv::access_unchecked::<Tree>(&all_bytes(&mut maps[0])[..len]) };
        let found = tree.iter().map(|(key, value)| (key.to_native(), value.to_native()));
        assert!(found.eq(expected), "faulty {faulty}");
    }
}
