//! Names between processes, also over a network that loses, doubles and reorders; and nodes that die.

use rackmem::{Config, Error, Locked, NameError, Nanos, NodeHandle, NodeId, Value, Words};

use crate::names_everywhere::{Nodes, everywhere, names_at};
use crate::networked::rig::{Processes, until};

fn processes(body: fn(Nodes<'_>)) {
    let rack = Processes::start(3);
    body(&|node| rack.nodes[usize::from(node)].here());
}

everywhere!(processes);

mod faulty {
    use super::*;

    fn processes(body: fn(Nodes<'_>)) {
        let rack = Processes::start_on(3, true);
        body(&|node| rack.nodes[usize::from(node)].here());
    }

    everywhere!(processes);
}

/// Opens a name until its home is taken for dead.
fn until_lost(handle: &mut NodeHandle, name: &str, home: u16) {
    until(|| match handle.named::<Value<u64>>(name).open() {
        Ok(_) => None,
        Err(why) => {
            assert_eq!(why, NameError::Lost { name: name.to_owned(), home: NodeId(home) });
            Some(())
        }
    });
}

#[test]
fn what_a_dead_node_kept_is_lost_until_it_is_made_anew_by_one() {
    let mut rack = Processes::start(3);
    let mut here = rack.nodes[0].here();
    let [lock, value, words, never] =
        ["lock", "value", "words", "never"].map(|stem| names_at(&here, 2, stem));
    let old_lock = here.named::<Locked<u64>>(&lock).create(1).unwrap();
    let old_value = here.named::<Value<u64>>(&value).create(1).unwrap();
    let old_words = here.named::<Words<u64>>(&words).create(4).unwrap();
    let fence = old_lock.write(&mut here).unwrap().fence();
    let lost = |name: &str| Some(NameError::Lost { name: name.to_owned(), home: NodeId(2) });
    rack.cut_off(2);
    until_lost(&mut here, &value, 2);
    assert_eq!(here.named::<Value<u64>>(&value).open_or(|| 7).err(), lost(&value));
    assert_eq!(here.named::<Value<u64>>(&value).anew(|| 7).err(), lost(&value), "there is nobody to make it");

    rack.rejoin(2);
    let mut back = rack.nodes[2].here();
    // Also a name that never was: nobody knows.
    for name in [&lock, &value, &words, &never] {
        for handle in [&mut here, &mut back] {
            assert_eq!(handle.named::<Value<u64>>(name).open().err(), lost(name));
            assert_eq!(handle.named::<Value<u64>>(name).open_or(|| 7).err(), lost(name));
            assert_eq!(handle.named::<Value<u64>>(name).create(7).err(), lost(name));
            assert_eq!(handle.remove_name(name).err(), lost(name));
        }
    }
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6_u64)
            .map(|mark| {
                let (rack, name) = (&rack.nodes[mark as usize % 3], &*lock);
                scope.spawn(move || {
                    let mut handle = rack.here();
                    let locked = handle.named::<Locked<u64>>(name).anew(|| 100 + mark).unwrap();
                    (locked.addr(), *locked.read(&mut handle).unwrap())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().all(|one| *one == made[0]) && made[0].1 >= 100, "one winner: {made:?}");
    let new_lock = here.named::<Locked<u64>>(&lock).open().unwrap();
    assert!(new_lock.write(&mut here).unwrap().fence() > fence, "through making anew");
    let new_value = here.named::<Value<u64>>(&value).anew(|| 2).unwrap();
    let new_words = here.named::<Words<u64>>(&words).anew(|| 4).unwrap();
    // The memory is the same, and what was opened before stays lost.
    let locked = old_lock.read(&mut here).map(drop).unwrap_err();
    assert!(matches!(locked.failure(), Some(Error::Lost { .. } | Error::Unallocated { .. })), "{locked}");
    for handle in [&mut here, &mut back] {
        assert!(matches!(old_value.get(handle), Err(Error::Lost { .. } | Error::Unallocated { .. })));
    }
    let gone = Error::NodeDown { addr: old_words.addr() };
    assert_eq!(old_words.load(&mut here, 0), Err(gone));
    assert_eq!((new_value.get(&mut back), new_words.load(&mut here, 0)), (Ok(2), Ok(0)));
    here.remove_name(&value).unwrap();
    let name = value.clone();
    assert_eq!(
        here.named::<Value<u64>>(&value).open().err(),
        Some(NameError::NotFound { name }),
        "known again"
    );
}

#[test]
fn a_lock_whose_holder_died_is_made_anew_under_its_name() {
    let mut rack = Processes::start(3);
    let mut here = rack.nodes[0].here();
    let name = names_at(&here, 0, "held");
    let old = here.named::<Locked<u64>>(&name).create(1).unwrap();
    let fence = {
        let mut there = rack.nodes[2].here();
        let same = there.named::<Locked<u64>>(&name).open().unwrap();
        let mut guard = same.write(&mut there).unwrap();
        *guard = 2;
        guard.fence()
    };
    rack.cut_off(2);
    until(|| match old.read(&mut here) {
        Ok(_) => None,
        Err(why) => {
            assert_eq!(why.failure(), Some(Error::Lost { addr: old.addr() }));
            Some(())
        }
    });
    let making = here.name_info(&name).unwrap().making;
    let new = here.named::<Locked<u64>>(&name).anew(|| 3).unwrap();
    let again = rack.nodes[1].here().named::<Locked<u64>>(&name).anew(|| 4).unwrap();
    assert!(here.name_info(&name).unwrap().making > making);
    assert_eq!(*again.read(&mut rack.nodes[1].here()).unwrap(), 3, "one winner");
    assert!(new.write(&mut here).unwrap().fence() > fence);
    assert!(old.read(&mut here).is_err(), "what was opened before stays lost");
}

#[test]
fn what_a_dead_node_changed_last_is_lost_and_no_other_name_of_its_keeper() {
    let mut rack = Processes::start(3);
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[2].here());
    let [theirs, before, after] = ["theirs", "before", "after"].map(|stem| names_at(&here, 0, stem));
    here.named::<Value<u64>>(&before).create(1).unwrap();
    let value = there.named::<Value<u64>>(&theirs).create(1).unwrap();
    value.set(&mut there, &2).unwrap();
    rack.cut_off(2);
    until(|| matches!(value.get(&mut here), Err(Error::Lost { .. })).then_some(()));
    assert_eq!(here.named::<Value<u64>>(&before).open().unwrap().get(&mut here), Ok(1));
    assert_eq!(here.named::<Value<u64>>(&after).create(3).unwrap().get(&mut here), Ok(3));
    here.remove_name(&theirs).unwrap();
    assert_eq!(here.named::<Value<u64>>(&theirs).create(4).unwrap().get(&mut here), Ok(4));
}

#[test]
fn what_a_dead_node_made_at_others_is_there() {
    let mut rack = Processes::start(3);
    let mut maker = rack.nodes[2].here();
    let [lock, value] = ["lock", "value"].map(|stem| names_at(&maker, 1, stem));
    maker.named::<Locked<u64>>(&lock).create(5).unwrap();
    maker.named::<Value<u64>>(&value).create(6).unwrap();
    drop(maker);
    rack.cut_off(2);
    let mut here = rack.nodes[0].here();
    let elsewhere = names_at(&here, 2, "any");
    until_lost(&mut here, &elsewhere, 2);
    let locked = here.named::<Locked<u64>>(&lock).open().unwrap();
    assert_eq!(*locked.read(&mut here).unwrap(), 5);
    assert_eq!(here.named::<Value<u64>>(&value).open().unwrap().get(&mut here), Ok(6));
    // And can be freed: it is not in a dead allocator's hands.
    for name in [&lock, &value] {
        here.remove_name(name).unwrap();
    }
}

#[test]
fn whoever_asks_a_node_that_dies_is_told_so_however_long_it_takes_until_that_is_known() {
    let config = Config { nodes: 2, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
    let mut rack = Processes::start_patient(false, config, Nanos::from_millis(4_000));
    let mut here = rack.nodes[0].here();
    let name = names_at(&here, 1, "there");
    rack.cut_off(1);
    let asked = here.named::<Value<u64>>(&name).create(1).map(drop);
    assert_eq!(asked, Err(NameError::Lost { name, home: NodeId(1) }));
}
