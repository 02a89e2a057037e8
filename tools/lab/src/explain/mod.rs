//! Scenarios on a tiny simulated rack, drawn as message sequences.
//!
//! What runs is what runs everywhere: the real nodes, the real switch, and the simulated rack's timing. A scenario
//! prepares a state, lets a few threads do something, perhaps breaks something, and everything that passes between
//! the places is written down.
//!
//! | file | holds |
//! | --- | --- |
//! | `scenarios` | what can be shown |
//! | `stage`, `locks` | the rack of a scenario: of blocks, and of locks |
//! | `paper` | the pencil |
//! | `chart` | what was written down |
//! | `terminal`, `svg` | the drawing |
//! | `superstep` | a timeline: one superstep of PageRank |

mod chart;
mod locks;
mod paper;
mod scenarios;
mod stage;
pub mod superstep;
pub mod svg;
pub mod terminal;

pub use chart::{Chart, Step, What};
pub use scenarios::{SCENARIOS, Scenario};

/// Plays a scenario.
pub fn play(scenario: &Scenario) -> Chart {
    let mut stage = stage::Stage::new(scenario);
    (scenario.play)(&mut stage);
    stage.end(scenario.title)
}

/// The scenario of this name.
pub fn find(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}
