//! Snapshots: each kind comes back as it was, what is there is replaced only if that was asked for, and another shape never is.

use std::io::Cursor;
use std::time::Duration;

use apps::kv::{KvConfig, KvStore, Placement};
use apps::kv_locked::{LockedStore, LockedStoreConfig};
use apps::named;
use apps::objects::{ObjectStore, ObjectStoreConfig, Sabres};
use apps::snapshot::{self, Error, Existing, Kind, Moment, Restored, Snapshot};
use rackmem::{
    ByteObjects, Chains, ChainsConfig, Config, Locked, LockedRegions, NameError, NodeHandle, NodeId, Objects,
    Rack, Region, Retry, Value, Words, block_on,
};

pub(crate) const WAIT: Duration = Duration::from_secs(10);

pub(crate) fn rack() -> Rack {
    let config = Config { nodes: 3, cache: 1 << 20, memory: 16 << 20, ..Config::default() };
    Rack::embedded(config).unwrap()
}

pub(crate) fn saved(handle: &mut NodeHandle, name: &str) -> (Vec<u8>, Moment) {
    let mut file = Vec::new();
    let saved = snapshot::save(handle, name, WAIT, &mut file).unwrap();
    assert_eq!(saved.about.name, name);
    (file, saved.moment)
}

pub(crate) fn restored(
    handle: &mut NodeHandle,
    name: &str,
    file: &[u8],
    existing: Existing,
) -> Result<Restored, Error> {
    Snapshot::open(Cursor::new(file))?.restore(handle, name, existing, WAIT)
}

/// What is made, changed after it was saved, and brought back: in a rack that has nothing, under another name, and in its place.
fn comes_back<T, S: PartialEq + std::fmt::Debug>(
    (kind, moment): (Kind, Moment),
    make: impl Fn(&mut NodeHandle) -> T,
    change: impl Fn(&mut NodeHandle, &T),
    look: impl Fn(&mut NodeHandle, &str) -> S,
) {
    let (rack, other) = (rack(), rack());
    let mut here = rack.node(NodeId(0));
    let it = make(&mut here);
    let before = look(&mut here, "it");
    let (file, promised) = saved(&mut here, "it");
    assert_eq!(promised, moment);
    change(&mut here, &it);
    let after = look(&mut here, "it");
    assert_ne!(before, after, "else nothing would be shown");

    for (mut there, name) in [(other.node(NodeId(1)), "it"), (rack.node(NodeId(2)), "another")] {
        let done = restored(&mut there, name, &file, Existing::Keep).unwrap();
        assert!(done.made && !done.copies && done.about.kind == kind, "{done:?}");
        assert_eq!(look(&mut there, name), before);
    }
    let Err(Error::Exists { there }) = restored(&mut here, "it", &file, Existing::Keep) else {
        panic!("it was replaced")
    };
    assert_eq!((&*there.name, look(&mut here, "it")), ("it", after));
    let done = restored(&mut here, "it", &file, Existing::Replace).unwrap();
    assert!(!done.made);
    // Whoever had it open sees it, too.
    assert_eq!(look(&mut here, "it"), before);
    change(&mut here, &it);
    assert_ne!(look(&mut here, "it"), before);
}

#[test]
fn a_value_behind_a_lock_comes_back() {
    comes_back(
        (Kind::Locked, Moment::Whole),
        |here| here.named::<Locked<[u8; 13]>>("it").tag("thirteen", 3).create(*b"thirteen byte").unwrap(),
        |here, it| it.write(here).unwrap()[5] += 1,
        |here, name| {
            *here.named::<Locked<[u8; 13]>>(name).tag("thirteen", 3).open().unwrap().read(here).unwrap()
        },
    );
}

#[test]
fn regions_behind_a_lock_come_back() {
    let open = |here: &mut NodeHandle, name: &str| here.named::<LockedRegions>(name).open().unwrap();
    comes_back(
        (Kind::Regions, Moment::Whole),
        |here| {
            let it = here.named::<LockedRegions>("it").create(4096).unwrap();
            let regions: [&[u8]; 3] = [b"one", b"", &[7; 1000]];
            it.write(here).unwrap().replace(&regions).unwrap();
            it
        },
        |here, it| it.write(here).unwrap().remove(0).unwrap(),
        |here, name| {
            let it = open(here, name);
            let regions = it.read(here).unwrap();
            regions.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        },
    );
}

