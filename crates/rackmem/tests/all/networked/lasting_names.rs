//! Names in racks with copies: they outlive the nodes that keep them, and so does what they name, if it has copies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use check::AtEnd;
use rackmem::{
    Chains, ChainsConfig, Config, Error, GlobalAddr, Locked, NameError, Nanos, NodeHandle, NodeId, Region,
    Value, Words,
};

use super::rig::{Processes, until};
use crate::names_everywhere::{Nodes, everywhere, names_at};

/// What the first block of names begins with.
const MARK: u64 = u64::from_le_bytes(*b"names\0\0\x02");

fn shape(nodes: usize, peek: bool) -> Config {
    Config { nodes, copies: 2, memory: 8 << 20, cache: 1 << 20, peek, ..Config::default() }
}

fn rack(nodes: usize, faulty: bool) -> Processes {
    Processes::start_with(faulty, shape(nodes, faulty))
}

/// One whose nodes do not die.
fn patient(faulty: bool) -> Processes {
    Processes::start_patient(faulty, shape(3, faulty), Nanos::from_millis(10_000))
}

fn processes(body: fn(Nodes<'_>)) {
    let rack = patient(false);
    body(&|node| rack.nodes[usize::from(node)].here());
}

everywhere!(processes);

mod faulty {
    use super::*;

    fn processes(body: fn(Nodes<'_>)) {
        let rack = patient(true);
        body(&|node| rack.nodes[usize::from(node)].here());
    }

    everywhere!(processes);
}

fn found(handle: &mut NodeHandle, name: &str) -> Result<u64, NameError> {
    Ok(handle.named::<Value<u64>>(name).open()?.get(handle)?)
}

fn lost<T>(name: &str, home: u16) -> Result<T, NameError> {
    Err(NameError::Lost { name: name.to_owned(), home: NodeId(home) })
}

#[test]
fn a_name_outlives_its_node_and_what_it_names_does_with_copies() {
    let mut rack = rack(3, false);
    let mut here = rack.nodes[0].here();
    let [kept, lock, words, gone] = ["kept", "lock", "words", "gone"].map(|stem| names_at(&here, 2, stem));
    let value = here.named::<Value<u64>>(&kept).with_copies().create(7).unwrap();
    let region = names_at(&here, 2, "region");
    here.named::<Region>(&region).with_copies().create(9000).unwrap();
    here.named::<Value<u64>>(&gone).with_copies().create(1).unwrap();
    let last = here.name_info(&gone).unwrap().making;
    here.remove_name(&gone).unwrap();
    assert_eq!(value.addr().home(), NodeId(3 + 2));
    let old_lock = here.named::<Locked<u64>>(&lock).create(1).unwrap();
    let fence = old_lock.write(&mut here).unwrap().fence();
    here.named::<Words<u64>>(&words).create(4).unwrap();
    value.set(&mut here, &8).unwrap();
    rack.cut_off(2);
    let mut there = rack.nodes[1].here();
    assert_eq!(found(&mut there, &kept), Ok(8));
    assert_eq!(there.named::<Region>(&region).open().unwrap().len(), 9000);
    assert_eq!(
        found(&mut there, &gone),
        Err(NameError::NotFound { name: gone.clone() }),
        "not lost: removed"
    );
    // What had no copies died with the node, and its name says so until it is made anew: on the node that keeps the name now.
    assert_eq!(there.named::<Words<u64>>(&words).open().map(drop), lost(&words, 2));
    assert_eq!(there.named::<Words<u64>>(&words).open_or(|| 4).map(drop), lost(&words, 2));
    assert_eq!(there.remove_name(&words), lost(&words, 2));
    assert_eq!(there.named::<Words<u64>>(&words).anew(|| 4).unwrap().addr().home(), NodeId(0));
    assert!(there.name_info(&words).unwrap().making > last, "no number is given twice");
    let new_lock = there.named::<Locked<u64>>(&lock).anew(|| 2).unwrap();
    assert!(new_lock.write(&mut there).unwrap().fence() > fence, "through making anew");
    assert!(old_lock.read(&mut here).is_err(), "what was opened before stays lost");
    // The node comes back, and serves its memory again when the next epoch begins.
    rack.rejoin(2);
    until(|| rack.has_all_copies().then_some(()));
    for dies in [1, 0] {
        rack.cut_off(dies);
        let mut back = rack.nodes[2].here();
        assert_eq!(found(&mut back, &kept), Ok(8));
        let names =
            until(|| Some(back.names("").ok()?.len()).filter(|_| !rack.nodes[2].is_up(NodeId(dies as u16))));
        // Words and the lock were made anew on node 0.
        assert_eq!(names, if dies == 1 { 4 } else { 2 });
        rack.rejoin(dies);
        until(|| rack.has_all_copies().then_some(()));
    }
    // Who had allocated it is dead: the memory is not used again, and the name is free.
    here = rack.nodes[0].here();
    here.remove_name(&kept).unwrap();
    assert_eq!(found(&mut here, &kept), Err(NameError::NotFound { name: kept.clone() }));
    here.named::<Value<u64>>(&kept).with_copies().create(9).unwrap();
    assert_eq!(found(&mut rack.nodes[2].here(), &kept), Ok(9));
}

/// A thing without copies is in the memory of a node that dies and comes back: the name does not lead to what is there then.
#[test]
fn what_died_is_not_taken_for_what_is_there_now() {
    let mut rack = rack(3, false);
    let mut here = rack.nodes[0].here();
    let [words, lock] = ["words", "lock"].map(|stem| names_at(&here, 2, stem));
    let old = here.named::<Words<u64>>(&words).create(4).unwrap();
    here.named::<Locked<u64>>(&lock).create(4).unwrap();
    rack.cut_off(2);
    until(|| (!rack.nodes[0].is_up(NodeId(2))).then_some(()));
    rack.rejoin(2);
    let mut back = rack.nodes[2].here();
    let others = back.words::<u64>(4, NodeId(2)).unwrap();
    assert_eq!(others.addr(), old.addr(), "the same place");
    others.store(&mut back, 0, 77).unwrap();
    for handle in [&mut here, &mut back] {
        assert_eq!(handle.named::<Words<u64>>(&words).open().map(drop), lost(&words, 2));
        assert_eq!(handle.named::<Locked<u64>>(&lock).open().map(drop), lost(&lock, 2));
    }
    let new = here.named::<Words<u64>>(&words).anew(|| 4).unwrap();
    new.store(&mut here, 0, 5).unwrap();
    assert_eq!((others.load(&mut back, 0), new.load(&mut back, 0)), (Ok(77), Ok(5)), "nobody has freed it");
}

#[test]
fn a_memory_that_has_lost_all_copies_has_lost_its_names() {
    let mut rack = rack(4, false);
    let mut here = rack.nodes[3].here();
    let [name, other] = [0, 1].map(|home| names_at(&here, home, "kept"));
    for name in [&name, &other] {
        here.named::<Value<u64>>(name).with_copies().create(1).unwrap();
    }
    let before = here.name_info(&name).unwrap().making;
    // Both at once: nobody gets a copy in between.
    rack.cut_off(0);
    rack.cut_off(1);
    until(|| (found(&mut here, &name) == lost(&name, 0)).then_some(()));
    assert_eq!(found(&mut here, &other), Ok(1), "one of its nodes is left");
    let new = here.named::<Value<u64>>(&name).with_copies().anew(|| 2).unwrap();
    assert_eq!((new.get(&mut here), found(&mut here, &name)), (Ok(2), Ok(2)));
    assert!(here.name_info(&name).unwrap().making > before);
}

fn get(store: &mut Chains, node: &mut NodeHandle) -> Vec<u8> {
    let mut found = Vec::new();
    assert!(store.get(node, 1, &mut found).unwrap(), "it is there");
    found
}

/// What a dead node had of a store is at another one.
fn until_copied(rack: &Processes) {
    until(|| {
        let mut all = rack.nodes.iter().map(|node| node.chain_counts());
        all.any(|counts| counts.recopied > 0 && counts.missing == 0).then_some(())
    });
}

/// A store lives on at other nodes, also when the node that named it is another one by now, with another store in the same place.
#[test]
fn a_store_with_a_name_and_copies_outlives_its_nodes_and_is_not_taken_for_another_one() {
    let mut rack = rack(4, false);
    let mut here = rack.nodes[0].here();
    let name = names_at(&here, 2, "store");
    let config = ChainsConfig::at(NodeId(0), 64 << 10);
    let mut store = here.named::<Chains>(&name).with_copies().create(config.clone()).unwrap();
    store.put(&mut here, 1, b"one").unwrap();
    let info = here.name_info(&name).unwrap();
    assert_eq!((info.copies, info.addr, info.addr.home()), (2, store.addr(), NodeId(2)));
    rack.cut_off(2);
    let mut there = rack.nodes[1].here();
    let mut same = there.named::<Chains>(&name).open().unwrap();
    assert_eq!(get(&mut same, &mut there), b"one");
    until_copied(&rack);
    rack.rejoin(2);
    let mut back = rack.nodes[2].here();
    let mut other = back.chains(&ChainsConfig::at(NodeId(2), 64 << 10)).unwrap();
    assert_eq!(other.addr(), info.addr, "the same place");
    other.put(&mut back, 1, b"other").unwrap();
    for node in &rack.nodes {
        let mut here = node.here();
        let mut same = here.named::<Chains>(&name).open_or(|| config.clone()).unwrap();
        assert_eq!(get(&mut same, &mut here), b"one");
        let mut at_its_address = here.chains_at(info.addr).unwrap();
        assert_eq!(get(&mut at_its_address, &mut here), b"other");
    }
    back.remove_name(&name).unwrap();
    assert!(matches!(there.named::<Chains>(&name).open(), Err(NameError::NotFound { .. })));
    assert_eq!(same.get(&mut there, 1, &mut Vec::new()), Err(Error::Unallocated { addr: info.addr }));
    assert_eq!(get(&mut other, &mut back), b"other");
}

#[test]
fn a_store_that_has_lost_all_copies_has_lost_its_name_until_it_is_made_anew() {
    let mut rack = rack(4, false);
    let mut here = rack.nodes[3].here();
    // The name itself is at nodes 2 and 3.
    let name = names_at(&here, 2, "store");
    here.keep_copies(true).unwrap();
    let config = ChainsConfig::at(NodeId(0), 64 << 10);
    let mut store = here.named::<Chains>(&name).create(config.clone()).unwrap();
    assert_eq!(here.name_info(&name).unwrap().copies, 2);
    // By who keeps the name now: at nodes 3 and 0.
    rack.cut_off(2);
    here.remove_name(&name).unwrap();
    drop(store);
    store = here.named::<Chains>(&name).create(config.clone()).unwrap();
    assert_eq!(store.addr().home(), NodeId(3));
    store.put(&mut here, 1, b"one").unwrap();
    rack.rejoin(2);
    until(|| rack.has_all_copies().then_some(()));
    rack.cut_off(3);
    rack.cut_off(0);
    let mut there = rack.nodes[2].here();
    until(|| {
        there.named::<Chains>(&name).open().err().filter(|why| Err(why.clone()) == lost::<()>(&name, 2))
    });
    assert_eq!(there.named::<Chains>(&name).open_or(|| config.clone()).map(drop), lost(&name, 2));
    let mut anew = there.named::<Chains>(&name).with_copies().anew(|| config).unwrap();
    anew.put(&mut there, 1, b"two").unwrap();
    assert_eq!(get(&mut there.named::<Chains>(&name).open().unwrap(), &mut there), b"two");
    // A store has all its copies from the beginning.
    rack.cut_off(1);
    until(|| (!rack.nodes[2].is_up(NodeId(1))).then_some(()));
    there.remove_name(&name).unwrap();
    let alone = there.named::<Chains>(&name).with_copies().create(ChainsConfig::at(NodeId(0), 64 << 10));
    let why = Error::TooManyCopies { copies: 2, memories: 1 };
    assert_eq!(alone.map(drop), Err(NameError::Failed(why)));
}

/// Programs can write where names are kept, if they make an address of nothing: that is said, and nobody falls over it.
#[test]
fn what_somebody_has_written_over_names_is_said_to_be_broken() {
    let rack = rack(3, false);
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[1].here());
    let name = names_at(&here, 1, "name");
    let root = GlobalAddr::new(NodeId(3 + 1), 0);
    there.write_word(root, 7).unwrap();
    let broken = |addr| Some(NameError::Failed(Error::Broken { addr }));
    assert_eq!(found(&mut here, &name).err(), broken(root));
    // A page that is followed by itself.
    let page = there.alloc_with_copies(16 << 10, NodeId(1)).unwrap();
    there.write(root, &[MARK, page.bits()].map(u64::to_le_bytes).concat()).unwrap();
    there.write_word(page, page.bits()).unwrap();
    assert_eq!(found(&mut here, &name).err(), broken(page));
    // And one with nonsense.
    there.write_word(page, 0).unwrap();
    there.write_word(page + 512, 9).unwrap();
    assert_eq!(found(&mut here, &name).err(), broken(page + 512));
    there.write_word(page + 512, 0).unwrap();
    assert_eq!(found(&mut here, &name), Err(NameError::NotFound { name: name.clone() }));
}

/// Node 2 keeps a name, and cannot reach node 0, which would keep it after it: it tells nobody that it has made one.
#[test]
fn who_is_told_of_a_name_can_rely_on_it() {
    let mut rack = rack(3, false);
    let mut here = rack.nodes[1].here();
    let [first, second] = ["first", "second"].map(|stem| names_at(&here, 2, stem));
    here.named::<Value<u64>>(&first).with_copies().create(1).unwrap();
    rack.mute(2, 0);
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| here.named::<Value<u64>>(&second).with_copies().create(2).map(drop));
        std::thread::sleep(Duration::from_millis(100));
        rack.cut_off(2);
        maker.join().unwrap().unwrap();
    });
    let mut there = rack.nodes[0].here();
    assert_eq!((found(&mut there, &first), found(&mut there, &second)), (Ok(1), Ok(2)));
}

