//! What the operations do, one after another: compared with a map, for all block sizes; and what they refuse.

use crate::support;

use std::collections::{BTreeSet, HashMap};

use apps::kv::{Error, KvConfig, KvStore, Placement};
use rackmem::{Discipline, GlobalAddr, Memory, NodeId, block_on};
use random::Dice;
use support::clients::perform;
use support::history::{Ask, apply};
use support::memory::{Rack, Worker};
use support::values::value;

fn store(mem: &mut Worker, expected_keys: u64) -> KvStore {
    block_on(KvStore::create(mem, &KvConfig { expected_keys, ..KvConfig::default() })).unwrap()
}

fn get(store: &KvStore, mem: &mut Worker, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = b"what was here before".to_vec();
    let found = block_on(store.get(mem, key, &mut value)).unwrap();
    assert!(found || value.is_empty());
    found.then_some(value)
}

/// All of them, in order.
fn keys(store: &KvStore, mem: &mut Worker) -> Vec<Vec<u8>> {
    let (mut all, mut next) = (Vec::new(), Some(0));
    while let Some(bucket) = next {
        let (keys, behind) = block_on(store.keys(mem, bucket)).unwrap();
        all.extend(keys);
        next = behind;
    }
    all.sort_unstable();
    all
}

/// Random operations on a few hundred keys, against a map. Then all keys are deleted.
fn agrees_with_a_map(block: u64, expected_keys: u64, most: usize, operations: u16) {
    let rack = Rack::new(3, block, 8 << 20, 1);
    let mut mem = rack.worker(1);
    let store = store(&mut mem, expected_keys);
    let empty = rack.allocations();
    let mut random = Dice::new(block);
    let mut map: HashMap<Vec<u8>, Option<Vec<u8>>> = HashMap::new();
    for number in 1..operations {
        let key = vec![b'k'; random.pick(3)]
            .into_iter()
            .chain(u16::try_from(random.pick(200)).unwrap().to_le_bytes());
        let key: Vec<u8> = key.collect();
        let new = value(number, random.pick(most));
        let offset = random.pick(most);
        let asks = [
            Ask::Get,
            Ask::Put(new.clone()),
            Ask::Put(new.clone()),
            Ask::Insert(new.clone()),
            Ask::Delete,
            Ask::Update(offset, value(number, random.pick(most))),
            Ask::Append(new, most),
        ];
        let ask = &asks[random.pick(asks.len())];
        let expected = apply(map.entry(key.clone()).or_default(), ask);
        let answer = block_on(perform(&store, &mut mem, &key, ask));
        assert_eq!(answer, expected, "operation {number} on {key:?}: {ask:?}");
    }
    let mut there: Vec<&Vec<u8>> =
        map.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key).collect();
    there.sort_unstable();
    assert_eq!(keys(&store, &mut mem).iter().collect::<Vec<_>>(), there);
    for (key, value) in &map {
        assert_eq!(get(&store, &mut mem, key), *value);
        assert_eq!(block_on(store.delete(&mut mem, key)).unwrap(), value.is_some());
        assert_eq!(get(&store, &mut mem, key), None);
    }
    assert!(keys(&store, &mut mem).is_empty());
    let buckets = rack.allocations().len() - empty.len();
    assert_eq!(buckets > 0, expected_keys < 100, "only buckets that were split remain");
    block_on(store.destroy(&mut mem)).unwrap();
    assert_eq!(rack.allocations(), []);
}

#[test]
fn blocks_of_64_bytes_agree_with_a_map() {
    agrees_with_a_map(64, 10_000, 200, 5000);
}

#[test]
fn blocks_of_128_bytes_agree_with_a_map() {
    agrees_with_a_map(128, 10_000, 300, 5000);
}

#[test]
fn blocks_of_4_kib_agree_with_a_map() {
    agrees_with_a_map(4096, 10_000, 1500, 5000);
}

#[test]
fn blocks_of_4_kib_with_values_of_several_blocks_agree_with_a_map() {
    agrees_with_a_map(4096, 10_000, 10_000, 5000);
}

#[test]
fn blocks_of_1_mib_agree_with_a_map() {
    agrees_with_a_map(1 << 20, 10_000, 2000, 400);
}

#[test]
fn a_store_that_grew_from_one_bucket_agrees_with_a_map() {
    agrees_with_a_map(64, 0, 100, 5000);
    agrees_with_a_map(4096, 1, 100, 5000);
}