#[test]
fn a_coherent_value_comes_back() {
    comes_back(
        (Kind::Value, Moment::Whole),
        |here| here.named::<Value<[u32; 5]>>("it").create([1, 2, 3, 4, 5]).unwrap(),
        |here, it| it.update(here, |it| it[4] = 0).unwrap(),
        |here, name| here.named::<Value<[u32; 5]>>(name).open().unwrap().get(here).unwrap(),
    );
}

/// More than a piece of a file, and no whole number of blocks.
const LONG: usize = (300 << 10) + 11;

#[test]
fn a_region_comes_back() {
    comes_back(
        (Kind::Region, Moment::Block),
        |here| {
            let it = here.named::<Region>("it").tag("rackmem::Region of bytes", 2).create(LONG).unwrap();
            let bytes: Vec<u8> = (0..LONG).map(|at| (at % 251) as u8).collect();
            here.write(it.addr(), &bytes).unwrap();
            it
        },
        |here, it| here.write(it.addr() + (LONG as u64 - 1), &[255]).unwrap(),
        |here, name| {
            let it = here.named::<Region>(name).tag("rackmem::Region of bytes", 2).open().unwrap();
            let mut bytes = vec![0; it.len()];
            here.read(it.addr(), &mut bytes).unwrap();
            bytes
        },
    );
}

#[test]
fn words_come_back() {
    comes_back(
        (Kind::Words, Moment::Word),
        |here| {
            let it = here.named::<Words<u64>>("it").create(40_000).unwrap();
            for at in (0..40_000).step_by(1111) {
                it.fetch_add(here, at, at as u64 + 1).unwrap();
            }
            it
        },
        |here, it| assert_eq!(it.fetch_add(here, 39_996, 1).unwrap(), 39_997),
        |here, name| {
            let it = here.named::<Words<u64>>(name).open().unwrap();
            (0..it.len()).map(|at| it.load(here, at).unwrap()).collect::<Vec<_>>()
        },
    );
}

#[test]
fn words_of_32_bits_come_back() {
    comes_back(
        (Kind::Words, Moment::Word),
        |here| {
            let it = here.named::<Words<u32>>("it").create(7).unwrap();
            (0..7).for_each(|at| assert_eq!(it.fetch_add(here, at, at as u32 + 1), Ok(0)));
            it
        },
        |here, it| assert_eq!(it.fetch_add(here, 6, 1).unwrap(), 7),
        |here, name| {
            let it = here.named::<Words<u32>>(name).open().unwrap();
            (0..7).map(|at| it.load(here, at).unwrap()).collect::<Vec<_>>()
        },
    );
}

#[test]
fn objects_come_back() {
    comes_back(
        (Kind::Objects, Moment::Object),
        |here| {
            let it = here.named::<Objects<[u8; 500]>>("it").create(9).unwrap();
            (0..9).for_each(|at| assert_eq!(it.write(here, at, &[at as u8 + 1; 500]), Ok(2)));
            it
        },
        |here, it| assert!(it.write(here, 8, &[0; 500]).is_ok()),
        |here, name| {
            let it = here.named::<Objects<[u8; 500]>>(name).open().unwrap();
            (0..9).map(|at| it.read(here, at, Retry::Forever).unwrap()).collect::<Vec<_>>()
        },
    );
}

/// Sizes on both sides of a block.
fn records() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..300u32).map(|key| {
        let len = if key.is_multiple_of(50) { 6000 } else { key as usize % 90 };
        (format!("key {key}").into_bytes(), vec![key as u8; len])
    })
}

