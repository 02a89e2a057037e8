//! What FlowCC takes of the published chip.

use crate::rig;

use rig::{Rig, block, nodes, request, requester, unlock};
use switch::coherence::{Switch, SwitchConfig};
use switch::pipeline::StageMap;
use wire::GlobalStatus::Shared;
use wire::{Packet, PacketKind};

fn map() -> StageMap {
    Switch::new(&SwitchConfig::for_nodes(64)).unwrap().stage_map()
}

#[test]
fn coherence_has_arrays_in_10_of_12_stages_as_in_the_paper() {
    let map = map();
    assert_eq!((map.totals.stages, map.totals.stages_with_arrays), (12, 10));
    let names = |stage: usize| map.stages[stage].arrays.iter().map(|a| a.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names(0), ["LAST-UNLOCK"]);
    assert_eq!(names(1), ["TAG way 0"]);
    for way in 0..6 {
        let here = ["LOCK", "G-STATUS", "COPYSET"].map(|array| format!("{array} way {way}"));
        let mut want = here.to_vec();
        want.push(format!("TAG way {}", way + 1));
        let mut have = names(way + 2);
        have.sort_unstable();
        want.sort_unstable();
        assert_eq!(have, want);
    }
    assert_eq!(names(8), ["LOCK way 6", "G-STATUS way 6", "COPYSET way 6"]);
    assert_eq!(names(9), ["SCOREBOARD"]);
}

#[test]
fn the_directory_of_the_paper_takes_about_7_mb_and_fits() {
    let map = map();
    let per_set = 8 + 2 + 1 + 8;
    assert_eq!(map.totals.register_bytes, 7 * 53_572 * per_set + 64 * 64 * 2 * (8 + 2));
    assert!((7_000_000..7_300_000).contains(&map.totals.register_bytes));
    for stage in &map.stages {
        assert!(stage.sram_blocks <= map.budget.sram_blocks_per_stage);
        assert!(stage.arrays.len() <= map.budget.stateful_alus_per_stage);
        assert!(stage.arrays.iter().all(|array| array.programs.len() <= map.budget.programs_per_array));
    }
}

#[test]
fn the_memory_is_really_there() {
    let switch = Switch::new(&SwitchConfig::for_nodes(64)).unwrap();
    assert_eq!(switch.capacity(), 7 * 53_572);
    assert!(switch.capacity() >= SwitchConfig::DEFAULT_ENTRIES);
}

#[test]
fn the_text_names_every_array_table_and_packet() {
    let map = map();
    let text = map.to_string();
    for stage in &map.stages {
        for name in stage.arrays.iter().map(|a| &a.name).chain(stage.tables.iter().map(|t| &t.name)) {
            assert!(text.contains(name.as_str()), "{name}");
        }
    }
    for packet in &map.passes {
        assert!(text.contains(&packet.packet), "{}", packet.packet);
    }
    assert!(text.contains(&map.totals.register_bytes.to_string()));
}

#[test]
fn packets_take_the_passes_that_the_map_says() {
    let map = map();
    let says = |start: &str| map.passes.iter().find(|p| p.packet.starts_with(start)).unwrap().passes;
    let mut rig = Rig::one_set();
    let mut passes = |packet: &Packet| {
        let before = rig.switch.counters().passes;
        rig.send(packet);
        u32::try_from(rig.switch.counters().passes - before).unwrap()
    };
    let add = request(PacketKind::AddToSwitch, block(), requester(2, 63), 1);
    assert_eq!(passes(&add), says("ADD-TO-SWITCH with room"));
    assert_eq!(passes(&add), says("ADD-TO-SWITCH without room, or of a tag that is present"));
    assert_eq!(passes(&unlock(&add, Shared, nodes([]))), says("UNLOCK"));
    assert_eq!(passes(&unlock(&add, Shared, nodes([]))), says("UNLOCK repeated"));
    for kind in [PacketKind::ReadMiss, PacketKind::EvictShared, PacketKind::LockRead, PacketKind::Purge] {
        assert_eq!(passes(&request(kind, block(), requester(1, kind as u16), 1)), says("request"));
    }
}
