//! Blocks, locks, words, objects, chains and the allocator in one rack, where the switch and nodes stop and start again.
//!
//! A failure prints the command that repeats just that run; `RACKMEM_TRACE=1` before it prints all that happens.

use check::joint::{Plan, Rack, Report};
use check::rack::{Effort, Fault};
use wire::AllRules;

#[test]
fn every_run_is_right_while_allocations_of_all_disciplines_come_and_go() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("RACKMEM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RACKMEM_SEEDS").unwrap_or(60),
    };
    let effort = Effort::steps(number("RACKMEM_STEPS").unwrap_or(6000) as usize);
    let trace = std::env::var_os("RACKMEM_TRACE").is_some();
    let (mut sum, mut wrong) = (Report::default(), Vec::new());
    for seed in seeds {
        let plan = Plan::with_restarts(seed).traced(trace);
        match Rack::run_seed(AllRules, plan, seed, effort) {
            Ok(report) => sum.add(&report),
            Err(why) => wrong.push(format!("seed {seed}: {}", why.what())),
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nreplay: RACKMEM_SEED=N cargo test -p rackmem-check joint_under_faults",
        wrong.join("\n")
    );
    if std::env::var_os("RACKMEM_SEED").is_none() {
        // The runs must have been worth it.
        let (blocks, locks, words) = (&sum.seen.blocks, &sum.seen.locks, &sum.seen.words);
        assert!(sum.faults[Fault::NodeDied] > 0 && sum.faults[Fault::SwitchStopped] > 0, "{sum:?}");
        assert!(blocks.accesses > 5_000 && locks.entered > 5_000, "{sum:?}");
        assert!(locks.freed > 100 && locks.reclaimed > 0 && blocks.frees > 100, "{sum:?}");
        assert!(words.changes > 2_000 && words.reads > 1_000 && words.writes > 1_000, "{sum:?}");
        assert!(words.begun > 100 && words.ended > 100 && words.freed > 100, "{sum:?}");
        assert!(
            words.refused > 0 && words.torn > 0 && words.indeterminate > 0 && words.broken > 0,
            "{sum:?}"
        );
        let chains = &sum.seen.chains;
        assert!(chains.puts > 200 && chains.gets > 200 && chains.deletes > 20, "{sum:?}");
        assert!(chains.stores > 30 && chains.ended > 10 && chains.lost > 5 && chains.freed > 50, "{sum:?}");
        assert!(chains.steered > 20 && chains.moved > 5 && chains.reads > 0 && chains.anew > 20, "{sum:?}");
        assert!(chains.indeterminate > 10 && chains.swept > 0 && chains.preloaded > 0, "{sum:?}");
        let refused = wire::Refusal::ALL.iter().position(|why| *why == wire::Refusal::WrongDiscipline);
        assert!(blocks.coverage.refusals[refused.expect("it is one")] > 0, "{sum:?}");
    }
}
