//! What a user can get wrong gets an error that says what, where, and what to do.

use rackmem::{
    BlockSize, Config, ConfigError, Directory, Discipline, Error, GlobalAddr, LockMode, MOST_NODES,
    NodeHandle, NodeId, Rack,
};

fn config() -> Config {
    Config { nodes: 2, cache: 1 << 20, memory: 4 << 20, ..Config::default() }
}

fn nodes() -> (NodeHandle, NodeHandle) {
    let rack = Rack::embedded(config()).unwrap();
    (rack.node(NodeId(0)), rack.node(NodeId(1)))
}

/// The message must name the thing to change or to use.
fn says(error: &impl ToString, words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}

#[test]
fn impossible_racks_are_refused_with_the_setting_to_change() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Rack::embedded(config).unwrap_err()
    };
    for (error, words) in [
        (refused(|c| c.nodes = 0), ["0 nodes", "`nodes`"]),
        (refused(|c| c.nodes = MOST_NODES + 1), ["65 nodes", "`nodes`"]),
        (refused(|c| c.cache = 8 * 4096 - 1), ["32767 bytes", "`cache`"]),
        (refused(|c| c.memory = 4096), ["4096 bytes", "`memory`"]),
        (refused(|c| c.switch_entries = 0), ["0 switch entries", "`switch_entries`"]),
        (refused(|c| c.switch_entries = 10_000_000), ["10000000", "`switch_entries`"]),
        (refused(|c| c.epoch = rackmem::Nanos::ZERO), ["no length", "`epoch`"]),
    ] {
        says(&error, &words);
    }
    assert_eq!(refused(|c| c.nodes = 0), ConfigError::Nodes { asked: 0 });
}

#[test]
fn the_smallest_and_the_largest_racks_work() {
    let one_bucket = Config { nodes: 1, cache: 8 * 4096, memory: 2 * 4096, ..Config::default() };
    let mut node = Rack::embedded(one_bucket).unwrap().node(NodeId(0));
    let addr = node.alloc(4096, NodeId(0), Discipline::Coherent).unwrap();
    node.write_word(addr, 7).unwrap();
    assert_eq!(node.read_word(addr), Ok(7));

    let block_size = BlockSize::new(64).unwrap();
    let many = Config { nodes: MOST_NODES, block_size, cache: 64 * 64, memory: 1 << 16, ..Config::default() };
    let rack = Rack::embedded(many).unwrap();
    let addr = rack.node(NodeId(63)).alloc(8, NodeId(62), Discipline::Coherent).unwrap();
    for id in 0..64 {
        rack.node(NodeId(id)).update(addr, 8, |word| word.set_word(0, word.word(0) + 1)).unwrap();
    }
    assert_eq!(rack.node(NodeId(0)).read_word(addr), Ok(64));
}

#[test]
fn an_address_outside_any_allocation_is_an_error() {
    let (mut node, _) = nodes();
    let addr = node.alloc(16, NodeId(1), Discipline::Coherent).unwrap();
    let beyond = addr + (1 << 20);
    assert_eq!(node.read_word(beyond), Err(Error::Unallocated { addr: beyond }));
    assert_eq!(node.write_word(beyond, 1), Err(Error::Unallocated { addr: beyond }));
    says(&node.read_word(beyond).unwrap_err(), &["no allocation", "alloc"]);
}

#[test]
fn a_freed_block_is_an_error_on_every_node_even_where_it_was_cached() {
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        let rack = Rack::embedded(Config { directory, ..config() }).unwrap();
        let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
        let addr = here.alloc(4096, NodeId(1), Discipline::Coherent).unwrap();
        here.write_word(addr, 1).unwrap();
        assert_eq!(there.read_word(addr), Ok(1));
        there.free(addr).unwrap();
        for node in [&mut here, &mut there] {
            assert_eq!(node.read_word(addr), Err(Error::Unallocated { addr }), "{directory:?}");
            assert_eq!(node.write_word(addr, 2), Err(Error::Unallocated { addr }), "{directory:?}");
            assert_eq!(node.free(addr), Err(Error::NotAnAllocation { addr }), "{directory:?}");
        }
        rack.check_invariants();
    }
}

