//! Which mutants do random runs catch? A first look, for the table of mutants.
use check::rack::{Faults, Plan, Rack, Random};
use node::Directory;
use wire::Rules;
fn plan(seed: u64) -> Plan {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut up_to = |most: usize| random.below(most + 1) as u32;
    let faults = Faults { lose: up_to(60), duplicate: up_to(80), reorder: up_to(600), delay: up_to(40) };
    let (nodes, threads) = (2 + up_to(2) as usize, 1 + up_to(2) as usize);
    Plan {
        nodes,
        threads,
        blocks: 1 + up_to(5) as usize,
        buckets: 1 + up_to(1) as usize,
        switch_entries: [7, 14, 70][up_to(2) as usize],
        directory: [Directory::Auto, Directory::Switch, Directory::Home][up_to(2) as usize],
        faults,
        queue: std::env::var_os("RACKMEM_QUEUE").is_some(),
        trace: false,
    }
}
fn scan<R: Rules>(name: &str, _: R) {
    for seed in 0..600 {
        let outcome = std::panic::catch_unwind(|| Rack::<R>::with_rules(plan(seed), seed).run(2000));
        let why = match outcome {
            Ok(Ok(_)) => continue,
            Ok(Err(w)) => w,
            Err(p) => format!("PANIC {}", p.downcast_ref::<String>().cloned().unwrap_or_default()),
        };
        println!(
            "{name:32} seed {seed:4}: {}",
            why.lines().next().unwrap_or("").chars().take(150).collect::<String>()
        );
        return;
    }
    println!("{name:32} SURVIVES");
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    macro_rules! run {
        ($n:expr, $t:expr) => {
            scan($n, $t)
        };
    }
    wire::for_each_mutant!(run);
}
