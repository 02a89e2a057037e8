//! Full memory, damaged memory and requests that make no sense: each is an error that says what is wrong, and
//! leaves the store as it was.

use crate::support;

use apps::kv::{Error, KvConfig, KvStore};
use rackmem::{GlobalAddr, Memory, NodeId, block_on};
use support::memory::{Rack, Worker};
use support::values::value;

fn get(store: &KvStore, mem: &mut Worker, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut value = Vec::new();
    Ok(block_on(store.get(mem, key, &mut value))?.then_some(value))
}

/// A store with one key, and the address of its record.
fn one_record(len: usize) -> (Worker, KvStore, GlobalAddr) {
    let rack = Rack::new(1, 256, 1 << 16, 1);
    let mut mem = rack.worker(0);
    let store =
        block_on(KvStore::create(&mut mem, &KvConfig { expected_keys: 1, ..KvConfig::default() })).unwrap();
    let before = rack.allocations();
    block_on(store.put(&mut mem, b"key", &value(1, len))).unwrap();
    let record = rack.allocations().into_iter().find(|place| !before.contains(place)).unwrap().0;
    (mem, store, record)
}

#[test]
fn an_update_outside_the_value_is_refused_and_changes_nothing() {
    for len in [100, 1000] {
        let (mut mem, store, _) = one_record(len);
        for (offset, bytes) in [(len, 1), (len - 1, 2), (0, len + 1), (usize::MAX, 1)] {
            let error = Error::OutsideValue { offset, len: bytes, value: len };
            assert_eq!(
                block_on(store.update_in_place(&mut mem, b"key", offset, &vec![9; bytes])),
                Err(error),
                "{error}"
            );
        }
        assert_eq!(get(&store, &mut mem, b"key"), Ok(Some(value(1, len))));
        assert_eq!(block_on(store.update_in_place(&mut mem, b"key", len, &[])), Ok(true));
        assert_eq!(block_on(store.update_in_place(&mut mem, b"other", 0, &[])), Ok(false));
    }
}

#[test]
fn a_full_rack_refuses_puts_and_keeps_what_it_has() {
    let rack = Rack::new(2, 256, 16 << 10, 2);
    let mut mem = rack.worker(0);
    let store =
        block_on(KvStore::create(&mut mem, &KvConfig { expected_keys: 50, ..KvConfig::default() })).unwrap();
    let fits = (0_u16..)
        .take_while(|number| {
            match block_on(store.put(&mut mem, &number.to_le_bytes(), &value(*number, 200))) {
                Ok(_) => true,
                Err(Error::Memory(rackmem::Error::OutOfMemory { .. })) => false,
                Err(other) => panic!("{other}"),
            }
        })
        .count();
    // Both nodes are used up, whichever a key belongs to.
    assert!((85..125).contains(&fits), "{fits} records");
    let full = rack.allocations();
    let key = 0_u16.to_le_bytes();
    let out_of_memory = |result| matches!(result, Err(Error::Memory(rackmem::Error::OutOfMemory { .. })));
    assert!(out_of_memory(block_on(store.put(&mut mem, &key, &value(9, 2000)))));
    let grow = |value: &mut Vec<u8>| value.resize(2000, 0);
    assert!(out_of_memory(block_on(store.read_modify_write(&mut mem, &key, &mut Vec::new(), grow))));
    assert_eq!(rack.allocations(), full);
    for number in 0..u16::try_from(fits).unwrap() {
        assert_eq!(get(&store, &mut mem, &number.to_le_bytes()), Ok(Some(value(number, 200))));
    }
    assert_eq!(block_on(store.delete(&mut mem, &key)), Ok(true));
    assert_eq!(block_on(store.put(&mut mem, b"new", &value(1, 200))), Ok(false), "there is room again");
}

#[test]
fn a_store_that_finds_no_room_gives_back_what_it_took() {
    // Capacity for two of the five pieces of the bucket array.
    let rack = Rack::new(2, 4096, 1 << 17, 3);
    let mut mem = rack.worker(0);
    let config = KvConfig { expected_keys: 10_000, ..KvConfig::default() };
    let error = block_on(KvStore::create(&mut mem, &config)).unwrap_err();
    assert!(matches!(error, Error::Memory(rackmem::Error::OutOfMemory { .. })));
    assert_eq!(rack.allocations(), []);
}

#[test]
fn a_record_that_was_freed_by_someone_else_is_an_error_and_no_endless_loop() {
    // Memory is refused by blocks: this record has its block for itself.
    for len in [200, 1000] {
        let (mut mem, store, record) = one_record(len);
        block_on(mem.free(record)).unwrap();
        let gone = Err(Error::Memory(rackmem::Error::Unallocated { addr: record }));
        assert_eq!(get(&store, &mut mem, b"key").map(drop), gone);
        assert_eq!(block_on(store.put(&mut mem, b"key", b"new")).map(drop), gone);
        assert_eq!(block_on(store.insert(&mut mem, b"key", b"new")).map(drop), gone);
        assert_eq!(block_on(store.delete(&mut mem, b"key")).map(drop), gone);
        assert_eq!(block_on(store.update_in_place(&mut mem, b"key", 0, b"x")).map(drop), gone);
    }
}

#[test]
fn a_record_that_was_overwritten_is_an_error_and_no_endless_loop() {
    // The seal, and the word with the lengths.
    for (word, garbage) in
        [(0, 0), (0, 77), (1, 0), (1, u64::MAX >> 2), (1, 1 << 62 | 1 << 43 | 3 << 32 | 4000)]
    {
        let (mut mem, store, record) = one_record(40);
        block_on(mem.write_word(record + word * 8, garbage)).unwrap();
        let found = get(&store, &mut mem, b"key");
        let damaged = Err(Error::Damaged { record });
        // Lengths that are possible may also be those of another key's record.
        assert!(found == damaged || (word == 1 && found == Ok(None)), "{word} {garbage:#x}: {found:?}");
        if found == damaged {
            assert_eq!(block_on(store.put(&mut mem, b"key", b"new")).map(drop), damaged.map(drop));
            assert_eq!(block_on(store.delete(&mut mem, b"key")).map(drop), Err(Error::Damaged { record }));
        }
    }
}

#[test]
fn errors_say_what_to_do() {
    let addr = GlobalAddr::from_bits(4096);
    for (error, hint) in [
        (Error::KeyTooLong { len: 2000, most: 1024 }, "up to 1024 bytes"),
        (Error::ValueTooLong { len: 1 << 31, most: 1 << 30 }, "up to 1073741824 bytes"),
        (Error::OutsideValue { offset: 10, len: 5, value: 12 }, "use put"),
        (Error::NotAStore { root: addr }, "KvStore::root"),
        (Error::Full { slots: 8 }, "more keys"),
        (Error::Abandoned { node: NodeId(3) }, "a writer on node 3"),
        (Error::TooManyCollisions { bucket: addr }, "another salt"),
        (Error::Damaged { record: addr }, "something else writes"),
        (Error::Memory(rackmem::Error::Unallocated { addr }), "never allocated, or freed"),
    ] {
        assert!(error.to_string().contains(hint), "{error}");
    }
}
