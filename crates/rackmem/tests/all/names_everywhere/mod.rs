//! What must hold of names, on whatever rack of three nodes: tests of several kinds of racks call these.

mod watched;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rackmem::{
    ByteObjects, Chains, ChainsConfig, Discipline, Error, LockError, Locked, NameError, Named, NodeHandle,
    NodeId, Objects, Retry, Value, Words,
};

pub(crate) use watched::it_is_seen_who_holds_a_named_lock_and_who_waits_and_how_long_that_took;

/// A handle of each node, for any number of threads.
pub(crate) type Nodes<'a> = &'a (dyn Fn(u16) -> NodeHandle + Sync);

/// Names with each node as their home.
pub(crate) fn names_at(handle: &NodeHandle, home: u16, stem: &str) -> String {
    let names = (0..).map(|number| format!("{stem}/{number}"));
    names.into_iter().find(|name| handle.home_of_name(name) == NodeId(home)).expect("some name is kept there")
}

pub(crate) fn what_one_program_makes_others_find_by_name_until_it_is_removed(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(2));
    for home in 0..3 {
        let name = &*names_at(&here, home, "lock");
        let made = here.named::<Locked<[u64; 3]>>(name).create([1, 2, 3]).unwrap();
        assert_eq!(made.addr().home(), NodeId(home));
        let same = there.named::<Locked<[u64; 3]>>(name).open().unwrap();
        same.write(&mut there).unwrap()[0] += 10;
        assert_eq!(*made.read(&mut here).unwrap(), [11, 2, 3]);
        there.remove_name(name).unwrap();
        let addr = made.addr();
        assert_eq!(made.read(&mut here).map(drop), Err(LockError::Failed(Error::Unallocated { addr })));
        let gone = NameError::NotFound { name: name.to_owned() };
        assert_eq!(here.named::<Locked<[u64; 3]>>(name).open().err(), Some(gone.clone()));
        assert_eq!(here.remove_name(name), Err(gone));

        let name = &*names_at(&here, home, "value");
        let made = here.named::<Value<[u32; 5]>>(name).create([7; 5]).unwrap();
        let same = there.named::<Value<[u32; 5]>>(name).open().unwrap();
        same.update(&mut there, |value| value[4] = 8).unwrap();
        assert_eq!(made.get(&mut here), Ok([7, 7, 7, 7, 8]));
        made.set(&mut here, &[1; 5]).unwrap();
        assert_eq!(same.get(&mut there), Ok([1; 5]));
        here.remove_name(name).unwrap();
        assert_eq!(same.get(&mut there), Err(Error::Unallocated { addr: same.addr() }));

        let name = &*names_at(&here, home, "words");
        let made = here.named::<Words<u32>>(name).create(9).unwrap();
        let same = there.named::<Words<u32>>(name).open().unwrap();
        assert_eq!(same.len() / 2 * 2, 10, "whole double words");
        same.fetch_add(&mut there, 8, 5).unwrap();
        assert_eq!(made.load(&mut here, 8), Ok(5));
        here.remove_name(name).unwrap();
        assert_eq!(same.fetch_add(&mut there, 8, 5), Err(Error::Unallocated { addr: same.addr() }));

        let name = &*names_at(&here, home, "objects");
        let made = here.named::<Objects<[u64; 4]>>(name).create(3).unwrap();
        made.update(&mut here, 2, |object| object[1] = 6).unwrap();
        let same = there.named::<Objects<[u64; 4]>>(name).open().unwrap();
        assert_eq!(same.read(&mut there, 2, Retry::Forever).unwrap(), [0, 6, 0, 0]);
        here.remove_name(name).unwrap();
        assert!(there.named::<Objects<[u64; 4]>>(name).open().is_err());

        let name = &*names_at(&here, home, "bytes");
        here.named::<ByteObjects>(name).create((2, 100)).unwrap();
        assert_eq!(there.named::<ByteObjects>(name).open().unwrap().object_len(), 100);
        here.remove_name(name).unwrap();

        let name = &*names_at(&here, home, "chains");
        let mut made = here.named::<Chains>(name).create(ChainsConfig::at(NodeId(home), 64 << 10)).unwrap();
        made.put(&mut here, 7, b"seven").unwrap();
        let (mut same, mut found) = (there.named::<Chains>(name).open().unwrap(), Vec::new());
        assert!(same.get(&mut there, 7, &mut found).unwrap() && found == b"seven");
        drop(made);
        here.remove_name(name).unwrap();
        assert!(matches!(same.get(&mut there, 7, &mut found), Err(Error::Unallocated { .. })));
    }
    assert_eq!(here.names("").unwrap(), []);
}