#[test]
fn values_may_have_any_size() {
    for block in [64, 4096, 1 << 20] {
        let rack = Rack::new(2, block, 16 << 20, 2);
        let mut mem = rack.worker(0);
        let store = store(&mut mem, 10);
        for len in [0, 1, 31, 32, 33, 4000, 4047, 4048, 4096, 1 << 20, (1 << 20) + 1, 3 << 20] {
            let number = u16::try_from(len % 1000).unwrap();
            block_on(store.put(&mut mem, b"key", &value(number, len))).unwrap();
            assert_eq!(
                get(&store, &mut mem, b"key"),
                Some(value(number, len)),
                "{len} bytes, blocks of {block}"
            );
        }
    }
}

#[test]
fn a_value_that_shrinks_much_gives_memory_back_and_one_that_shrinks_little_stays() {
    let rack = Rack::new(1, 4096, 1 << 20, 10);
    let mut mem = rack.worker(0);
    let store = store(&mut mem, 1);
    let empty = rack.allocations();
    let mut put = |len| {
        block_on(store.put(&mut mem, b"key", &value(1, len))).unwrap();
        *rack.allocations().iter().find(|place| !empty.contains(place)).unwrap()
    };
    let large = put(4000);
    assert_eq!(put(3900), large, "it is changed in place");
    let small = put(100);
    assert!(small.1 < 200, "{} bytes for 100", small.1);
    assert_eq!(put(104), small, "it uses what the allocation was rounded up to");
}

#[test]
fn keys_may_have_any_bytes_and_any_length_up_to_the_limit() {
    for (block, most) in [(64, 32), (128, 96), (4096, 1024)] {
        let rack = Rack::new(1, block, 4 << 20, 3);
        let mut mem = rack.worker(0);
        let store = store(&mut mem, 100);
        assert_eq!(store.longest_key(), most);
        let keys: Vec<Vec<u8>> = (0..=most).map(|len| vec![0; len]).collect();
        for (number, key) in keys.iter().enumerate() {
            block_on(store.put(&mut mem, key, &number.to_le_bytes())).unwrap();
        }
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(get(&store, &mut mem, key), Some(number.to_le_bytes().to_vec()));
        }
        let error = Error::KeyTooLong { len: most + 1, most };
        let (long, mut value) = (vec![0; most + 1], Vec::new());
        assert_eq!(block_on(store.get(&mut mem, &long, &mut value)), Err(error));
        assert_eq!(block_on(store.put(&mut mem, &long, &[])), Err(error));
        assert_eq!(block_on(store.delete(&mut mem, &long)), Err(error));
    }
}

#[test]
fn keys_with_one_tag_are_kept_apart() {
    let rack = Rack::new(1, 4096, 1 << 20, 4);
    let mut mem = rack.worker(0);
    let store = store(&mut mem, 1);
    let keys = ["key 16208", "key 118429", "key 301398", "key 385158", "key 26464752"];
    for key in keys {
        assert_eq!(get(&store, &mut mem, key.as_bytes()), None, "{key} was not put yet");
        assert!(!block_on(store.put(&mut mem, key.as_bytes(), key.as_bytes())).unwrap());
    }
    for key in keys {
        assert_eq!(get(&store, &mut mem, key.as_bytes()), Some(key.into()));
        let mut new = Vec::new();
        assert!(block_on(store.update_in_place(&mut mem, key.as_bytes(), 0, b"K")).unwrap());
        let grow = |value: &mut Vec<u8>| value.resize(300, b'.');
        assert!(block_on(store.read_modify_write(&mut mem, key.as_bytes(), &mut new, grow)).unwrap());
        assert!(new.starts_with(&[b"K", &key.as_bytes()[1..]].concat()));
    }
    for (number, key) in keys.iter().enumerate() {
        assert!(block_on(store.delete(&mut mem, key.as_bytes())).unwrap());
        for (other, key) in keys.iter().enumerate() {
            assert_eq!(get(&store, &mut mem, key.as_bytes()).is_some(), other > number);
        }
    }
}

#[test]
fn more_keys_of_one_hash_than_a_bucket_holds_are_refused_and_nothing_is_lost() {
    let rack = Rack::new(1, 64, 1 << 20, 5);
    let mut mem = rack.worker(0);
    let store = store(&mut mem, 1);
    let [last, keys @ ..] = [&b"key 16208"[..], b"key 118429", b"key 301398", b"key 385158"];
    for key in keys {
        block_on(store.put(&mut mem, key, key)).unwrap();
    }
    assert!(matches!(block_on(store.put(&mut mem, last, last)), Err(Error::TooManyCollisions { .. })));
    assert!(keys.iter().all(|key| get(&store, &mut mem, key).as_deref() == Some(key)));
    block_on(store.delete(&mut mem, keys[1])).unwrap();
    assert_eq!(block_on(store.put(&mut mem, last, last)), Ok(false), "there is room again");
    block_on(store.destroy(&mut mem)).unwrap();
    assert_eq!(rack.allocations(), []);
}

