//! Programs of different languages share what has names: one in C, attached to a daemon on its host, and this one, which is a node.

use std::process::{Command, Stdio};

use rackmem::{Chains, ChainsConfig, Locked, Words};

use super::rig::{Rig, SWITCH, Shape, host};
use crate::compiler::{C, compiled, library, source};

const TIMES: u64 = 300;

#[test]
fn programs_in_c_and_in_rust_share_a_lock_a_counter_and_a_table_by_name() {
    let library = library("librackmem_c.a");
    let Some(program) = compiled(&source("shared.c"), "shared", C, &[library.to_str().unwrap()]) else {
        return;
    };
    let Some(mut rig) = Rig::new("languages", &Shape::usual()) else { return };
    rig.start(SWITCH, &["switch"]);
    [0, 1].into_iter().for_each(|node| rig.start_node(node));
    let rack = rig.join(2);
    rig.until_up(host(0));

    let mut command = Command::new(program);
    command.args(["rack.toml", "0", &TIMES.to_string()]).stdout(Stdio::piped());
    let other = rig.spawn(host(0), command);
    let here = &mut rack.here();
    let tally = here.named::<Locked<[u64; 2]>>("tally").tag("tally", 1).open_or(|| [100, 100]).unwrap();
    let hits = here.named::<Words<u64>>("hits").open_or(|| 2).unwrap();
    let table = ChainsConfig { bytes: 1 << 16, ..ChainsConfig::at(rackmem::NodeId(0), 0) };
    let mut table = here.named::<Chains>("table").open_or(|| table).unwrap();
    let mut fence = 0;
    for time in 0..TIMES {
        let mut guard = tally.write(here).unwrap();
        let before = guard[0];
        assert_eq!(guard[1], before, "both are changed together");
        *guard = [before + 1, before + 1];
        assert!(guard.fence() > fence);
        fence = guard.fence();
        drop(guard);
        hits.add(here, 0, 1).unwrap();
        table.put(here, 2 * (time % 50), format!("rust {time}").as_bytes()).unwrap();
    }
    here.flush().unwrap();
    hits.fetch_add(here, 1, 1).unwrap();
    let ended = other.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stdout == b"ok\n", "it has said why on standard error");
    assert_eq!(*tally.read(here).unwrap(), [100 + 2 * TIMES; 2]);
    assert_eq!(hits.load(here, 0), Ok(2 * TIMES));
    let mut value = Vec::new();
    for key in 0..50 {
        assert!(table.get(here, 2 * key + 1, &mut value).unwrap());
        assert_eq!(value, format!("c {}", TIMES - 50 + key).as_bytes());
    }
}