pub(crate) fn of_all_who_make_one_name_at_once_one_does(nodes: Nodes<'_>) {
    const THREADS: u64 = 5;
    let made = AtomicUsize::new(0);
    for round in 0..6_u64 {
        made.store(0, Ordering::Relaxed);
        let name = &*format!("contended/{round}");
        let addrs = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .flat_map(|node| (0..THREADS).map(move |thread| (node, thread)))
                .map(|(node, thread)| {
                    let made = &made;
                    scope.spawn(move || {
                        let mut handle = nodes(node);
                        let mark = u64::from(node) * THREADS + thread;
                        if round % 2 == 0 {
                            let locked = handle.named::<Locked<[u64; 2]>>(name).open_or(|| [mark, mark]);
                            let locked = locked.unwrap();
                            let value = *locked.read(&mut handle).unwrap();
                            assert_eq!(value[0], value[1], "the value of one maker");
                            return (locked.addr(), value[0]);
                        }
                        match handle.named::<Locked<[u64; 2]>>(name).create([mark, mark]) {
                            Ok(locked) => {
                                made.fetch_add(1, Ordering::Relaxed);
                                (locked.addr(), mark)
                            }
                            Err(NameError::Exists { there }) => {
                                let locked = handle.named::<Locked<[u64; 2]>>(name).open().unwrap();
                                assert_eq!(locked.addr(), there.addr);
                                (there.addr, locked.read(&mut handle).unwrap()[0])
                            }
                            Err(why) => panic!("{why}"),
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(addrs.iter().all(|one| *one == addrs[0]), "{addrs:?}");
        assert_eq!(made.load(Ordering::Relaxed), (round % 2) as usize, "makers");
        nodes(1).remove_name(name).unwrap();
    }
    assert_eq!(nodes(0).names("").unwrap(), []);
}

pub(crate) fn what_is_asked_for_otherwise_is_refused_with_both(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    here.named::<Locked<u64>>("it").tag("count", 3).create(5).unwrap();
    let info = there.name_info("it").unwrap();
    assert_eq!(
        (info.spec.discipline, info.spec.tag.as_str(), info.spec.version),
        (Discipline::Locked, "count", 3)
    );
    assert_eq!(info.maker, NodeId(0));
    there.named::<Locked<u64>>("it").tag("count", 3).open().unwrap();
    fn differs<T>(opened: Result<T, NameError>) -> String {
        match opened.err() {
            Some(why @ NameError::Differs { .. }) => why.to_string(),
            other => panic!("{other:?}"),
        }
    }
    for text in [
        differs(there.named::<Locked<u64>>("it").open()),
        differs(there.named::<Locked<u64>>("it").tag("count", 4).open()),
        differs(there.named::<Locked<[u64; 2]>>("it").tag("count", 3).open_or(|| [0; 2])),
        differs(there.named::<Words<u64>>("it").tag("count", 3).create(1)),
        differs(there.named::<Value<u64>>("it").tag("count", 3).anew(|| 1)),
    ] {
        assert!(text.contains("there is Locked, 8 B, type count, version 3"), "{text}");
        assert!(text.contains("asked for was"), "{text}");
    }
    let unusable = |handle: &mut NodeHandle, name: &str| {
        let unusable = Some(NameError::Unusable { name: name.to_owned() });
        assert_eq!(handle.named::<Value<u64>>(name).open().err(), unusable);
        assert_eq!(handle.named::<Value<u64>>(name).open_or(|| 1).err(), unusable);
        assert_eq!(handle.remove_name(name).err(), unusable);
    };
    for name in ["", "a\nb", "a\0", &"x".repeat(256), &"é".repeat(128)] {
        unusable(&mut there, name);
    }
    there.named::<Value<u64>>(&"x".repeat(255)).create(1).unwrap();
    there.remove_name(&"x".repeat(255)).unwrap();
    let long = "t".repeat(65);
    assert!(matches!(here.named::<Value<u64>>("b").tag(&long, 0).create(1), Err(NameError::Unusable { .. })));
    // What cannot be made has no name.
    let most = here.block_size().bytes();
    let too_long = here.named::<Value<[u64; 1 << 10]>>("long").create([0; 1 << 10]);
    assert!(matches!(too_long.err(), Some(NameError::Failed(Error::BadSize { most: it, .. })) if it == most));
    assert!(matches!(here.named::<Words<u64>>("many").create(1 << 40).err(), Some(NameError::Failed(_))));
    assert_eq!(there.names("").unwrap().len(), 1);
    here.remove_name("it").unwrap();
}

pub(crate) fn names_are_listed_by_prefix_from_all_nodes(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    for number in 0..210 {
        here.named::<Value<u64>>(&format!("many/{number:03}")).create(number).unwrap();
    }
    here.named::<Words<u64>>("few").create(3).unwrap();
    let mut there = nodes(1);
    let names: Vec<_> = there.names("many/").unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, (0..210).map(|number| format!("many/{number:03}")).collect::<Vec<_>>());
    assert_eq!(there.names("many/1").unwrap().len(), 100);
    assert_eq!(there.names("").unwrap().len(), 211);
    assert_eq!(there.names("no").unwrap(), []);
    for info in there.names("").unwrap() {
        there.remove_name(&info.name).unwrap();
    }
    assert_eq!(here.names("").unwrap(), []);
}

pub(crate) fn a_name_is_not_removed_while_somebody_is_inside_its_lock(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    for home in 0..3 {
        let name = &*names_at(&here, home, "inside");
        let locked = here.named::<Locked<u64>>(name).create(1).unwrap();
        let guard = locked.write(&mut here).unwrap();
        std::thread::scope(|scope| {
            let remover = scope.spawn(move || nodes(2).remove_name(name));
            std::thread::sleep(Duration::from_millis(30));
            assert!(!remover.is_finished(), "it waits");
            // Others make and find names meanwhile.
            let mut other = nodes(1);
            let beside = &*names_at(&other, home, "beside");
            other.named::<Value<u64>>(beside).create(2).unwrap();
            other.remove_name(beside).unwrap();
            drop(guard);
            remover.join().unwrap().unwrap();
        });
        assert!(locked.write(&mut here).is_err());
    }
}

pub(crate) fn fencing_numbers_grow_with_every_write_grant(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let mut last = 0;
    for _ in 0..3 {
        let locked = here.named::<Locked<u64>>("fenced").open_or(|| 0).unwrap();
        let same = there.named::<Locked<u64>>("fenced").open().unwrap();
        for _ in 0..4 {
            let mut grows = |fence: u64| {
                assert!(fence > last, "{fence} after {last}");
                last = fence;
            };
            grows(locked.write(&mut here).unwrap().fence());
            grows(locked.write(&mut here).unwrap().fence());
            grows(same.write(&mut there).unwrap().fence());
            drop(same.read(&mut there).unwrap());
        }
        here.remove_name("fenced").unwrap();
    }
}

pub(crate) fn what_is_made_anew_under_a_name_is_not_what_was_opened_before(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    for home in 0..3 {
        let (lock, value) = (&*names_at(&here, home, "lock"), &*names_at(&here, home, "value"));
        let old_lock = here.named::<Locked<u64>>(lock).create(1).unwrap();
        let old_value = here.named::<Value<u64>>(value).create(1).unwrap();
        drop(old_lock.write(&mut here).unwrap());
        assert_eq!(
            there.named::<Locked<u64>>(lock).anew(|| 9).unwrap().addr(),
            old_lock.addr(),
            "it is there"
        );
        let making = here.name_info(lock).unwrap().making;
        for name in [lock, value] {
            there.remove_name(name).unwrap();
        }
        let new_lock = there.named::<Locked<u64>>(lock).create(2).unwrap();
        let new_value = there.named::<Value<u64>>(value).create(2).unwrap();
        assert!(here.name_info(lock).unwrap().making > making);
        // The memory may be the same.
        let locked = old_lock.write(&mut here).map(drop).unwrap_err();
        assert!(matches!(locked.failure(), Some(Error::Lost { .. } | Error::Unallocated { .. })), "{locked}");
        let found = old_value.get(&mut here).unwrap_err();
        assert!(matches!(found, Error::Lost { .. } | Error::Unallocated { .. }), "{found}");
        assert!(old_value.set(&mut here, &5).is_err());
        assert_eq!(*new_lock.read(&mut there).unwrap(), 2);
        assert_eq!(new_value.get(&mut there), Ok(2));
        for name in [lock, value] {
            there.remove_name(name).unwrap();
        }
    }
}

/// What a name's closure is for.
pub(crate) fn nothing_is_made_where_something_is(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let named = |handle: &mut NodeHandle| handle.named::<Value<u64>>("once").open_or(|| 1).map(drop);
    named(&mut here).unwrap();
    let once: Named<'_, Value<u64>> = here.named("once");
    once.open_or(|| panic!("it is there")).unwrap();
    here.remove_name("once").unwrap();
}

/// The tests of a kind of rack.
macro_rules! everywhere {
    ($nodes:ident) => {
        crate::names_everywhere::everywhere! { $nodes:
            what_one_program_makes_others_find_by_name_until_it_is_removed
            of_all_who_make_one_name_at_once_one_does
            what_is_asked_for_otherwise_is_refused_with_both
            names_are_listed_by_prefix_from_all_nodes
            a_name_is_not_removed_while_somebody_is_inside_its_lock
            fencing_numbers_grow_with_every_write_grant
            what_is_made_anew_under_a_name_is_not_what_was_opened_before
            nothing_is_made_where_something_is
            it_is_seen_who_holds_a_named_lock_and_who_waits_and_how_long_that_took
        }
    };
    ($nodes:ident: $($body:ident)*) => {
        $(
            #[test]
            fn $body() {
                $nodes(crate::names_everywhere::$body);
            }
        )*
    };
}
pub(crate) use everywhere;