/// Node 2 comes back, gets its memory again, and serves it from the next epoch on.
fn comes_back(rack: &mut Processes) {
    rack.rejoin(2);
    until(|| rack.has_copy_at(2).then_some(()));
    rack.restart_switch();
    until(|| rack.has_copy_at(2).then_some(()));
}

/// Whoever keeps a name dies at some step of making it, or of taking it away: it is there and whole, or not at all.
#[test]
fn a_name_is_whole_or_not_there_whenever_its_keeper_dies() {
    let every = std::env::var("RACKMEM_EVERY").map_or(17, |every| every.parse().expect("a number of steps"));
    let mut rack = rack(3, false);
    // Node 2 keeps the names, and node 0 does after it: what has been made there is node 0's to give back.
    type Block = Value<[u64; 400]>;
    let mut here = rack.nodes[1].here();
    rack.cut_off(2);
    let olds: Vec<_> = (0..40).map(|number| names_at(&here, 2, &format!("old/{number}"))).collect();
    for old in &olds {
        here.named::<Block>(old).with_copies().create([7; 400]).unwrap();
    }
    comes_back(&mut rack);
    let kept = here.named::<Value<u64>>(&names_at(&here, 2, "any")).with_copies().create(1).unwrap();
    assert_eq!(kept.addr().home(), NodeId(3 + 2));
    let mut deaths = 0;
    for (round, steps) in (1..).step_by(every).enumerate() {
        let name = names_at(&here, 2, &format!("round/{round}"));
        rack.cut_off_after(2, steps);
        let made = here.named::<Value<u64>>(&name).with_copies().create(steps);
        if made.is_ok() {
            assert_eq!(found(&mut here, &name), Ok(steps), "{steps}");
        }
        let removed = here.remove_name(&name);
        let old = &olds[round % olds.len()];
        let old_removed = here.remove_name(old);
        let is_over = !rack.is_cut_off(2);
        rack.cut_off(2);
        // In another process, which has read nothing before.
        let mut there = rack.nodes[0].here();
        let last = found(&mut there, &name);
        let gone = Err(NameError::NotFound { name: name.clone() });
        assert!(
            last == gone || removed.is_err() && last == Ok(steps),
            "{steps}: {made:?}, {removed:?}, {last:?}"
        );
        let last = there.named::<Block>(old).open().map(|block| block.get(&mut there));
        match last {
            Ok(last) => {
                assert!(old_removed.is_err() && last == Ok([7; 400]), "{steps}: {old_removed:?}, {last:?}")
            }
            Err(why) => assert!(matches!(why, NameError::NotFound { .. }), "{steps}: {why}"),
        }
        assert_eq!(kept.get(&mut there), Ok(1));
        deaths += 1;
        if is_over {
            break;
        }
        comes_back(&mut rack);
    }
    println!("{deaths} deaths, {every} steps apart");
    assert!(deaths > 3, "of {deaths}");
}

