//! What a run gave.
//!
//! What must always hold: everything here was counted between the end of the warm-up and the end of the run, in
//! virtual time.

use serde::{Deserialize, Serialize};

/// What a run gave. Shares are of the measured time; those of a kind of processor are of the busiest one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Operations of the application.
    pub operations: u64,
    /// The time that they took.
    pub seconds: f64,
    /// Microseconds that half of the operations were not slower than.
    pub median: f64,
    /// And 99 in 100.
    pub slow: f64,
    /// Operations that needed nobody but the thread itself.
    pub hits: u64,
    /// Messages that nodes sent and received over the network.
    pub packets: u64,
    /// Messages that home agents sent and received.
    pub home_packets: u64,
    /// Bytes above Ethernet.
    pub bytes: u64,
    /// Requests that were refused and tried again.
    pub refused: u64,
    /// Evictions.
    pub evictions: u64,
    /// Directory entries in the switch at the end.
    pub switch_entries: u64,
    /// The busiest background threads, by number: 0 is the cache agent and 1 the home agent in FlowCC.
    pub agents: Vec<f64>,
    /// The busiest application thread, by what it did for messages.
    pub threads: f64,
    /// The busiest link to the switch.
    pub uplinks: f64,
    /// The busiest link from it.
    pub downlinks: f64,
    /// Events of the simulation.
    pub events: u64,
    /// Microseconds that the longest operation took, or has taken so far if it was not over at the end.
    pub longest: f64,
    /// Operations of the thread that did the fewest, as a share of an equal share.
    pub least: f64,
    /// Nanoseconds of an operation on average by cause, where the load asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budget: Vec<(String, f64)>,
    /// What was counted besides, by name, where the load asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<(String, u64)>,
    /// Where requests landed, where the load asks for it: which request, and the byte of the memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<(u64, u64)>,
    /// Throughput over time, where the load asks for it: seconds, operations per second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<(f64, f64)>,
    /// Moments on that curve, in seconds, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<(String, f64)>,
    /// Round trips of operations and shares of what may bound them, by name, where the load asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trips: Vec<(String, f64)>,
}

impl Measured {
    /// Millions of operations in a second.
    pub fn mops(&self) -> f64 {
        self.operations as f64 / self.seconds / 1e6
    }

    /// So many of these for an operation.
    pub fn per_operation(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }

    /// The busiest background thread of this number.
    pub fn agent(&self, number: usize) -> f64 {
        self.agents.get(number).copied().unwrap_or(0.0)
    }

    /// The time of an operation on average that has this cause, in nanoseconds.
    pub fn cause(&self, name: &str) -> f64 {
        self.budget.iter().find(|(this, _)| this == name).map_or(0.0, |(_, time)| *time)
    }

    /// Round trips, or a share, by this name.
    pub fn trip(&self, name: &str) -> f64 {
        self.trips.iter().find(|(this, _)| this == name).map_or(0.0, |(_, number)| *number)
    }

    /// What was counted under this name.
    pub fn count(&self, name: &str) -> u64 {
        self.counted.iter().find(|(this, _)| this == name).map_or(0, |(_, count)| *count)
    }

    /// When this happened.
    pub fn moment(&self, name: &str) -> Option<f64> {
        self.moments.iter().find(|(this, _)| this == name).map(|(_, at)| *at)
    }
}
