//! Racks of coherent blocks.

use check::explore::Reached;
use check::explore::coherence::FlowCC;

use crate::exhaustive::{Counts, holds, is_as_any};

const SCOPES: &[(&str, Counts)] = &[
    ("home", [10_962, 34_184, 3]),
    ("switch", [6575, 19_302, 3]),
    ("home-in-order", [21_158, 54_791, 3]),
    ("switch-in-order", [12_437, 32_919, 3]),
    ("home-loss", [13_453, 34_468, 9]),
    ("switch-loss", [10_164, 26_018, 9]),
    ("switch-duplicate", [22_979, 71_336, 6]),
    ("switch-timeout", [21_927, 68_044, 6]),
    ("locks", [14_244, 38_828, 2]),
    ("locks-loss", [2245, 4464, 2]),
    ("add", [12_697, 33_589, 17]),
    ("remove", [11_048, 31_444, 6]),
    ("queue", [7097, 19_926, 3]),
    ("queue-3-writers", [17_465, 45_975, 3]),
    ("queue-loss", [16_662, 42_002, 9]),
    ("queue-3-writers-loss", [73_482, 200_169, 6]),
    ("queue-duplicate", [35_689, 110_988, 6]),
    ("queue-late-write", [77_222, 226_426, 4]),
    ("queue-timeout", [34_921, 108_586, 6]),
    ("queue-remove", [31_071, 86_646, 6]),
    ("queue-evict", [119_054, 338_304, 9]),
    ("peek", [11_596, 32_515, 3]),
    ("peek-switch", [8011, 22_033, 3]),
    ("peek-switch-3", [52_437, 164_936, 12]),
    ("peek-loss", [103_412, 335_378, 6]),
    ("peek-switch-loss", [69_615, 223_449, 6]),
    ("peek-queue", [39_793, 112_283, 3]),
    ("add-persistent", [13_418, 36_008, 17]),
    ("home-evict", [62_788, 184_796, 9]),
    ("home-3-purge", [25_890, 85_486, 8]),
    ("home-purge-unused", [139, 268, 5]),
    ("switch-evict", [38_224, 108_105, 9]),
    ("switch-3-purge", [17_180, 56_349, 8]),
    ("switch-purge-unused", [80, 148, 5]),
];

#[test]
fn everything_holds_and_every_row_of_both_tables_is_reached() {
    for (row, in_switch, at_home) in holds::<FlowCC>(SCOPES).table() {
        assert!(in_switch || at_home, "{row} is reached nowhere");
        // Locks are kept by homes, and only the switch is asked to give an entry back.
        let only_one = row.contains("Lock") || row.contains("RemoveFromSwitch");
        assert!(only_one || in_switch && at_home, "{row}: in the switch {in_switch}, at a home {at_home}");
    }
}

#[test]
fn its_scopes_are_as_any() {
    is_as_any::<FlowCC>("switch");
}