#[test]
fn a_store_comes_back_without_what_was_put_since() {
    // More keys than its buckets are for.
    let config = KvConfig { expected_keys: 50, placement: Placement::Local, homes: Some(2), salt: 7 };
    comes_back(
        (Kind::Store, Moment::Key),
        |here| {
            let it: KvStore = named::open_or(here, "it", &config).unwrap();
            records().for_each(|(key, value)| assert_eq!(block_on(it.put(here, &key, &value)), Ok(false)));
            it
        },
        |here, it| {
            block_on(it.put(here, b"new", b"one")).unwrap();
            block_on(it.delete(here, b"key 5")).unwrap();
            block_on(it.put(here, b"key 6", b"changed")).unwrap();
        },
        |here, name| {
            let it: KvStore = named::open(here, name).unwrap();
            let made = it.config();
            assert!(made.expected_keys >= 50 && made.expected_keys < 60, "{made:?}");
            assert_eq!(KvConfig { expected_keys: 50, ..made }, config);
            let (mut all, mut next) = (Vec::new(), Some(0));
            while let Some(bucket) = next {
                let keys;
                (keys, next) = block_on(it.keys(here, bucket)).unwrap();
                for key in keys {
                    let mut value = Vec::new();
                    assert!(block_on(it.get(here, &key, &mut value)).unwrap());
                    all.push((key, value));
                }
            }
            all.sort();
            all
        },
    );
}

fn in_locks(config: LockedStoreConfig, moment: Moment) {
    let small = || {
        records().map(|(key, mut value)| {
            value.truncate(100);
            (key, value)
        })
    };
    comes_back(
        (Kind::LockedStore, moment),
        |here| {
            let it: LockedStore = named::open_or(here, "it", &config).unwrap();
            small().for_each(|(key, value)| assert_eq!(it.put(here, &key, &value), Ok(false)));
            it
        },
        |here, it| {
            it.put(here, b"new", b"one").unwrap();
            it.delete(here, b"key 5").unwrap();
        },
        |here, name| {
            let it: LockedStore = named::open(here, name).unwrap();
            assert_eq!(it.config().bucket_bytes(), config.bucket_bytes());
            assert_eq!(it.config().buckets(3), config.buckets(3));
            assert_eq!(it.buckets() as u64, config.buckets(3));
            let mut all: Vec<_> =
                (0..it.buckets()).flat_map(|at| it.records(here, at, WAIT).unwrap().unwrap()).collect();
            all.sort();
            all
        },
    );
}

#[test]
fn a_store_in_locks_comes_back_of_one_moment() {
    in_locks(LockedStoreConfig { expected_keys: 60, record_bytes: 100, salt: 3 }, Moment::Whole);
}

#[test]
fn a_large_store_in_locks_comes_back_bucket_by_bucket() {
    in_locks(LockedStoreConfig { expected_keys: 12_000, record_bytes: 64, salt: 3 }, Moment::Bucket);
}

#[test]
fn a_store_of_objects_comes_back() {
    let config = ObjectStoreConfig {
        expected_keys: 300,
        key_bytes: 20,
        value_bytes: 6000,
        slots: 3,
        homes: Some(2),
        salt: 8,
    };
    comes_back(
        (Kind::ObjectStore, Moment::Bucket),
        |here| {
            let mut it: ObjectStore<Sabres> = named::open_or(here, "it", &config).unwrap();
            records().for_each(|(key, value)| assert_eq!(it.put(here, &key, &value), Ok(false)));
            it
        },
        |here, it| {
            let mut it = it.clone();
            it.put(here, b"new", b"one").unwrap();
            it.delete(here, b"key 5").unwrap();
        },
        |here, name| {
            let mut it: ObjectStore<Sabres> = named::open(here, name).unwrap();
            assert_eq!(it.config().bucket_bytes(), config.bucket_bytes());
            assert_eq!(it.config().objects_on_each(2), config.objects_on_each(2));
            let (mut all, mut next) = (Vec::new(), Some(0));
            while let Some(chain) = next {
                let some;
                (some, next) = it.entries(here, chain).unwrap();
                all.extend(some);
            }
            all.sort();
            all
        },
    );
}

#[test]
fn every_configuration_of_a_store_in_locks_is_that_of_a_store_like_it() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    for expected_keys in [0, 1, 2, 3, 7, 100, 101] {
        for record_bytes in [0, 1, 60, 75, 76, 300, 20_000] {
            let config = LockedStoreConfig { expected_keys, record_bytes, salt: 9 };
            let store = LockedStore::create(&mut here, &config).unwrap();
            let like = store.config();
            assert_eq!(
                (like.bucket_bytes(), like.buckets(3), like.salt),
                (config.bucket_bytes(), config.buckets(3), 9),
                "{config:?}"
            );
            store.destroy(&mut here).unwrap();
        }
    }
}