#[test]
fn memory_that_is_allocated_again_reads_as_zeroes() {
    let (mut here, mut there) = nodes();
    for len in [16, 100, 4096, 3 * 4096] {
        let first = here.alloc(len, NodeId(1), Discipline::Coherent).unwrap();
        let keep = here.alloc(len, NodeId(1), Discipline::Coherent).unwrap();
        there.write(first, &vec![0xff; len as usize]).unwrap();
        there.free(first).unwrap();
        let again = here.alloc(len, NodeId(1), Discipline::Coherent).unwrap();
        let mut bytes = vec![1; len as usize];
        there.read(again, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0), "{len} bytes");
        here.free(again).unwrap();
        here.free(keep).unwrap();
    }
}

#[test]
fn a_whole_memory_can_be_allocated_freed_and_allocated_again() {
    let (mut node, _) = nodes();
    for _ in 0..3 {
        let mut held = Vec::new();
        let error = loop {
            match node.alloc(64 << 10, NodeId(1), Discipline::Coherent) {
                Ok(addr) => held.push(addr),
                Err(error) => break error,
            }
        };
        assert_eq!(error, Error::OutOfMemory { len: 64 << 10, home: 1 });
        says(&error, &["node 1", "free"]);
        assert!(held.len() >= 60, "{} of 64 pieces fit", held.len());
        for addr in held {
            node.free(addr).unwrap();
        }
    }
}

#[test]
fn only_what_alloc_returned_can_be_freed() {
    let (mut node, mut other) = nodes();
    let addr = node.alloc(64, NodeId(0), Discipline::Coherent).unwrap();
    for wrong in [addr + 1, addr + 16, addr + 4096, GlobalAddr::NULL] {
        assert_eq!(other.free(wrong), Err(Error::NotAnAllocation { addr: wrong }));
    }
    says(&other.free(addr + 16).unwrap_err(), &["alloc", "once"]);
    other.free(addr).unwrap();
    assert_eq!(node.free(addr), Err(Error::NotAnAllocation { addr }));
}

#[test]
fn the_wrong_discipline_is_an_error_that_names_the_right_one() {
    let (mut node, _) = nodes();
    let addr = node.alloc(64, NodeId(1), Discipline::LockOnly).unwrap();
    assert_eq!(node.read_word(addr), Err(Error::WrongDiscipline { addr, needs: Discipline::Coherent }));
    says(&node.write_word(addr, 1).unwrap_err(), &["Coherent"]);
    drop(node.lock_block(addr, LockMode::Write).unwrap());
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let (mut node, _) = nodes();
    for len in [0, 5 << 20] {
        let error = node.alloc(len, NodeId(0), Discipline::Coherent).unwrap_err();
        assert!(matches!(error, Error::BadSize { .. }), "{error}");
        says(&error, &["1 to"]);
    }
    let addr = node.alloc(8192, NodeId(0), Discipline::Coherent).unwrap();
    let crossing = addr + 4090;
    let error = node.update(crossing, 16, |_| ()).unwrap_err();
    assert_eq!(error, Error::CrossesBlocks { addr: crossing, len: 16, block: BlockSize::DEFAULT });
    assert_eq!(node.read_word(addr + 4), Err(Error::Unaligned { addr: addr + 4 }));
    let far = GlobalAddr::new(NodeId(0), 4 << 20);
    assert!(matches!(node.read(far, &mut [0; 8]), Err(Error::OutOfRange { .. })));
}

#[test]
fn a_node_that_the_rack_does_not_have_is_an_error() {
    let (mut node, _) = nodes();
    let addr = GlobalAddr::new(NodeId(9), 4096);
    for error in [
        node.read_word(addr).unwrap_err(),
        node.write(addr, &[1]).unwrap_err(),
        node.free(addr).unwrap_err(),
        node.alloc(8, NodeId(9), Discipline::Coherent).unwrap_err(),
        node.lock_block(addr, LockMode::Read).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NoSuchNode { nodes: 2, .. }), "{error}");
        says(&error, &["node 9", "0 to 1"]);
    }
}
