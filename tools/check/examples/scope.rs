use check::explore::joint::Joint;
use check::explore::{Protocol, Verdict};
use wire::{AllRules, Rule, Without};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let scope = Joint::scope(&args[1]).expect("scope");
    let most = args[2].parse().unwrap();
    let start = std::time::Instant::now();
    let mut last = 0;
    let progress = |p: check::explore::Progress| {
        if p.states > last + 300_000 {
            last = p.states;
            eprintln!("{p:?}");
        }
    };
    let rule = args
        .get(3)
        .map(|name| Rule::COPIES.iter().find(|r| format!("{r:?}") == *name).copied().expect("rule"));
    let e = match rule {
        Some(r) => Joint::explore_with_rules(Without(r), scope, most, progress),
        None => Joint::explore_with_rules(AllRules, scope, most, progress),
    };
    println!(
        "{} {rule:?}: {} states {} steps, depth {}, at rest {}, locals {:?} {:?}",
        e.scope,
        e.states,
        e.steps,
        e.depth,
        e.at_rest,
        e.local_states,
        start.elapsed()
    );
    match e.verdict {
        Verdict::Broken(c) => println!("BROKEN {}\n  {}", c.what, c.trace.join("\n  ")),
        v => println!("{v:?}"),
    }
}
