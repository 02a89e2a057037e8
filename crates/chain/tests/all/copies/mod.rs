//! All orders of a few operations on copies, with deaths of memories at any moment, connections that break, and a client that dies.
//!
//! What must always hold: whatever happens, what has been read or was put is there at the end, also when one more memory dies; nobody
//! waits for ever.

mod search;
mod stories;

use std::time::Instant;

use search::{Ends, Scenario, explore};
use wire::{AllRules, Rules, Without};

use crate::table::ROWS;
use chain::client::Request::{Delete, Get, Put};

const NONE: Scenario = Scenario { copies: 2, scripts: &[], deaths: 1, breaks: 0, clients_die: 0, walks: 0 };

const SCENARIOS: &[(&str, Scenario)] = &[
    ("two put", Scenario { scripts: &[&[Put(8)], &[Put(8)]], breaks: 1, ..NONE }),
    ("one puts, one reads", Scenario { scripts: &[&[Put(8)], &[Get, Get]], breaks: 1, ..NONE }),
    ("two put and read", Scenario { scripts: &[&[Put(8), Get], &[Put(8), Get]], ..NONE }),
    ("one puts, one deletes", Scenario { scripts: &[&[Put(8)], &[Delete]], walks: 1, ..NONE }),
    ("two put, one dies", Scenario { scripts: &[&[Put(8)], &[Put(8)]], clients_die: 1, ..NONE }),
    (
        "one puts, one deletes, one dies",
        Scenario { scripts: &[&[Put(8)], &[Delete]], clients_die: 1, ..NONE },
    ),
    (
        "two put into three copies",
        Scenario { copies: 3, scripts: &[&[Put(8)], &[Put(8)]], deaths: 2, ..NONE },
    ),
];

/// With `RACKMEM_LARGE`.
const LARGE: &[(&str, Scenario)] = &[
    (
        "one deletes, puts and reads",
        Scenario { scripts: &[&[Delete, Put(8), Get], &[Get]], walks: 1, ..NONE },
    ),
    ("two put, one reads", Scenario { scripts: &[&[Put(8)], &[Put(8)], &[Get]], ..NONE }),
    (
        "one puts into three copies, one reads",
        Scenario { copies: 3, scripts: &[&[Put(8)], &[Get, Get]], deaths: 2, breaks: 1, ..NONE },
    ),
];

#[test]
fn whatever_happens_nothing_is_lost() {
    let large: &[_] = if std::env::var_os("RACKMEM_LARGE").is_some() { LARGE } else { &[] };
    for (name, scenario) in SCENARIOS.iter().chain(large) {
        let began = Instant::now();
        match explore(AllRules, scenario) {
            Ok(Ends { states, ends }) => {
                assert!(states > 1000 && ends > 10, "{name}: {states} states, {ends} ends");
                println!("{name}: {states} states, {ends} ends, {:.1} s", began.elapsed().as_secs_f64());
            }
            Err(why) => panic!("{name}: {why}"),
        }
    }
}

fn caught<R: Rules>(rules: R) -> Option<(&'static str, String)> {
    SCENARIOS.iter().find_map(|(name, scenario)| {
        let run = std::panic::catch_unwind(|| explore(rules, scenario).err());
        run.unwrap_or_else(|_| Some("it panics".into())).map(|why| (*name, why))
    })
}

#[test]
fn rules_of_copies_are_missed_at_once() {
    let mut found = Vec::new();
    // The others are not about copies, or take a slot's quarantine.
    for row in ROWS.iter().filter(|row| row.orders) {
        if let Some((scenario, why)) = caught(Without(row.rule)) {
            let why: String = why.lines().next().unwrap_or_default().chars().take(150).collect();
            println!("{:?}: {scenario}: {why}", row.rule);
            found.push(row.rule);
        }
    }
    crate::table::assert_caught(|row| row.orders, &found);
}