#[test]
fn what_is_of_another_kind_or_shape_is_refused_with_both() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    here.named::<Locked<[u64; 3]>>("three").create([1, 2, 3]).unwrap();
    here.named::<Locked<[u64; 4]>>("four").create([0; 4]).unwrap();
    here.named::<Value<[u64; 3]>>("value").create([0; 3]).unwrap();
    here.named::<Locked<[u64; 3]>>("version").tag("[u64; 3]", 1).create([0; 3]).unwrap();
    let (file, _) = saved(&mut here, "three");
    for name in ["four", "value", "version"] {
        for existing in [Existing::Keep, Existing::Replace] {
            let why = restored(&mut here, name, &file, existing).unwrap_err();
            let said = why.to_string();
            assert!(matches!(why, Error::Differs { .. }), "{said}");
            assert!(said.contains("in the file is Locked, 24 B, type [u64; 3]"), "{said}");
        }
    }
    let four = here.named::<Locked<[u64; 4]>>("four").open().unwrap();
    assert_eq!(*four.read(&mut here).unwrap(), [0; 4]);
    let config = KvConfig { expected_keys: 9, ..KvConfig::default() };
    let _: KvStore = named::open_or(&mut here, "store", &config).unwrap();
    let (file, _) = saved(&mut here, "store");
    let config = LockedStoreConfig { expected_keys: 9, ..LockedStoreConfig::default() };
    let _: LockedStore = named::open_or(&mut here, "locks", &config).unwrap();
    let why = restored(&mut here, "locks", &file, Existing::Replace).unwrap_err();
    assert!(matches!(why, Error::Differs { .. }), "{why}");
}

#[test]
fn what_has_no_name_or_no_list_or_is_half_changed_is_not_saved() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let mut file = Vec::new();
    let mut why = |here: &mut NodeHandle, name: &str| {
        snapshot::save(here, name, Duration::from_millis(20), &mut file).unwrap_err()
    };
    assert!(matches!(why(&mut here, "none"), Error::Name(NameError::NotFound { .. })));
    here.named::<Chains>("chains").create(ChainsConfig::at(NodeId(0), 64 << 10)).unwrap();
    let said = why(&mut here, "chains");
    assert!(matches!(said, Error::Unlistable { .. }), "{said}");
    // As far as a maker of a store gets who dies midway.
    here.named::<Value<u64>>("begun").tag("store", 1).create(0).unwrap();
    assert!(matches!(why(&mut here, "begun"), Error::Name(NameError::NotFound { .. })));

    let lock = here.named::<Locked<u64>>("lock").create(1).unwrap();
    let mut there = rack.node(NodeId(1));
    let guard = lock.write(&mut there).unwrap();
    let said = why(&mut here, "lock");
    assert!(matches!(said, Error::Busy { .. }) && said.to_string().contains("for 0.02 s"), "{said}");
    drop(guard);
    let (good, _) = saved(&mut here, "lock");
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        *lock.write(&mut there).unwrap() = 99;
        let _guard = lock.write(&mut there).unwrap();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panics.is_err());
    let said = why(&mut here, "lock");
    assert!(matches!(said, Error::Poisoned { .. }), "{said}");
    // A snapshot from before makes it whole.
    restored(&mut here, "lock", &good, Existing::Replace).unwrap();
    assert_eq!(lock.read(&mut here).map(|it| *it), Ok(1));
}

#[test]
fn a_lock_that_is_held_is_not_replaced_and_its_fencing_number_grows_when_it_is() {
    let rack = rack();
    let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    let lock = here.named::<Locked<u64>>("lock").create(1).unwrap();
    let (file, _) = saved(&mut here, "lock");
    let guard = lock.write(&mut there).unwrap();
    let fence = guard.fence();
    let mut snapshot = Snapshot::open(Cursor::new(&file)).unwrap();
    let short = Duration::from_millis(20);
    let why = snapshot.restore(&mut here, "lock", Existing::Replace, short).unwrap_err();
    assert!(matches!(why, Error::Busy { .. }), "{why}");
    drop(guard);
    snapshot.restore(&mut here, "lock", Existing::Replace, WAIT).unwrap();
    assert!(
        lock.write(&mut there).unwrap().fence() > fence + 1,
        "nobody takes what was brought back for what was there"
    );
}

