//! Which mutants do random runs catch? A first look, for the table of mutants.
use check::rack::{Plan, Rack};
use wire::Rules;
fn plan(seed: u64) -> Plan {
    if seed % 2 == 0 { Plan::with_restarts(seed) } else { Plan::from_seed(seed) }
}
fn scan<R: Rules>(name: &str, _: R) {
    for seed in 0..600 {
        let outcome = std::panic::catch_unwind(|| Rack::<R>::with_rules(plan(seed), seed).run(4000));
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