/// Names are made, opened and removed on all nodes while one after the other dies: what was said to be done is done.
fn names_through_deaths(faulty: bool) {
    const NODES: usize = 4;
    let mut rack = rack(NODES, faulty);
    // Node 3 works on, and sees what becomes of the names of all.
    let (worker, done) = (rack.nodes[3].clone(), AtomicBool::new(false));
    let (made, removed) = std::thread::scope(|scope| {
        let done_at_end = AtEnd(&done);
        let working = scope.spawn(|| {
            let (mut here, mut made, mut removed) = (worker.here(), Vec::new(), Vec::new());
            for number in 0_u64.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let name = format!("name/{number}");
                match here.named::<Value<u64>>(&name).with_copies().create(number) {
                    Ok(_) => made.push(number),
                    // Whether its node had made it before it died is not known to who asked again.
                    Err(NameError::Exists { .. } | NameError::Failed(Error::NodeDown { .. })) => continue,
                    Err(why) => panic!("{name}: {why}"),
                }
                if number % 3 == 0 {
                    match here.remove_name(&name) {
                        Ok(()) | Err(NameError::NotFound { .. }) => removed.push(number),
                        Err(why) => panic!("{name}: {why}"),
                    }
                }
            }
            (made, removed)
        });
        for (dies, leaves) in [(0, false), (2, true), (0, true), (1, false)] {
            if leaves {
                assert!(rack.nodes[dies].leave(Duration::from_secs(30)));
            } else {
                rack.cut_off(dies);
            }
            until(|| (!worker.is_up(NodeId(dies as u16))).then_some(()));
            rack.rejoin(dies);
            until(|| rack.has_all_copies().then_some(()));
        }
        drop(done_at_end);
        working.join().unwrap()
    });
    println!("{} names made, {} of them removed", made.len(), removed.len());
    assert!(made.len() > 4 && removed.len() > 1, "it goes on");
    let mut others = rack.nodes[1].here();
    let listed: Vec<_> = others.names("name/").unwrap().into_iter().map(|info| info.name).collect();
    for number in made {
        let name = format!("name/{number}");
        let is_there = !removed.contains(&number);
        assert_eq!(listed.contains(&name), is_there, "{name}");
        let expected = if is_there { Ok(number) } else { Err(NameError::NotFound { name: name.clone() }) };
        assert_eq!(found(&mut others, &name), expected);
    }
}

