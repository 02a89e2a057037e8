//! The checker against histories that nobody thought of.
//!
//! Each test runs a range of seeds. A failure prints the seed and the command that replays it alone.

mod brute_force;
mod large_histories;
mod real_register;
mod simulated;
mod small_histories;

use random::Dice;

/// Runs a scenario for each seed, or only for the seed in the environment variable `CHECK_SEED`.
fn for_seeds(name: &str, seeds: u64, mut scenario: impl FnMut(&mut Dice)) {
    let only = std::env::var("CHECK_SEED").ok().map(|seed| seed.parse().expect("CHECK_SEED is a number"));
    for seed in only.map_or(0..seeds, |seed: u64| seed..seed + 1) {
        let failed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scenario(&mut Dice::new(seed))))
                .is_err();
        assert!(!failed, "replay: CHECK_SEED={seed} cargo test -p rackmem-check randomized::{name}");
    }
}