#[test]
fn a_store_is_opened_by_its_root_on_any_node() {
    let rack = Rack::new(4, 4096, 1 << 20, 6);
    let mut mem = rack.worker(2);
    let config = KvConfig { expected_keys: 5000, placement: Placement::Local, homes: None, salt: 77 };
    let created = block_on(KvStore::create(&mut mem, &config)).unwrap();
    block_on(created.put(&mut mem, b"key", b"value")).unwrap();
    let mut other = rack.worker(3);
    let opened = block_on(KvStore::open(&mut other, created.root())).unwrap();
    assert_eq!(opened, created);
    assert_eq!(get(&opened, &mut other, b"key"), Some(b"value".to_vec()));
}

#[test]
fn a_store_that_leaves_nodes_out_has_nothing_of_its_own_there() {
    let rack = Rack::new(4, 4096, 1 << 20, 6);
    let config = KvConfig { expected_keys: 5000, homes: Some(2), ..KvConfig::default() };
    let mut mem = rack.worker(3);
    let created = block_on(KvStore::create(&mut mem, &config)).unwrap();
    for placement in [created.clone(), block_on(KvStore::open(&mut mem, created.root())).unwrap()] {
        for key in 0..200_u16 {
            block_on(placement.put(&mut mem, &key.to_le_bytes(), &[7; 100])).unwrap();
        }
    }
    let homes: BTreeSet<u16> = rack.allocations().iter().map(|(addr, _)| addr.home().0).collect();
    assert_eq!(homes, BTreeSet::from([0, 1]));
}

#[test]
fn what_is_not_a_store_is_not_opened() {
    let rack = Rack::new(2, 4096, 1 << 20, 7);
    let mut mem = rack.worker(0);
    let created = store(&mut mem, 100);
    let zeroes = block_on(mem.alloc(4096, NodeId(1), Discipline::Coherent)).unwrap();
    let nowhere = [GlobalAddr::NULL, GlobalAddr::new(NodeId(9), 64), GlobalAddr::new(NodeId(1), 1 << 30)];
    for root in [zeroes, created.root() + 8].into_iter().chain(nowhere) {
        assert_eq!(block_on(KvStore::open(&mut mem, root)), Err(Error::NotAStore { root }));
    }
    // A root whose numbers do not fit each other, one word after the other.
    for word in 0..7 {
        let place = created.root() + word * 8;
        let good = block_on(mem.read_word(place)).unwrap();
        if word == 2 {
            continue; // Any salt is as good as another.
        }
        block_on(mem.write_word(place, good ^ 1 << 40)).unwrap();
        let root = created.root();
        assert_eq!(block_on(KvStore::open(&mut mem, root)), Err(Error::NotAStore { root }), "word {word}");
        block_on(mem.write_word(place, good)).unwrap();
    }
    assert_eq!(block_on(KvStore::open(&mut mem, created.root())), Ok(created));
}

#[test]
fn the_bucket_array_is_spread_over_the_nodes() {
    let rack = Rack::new(4, 4096, 8 << 20, 8);
    let mut mem = rack.worker(0);
    store(&mut mem, 100_000);
    let mut bytes = [0; 4];
    for (addr, len) in rack.allocations() {
        bytes[addr.home().index()] += len;
    }
    assert!(bytes.iter().all(|bytes| (700_000..1_100_000).contains(bytes)), "{bytes:?}");
}

#[test]
fn records_are_placed_as_configured() {
    for (placement, everywhere) in [(Placement::Spread, true), (Placement::Local, false)] {
        let rack = Rack::new(4, 4096, 1 << 20, 9);
        let mut mem = rack.worker(3);
        let config = KvConfig { expected_keys: 10_000, placement, ..KvConfig::default() };
        let store = block_on(KvStore::create(&mut mem, &config)).unwrap();
        let before = rack.allocations();
        for number in 0_u32..200 {
            block_on(store.put(&mut mem, &number.to_le_bytes(), b"value")).unwrap();
        }
        let mut records = [0; 4];
        for (addr, _) in rack.allocations().iter().filter(|place| !before.contains(place)) {
            records[addr.home().index()] += 1;
        }
        let expected =
            |count: &i32| if everywhere { (25..80).contains(count) } else { [0, 200].contains(count) };
        assert!(records.iter().all(expected), "{placement:?}: {records:?}");
    }
}
