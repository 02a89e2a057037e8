//! scratch
use check::explore::*;
use wire::Rules;
fn scan<R: Rules>(name: &str, _: R, most: usize, only: &str) {
    if !only.is_empty() && name != only {
        return;
    }
    let mut caught = Vec::new();
    for scope in SCOPES {
        let e = explore_with_rules::<R>(scope, most, |_| {});
        if let Verdict::Broken(c) = e.verdict {
            caught.push((e.states, scope.name, c));
            if e.states < 3000 {
                break;
            }
        }
    }
    caught.sort_by_key(|c| c.0);
    match caught.first() {
        Some((states, scope, c)) => {
            println!(
                "{name:30} {scope:20} states {states:8} way {:3} {}: {}",
                c.trace.len(),
                if c.stuck { "stuck" } else { "wrong" },
                c.what.lines().next().unwrap().chars().take(110).collect::<String>()
            );
            if !only.is_empty() {
                for l in &c.trace {
                    println!("    {l}");
                }
            }
        }
        None => println!("{name:30} SURVIVES"),
    }
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let most = std::env::args().nth(1).map_or(100_000, |n| n.parse().unwrap());
    let only = std::env::args().nth(2).unwrap_or_default();
    macro_rules! run {
        ($n:expr, $t:expr) => {
            scan($n, $t, most, &only)
        };
    }
    wire::for_each_mutant!(run);
}