#[test]
fn regions_that_memory_was_taken_into_are_saved_and_not_replaced() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let lock = here.named::<LockedRegions>("regions").create(4096).unwrap();
    lock.write(&mut here).unwrap().push_values(&[1u64]).unwrap();
    let taken = here.alloc(64, NodeId(0), rackmem::Discipline::Locked).unwrap();
    lock.write(&mut here).unwrap().take_in(&mut rack.node(NodeId(0)), taken, 64).unwrap();
    let (file, _) = saved(&mut here, "regions");
    let why = restored(&mut here, "regions", &file, Existing::Replace).unwrap_err();
    assert!(matches!(why, Error::HasMemory { .. }), "{why}");
    restored(&mut here, "others", &file, Existing::Keep).unwrap();
    let others = here.named::<LockedRegions>("others").open().unwrap();
    let regions = others.read(&mut here).unwrap();
    assert_eq!((regions.len(), regions.taken_from(1)), (2, None));
}

#[test]
fn a_rack_without_memory_for_it_says_so_and_has_nothing_of_it() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    here.named::<Region>("region").create(8 << 20).unwrap();
    let store: KvStore =
        named::open_or(&mut here, "store", &KvConfig { expected_keys: 9, ..KvConfig::default() }).unwrap();
    for key in 0..20u32 {
        block_on(store.put(&mut here, &key.to_le_bytes(), &vec![1; 100_000])).unwrap();
    }
    let config = LockedStoreConfig { expected_keys: 30_000, record_bytes: 40, salt: 0 };
    let _: LockedStore = named::open_or(&mut here, "locks", &config).unwrap();
    let config = LockedStoreConfig { expected_keys: 9, record_bytes: 2000, salt: 0 };
    let full: LockedStore = named::open_or(&mut here, "full", &config).unwrap();
    for key in 0..800u32 {
        full.put(&mut here, &key.to_le_bytes(), &[1; 2000]).unwrap();
    }
    let files = ["region", "store", "locks", "full"].map(|name| saved(&mut here, name).0);
    let small = Config { nodes: 1, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
    let small = Rack::embedded(small).unwrap();
    let mut there = small.node(NodeId(0));
    let live = || small.counters().nodes[0].memory_live;
    let before = live();
    for file in &files {
        let why = restored(&mut there, "it", file, Existing::Keep).unwrap_err();
        assert!(!matches!(why, Error::Partly { .. }), "{why}");
        assert_eq!((there.names("").unwrap(), live()), (vec![], before), "{why}");
    }
}

#[test]
fn a_store_whose_buckets_are_too_small_is_not_begun_to_be_replaced() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    let large = LockedStoreConfig { expected_keys: 9, record_bytes: 2000, salt: 0 };
    let store: LockedStore = named::open_or(&mut here, "large", &large).unwrap();
    store.put(&mut here, b"a", b"small").unwrap();
    store.put(&mut here, b"b", &[1; 2000]).unwrap();
    let (file, _) = saved(&mut here, "large");
    let small: LockedStore =
        named::open_or(&mut here, "small", &LockedStoreConfig { record_bytes: 50, ..large }).unwrap();
    small.put(&mut here, b"mine", b"stays").unwrap();
    let why = restored(&mut here, "small", &file, Existing::Replace).unwrap_err();
    assert!(matches!(why, Error::Store { why: apps::kv::Error::ValueTooLong { .. }, .. }), "{why}");
    let mut value = Vec::new();
    assert_eq!(small.get(&mut here, b"a", &mut value), Ok(false));
    assert_eq!(small.get(&mut here, b"mine", &mut value), Ok(true));
}

#[test]
fn objects_of_bytes_keep_their_length() {
    let rack = rack();
    let mut here = rack.node(NodeId(0));
    here.named::<ByteObjects>("it").create((3, 77)).unwrap();
    let (file, _) = saved(&mut here, "it");
    restored(&mut here, "same", &file, Existing::Keep).unwrap();
    let same = here.named::<ByteObjects>("same").open().unwrap();
    assert_eq!((same.count(), same.object_len()), (3, 77));
}
