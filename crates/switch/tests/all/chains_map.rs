//! The resource use of steering, beside FlowCC and the lock directory.

use random::Random;
use switch::chains::{Binding, Steering, SteeringConfig};
use switch::coherence;
use switch::locks::{self, beside};
use switch::pipeline::StageMap;
use wire::{LockEnd, SwitchEpoch};

fn steering() -> StageMap {
    Steering::new(&SteeringConfig::default()).unwrap().stage_map()
}

/// With bound queue pairs, whose numbers have records of their own.
fn bound() -> StageMap {
    let binding = Binding { writes: true, ..Binding::ONE };
    Steering::new(&SteeringConfig { binding, ..SteeringConfig::default() }).unwrap().stage_map()
}

#[test]
fn a_key_that_is_held_takes_16_bytes() {
    let map = steering();
    let arrays = || map.stages.iter().flat_map(|stage| &stage.arrays);
    let bytes = |name: &str| -> usize {
        arrays().filter(|array| array.name.starts_with(name)).map(|array| array.bytes).sum()
    };
    let keys = SteeringConfig::default().keys;
    assert!(keys >= 100_000);
    // A few cells are there so that the ways are alike, and that places are counted from 1.
    assert!(bytes("KEY") + bytes("TAIL") <= 16 * (keys + 4), "{} bytes", bytes("KEY") + bytes("TAIL"));
    println!("{map}");
}

fn alus(map: &StageMap) -> Vec<usize> {
    map.stages.iter().map(|stage| stage.arrays.len()).collect()
}

#[test]
fn all_three_programs_fit_one_chip() {
    let epoch = SwitchEpoch(0);
    for queue in [false, true] {
        let usual = coherence::SwitchConfig::for_nodes(64);
        let config = coherence::SwitchConfig { queue, peeks: queue, ..usual };
        let coherence = coherence::Switch::new(&config).unwrap().stage_map();
        let config = locks::DirectoryConfig { at: LockEnd::Switch, nodes: 64, entries: 64 << 10, epoch };
        let locks = locks::Directory::new(&config).unwrap().stage_map();
        let two = beside(&coherence, &locks).unwrap();
        let all = beside(&two, &steering()).unwrap();
        let with_bound = beside(&two, &bound()).unwrap();
        assert_eq!(alus(&with_bound), alus(&all), "binding takes no register array of its own");
        println!("{with_bound}");
        assert!(all.stages.iter().all(|stage| stage.arrays.len() <= all.budget.stateful_alus_per_stage));
        assert!(beside(&all, &steering()).is_err(), "a second one does not fit");
        println!("{all}");
    }
}

#[test]
fn nine_tenths_of_the_places_are_taken_when_keys_make_room_for_each_other() {
    let mut steering = Steering::new(&SteeringConfig { keys: 10_000, ..SteeringConfig::default() }).unwrap();
    let mut keys = Random::new(7);
    let held = (0..10_000).filter(|_| steering.admit(keys.bits())).count();
    assert!(held >= 9_000, "{held}");
    assert_eq!(steering.held(), held);
    steering.invariants();
}
