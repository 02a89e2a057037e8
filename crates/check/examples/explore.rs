//! scratch
use check::explore::*;
fn main() {
    let want = std::env::args().nth(1).unwrap_or_default();
    let most = std::env::args().nth(2).map_or(20_000_000, |n| n.parse().unwrap());
    for scope in SCOPES.iter().filter(|s| want.is_empty() || s.name == want) {
        let t = std::time::Instant::now();
        let e = explore(scope, most, |_| {});
        let s = t.elapsed().as_secs_f64();
        println!(
            "{:20} states {} steps {} depth {} rest {} locals {:?} MB {} time {:.2} rate {:.0}",
            e.scope,
            e.states,
            e.steps,
            e.depth,
            e.at_rest,
            e.local_states,
            e.bytes >> 20,
            s,
            e.states as f64 / s
        );
        match e.verdict {
            Verdict::Broken(c) => {
                println!("BROKEN {}", c.what);
                for l in c.trace {
                    println!("   {l}");
                }
            }
            v => println!("  {v:?}"),
        }
    }
}