#[test]
fn what_was_said_of_names_stays_true_while_one_node_after_the_other_dies() {
    names_through_deaths(false);
}

#[test]
fn what_was_said_of_names_stays_true_on_a_bad_network() {
    names_through_deaths(true);
}

#[test]
fn names_in_a_memory_that_is_full_are_refused_until_there_is_room() {
    let rack = rack(3, false);
    // What a node gives back it gives out again itself.
    let mut here = rack.nodes[1].here();
    let name = names_at(&here, 1, "name");
    let full = |why: Option<NameError>| matches!(why, Some(NameError::Failed(Error::OutOfMemory { .. })));
    let mut taken = Vec::new();
    for bytes in [1 << 20, 64 << 10, 4096] {
        taken.extend(std::iter::from_fn(|| here.alloc_with_copies(bytes, NodeId(1)).ok()));
    }
    assert!(full(here.named::<Words<u64>>(&name).create(1).err()), "there is no room for the name");
    here.free(taken.remove(0)).unwrap();
    let large = here.named::<Region>(&name).with_copies().create(2 << 20);
    assert!(full(large.err()), "there is, and none for what it would name");
    here.named::<Region>(&name).with_copies().create(64 << 10).unwrap();
    here.remove_name(&name).unwrap();
}

#[test]
fn what_cannot_have_copies_is_refused_with_them() {
    let rack = rack(3, false);
    let mut here = rack.nodes[0].here();
    let why = here.named::<Words<u64>>("it").with_copies().create(1).map(drop).unwrap_err();
    assert!(matches!(&why, NameError::NoCopies { name, .. } if name == "it"), "{why:?}");
    assert!(why.to_string().contains("only coherent memory, locks and stores have some"), "{why}");
    // A handle that keeps copies does so where that can be.
    here.keep_copies(true).unwrap();
    here.named::<Words<u64>>("words").create(1).unwrap();
    assert!(here.named::<Value<u64>>("value").create(1).unwrap().addr().home() >= NodeId(3));
    here.keep_copies(false).unwrap();
    assert!(here.named::<Value<u64>>("plain").create(1).unwrap().addr().home() < NodeId(3));
    let without = Processes::start(2);
    let refused = without.nodes[0].here().named::<Value<u64>>("it").with_copies().create(1).err();
    assert_eq!(refused, Some(NameError::Failed(Error::NoCopies)));
}
