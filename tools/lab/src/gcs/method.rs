//! The constants of all figures, as they stand in the code.

use sim::hardware::Testbed;
use sim::locks::{Config, Costs};
use sim::rack::Setup;

use crate::concordia::method::listed;
use crate::output::document::Constant;
use crate::systems::locks::{QUERY, REFUSED};

/// All constants that results depend on.
pub fn constants() -> Vec<Constant> {
    let config = Config::new(9);
    let nanos = |time: wire::Nanos| format!("{} ns", time.0);
    let own = [
        Constant::new(
            "a query of the store, without its lock and value",
            nanos(QUERY),
            "`lab::systems::locks`",
        ),
        Constant::new(
            "hand-over between processors of a node",
            nanos(Setup::new(9).hand_over),
            "`sim::rack::Setup`",
        ),
        Constant::new(
            "MIND: a refused fault waits, on average",
            format!("{} ns, growing to {} ns", REFUSED.first.0 / 2, REFUSED.most.0 / 2),
            "`lab::systems::locks`, after MIND's source",
        ),
        Constant::new("cache of a blade", format!("{} MiB", config.cache >> 20), "`sim::locks::Config`"),
        Constant::new("entries of the switch", config.switch_entries, "`sim::locks::Config`"),
    ];
    let parts = [
        ("", "`sim::hardware::Testbed`", format!("{:#?}", Testbed::CONCORDIA)),
        ("locks: ", "`sim::locks::Costs`", format!("{:#?}", Costs::PAPER)),
        ("MIND: ", "`sim::coherence::Costs`", format!("{:#?}", sim::coherence::Costs::MIND)),
    ];
    own.into_iter().chain(listed(&parts)).collect()
}
