//! scratch
use check::explore::*;
use wire::Rules;

fn scan<R: Rules>(name: &str, most: usize, scopes: &[&str]) {
    for name_of in scopes {
        let scope = Scope::named(name_of).expect(name_of);
        let t = std::time::Instant::now();
        let e = explore_with_rules::<R>(scope, most, |_| {});
        match e.verdict {
            Verdict::Broken(c) => {
                println!("{name:30} {name_of:20} states {:8} way {:3} {:.1}s {}: {}", e.states, c.trace.len(), t.elapsed().as_secs_f64(), if c.stuck {"stuck"} else {"wrong"}, c.what.lines().next().unwrap().chars().take(140).collect::<String>());
                return;
            }
            v => println!("{name:30} {name_of:20} states {:8} steps {:8} {v:?} {:.1}s", e.states, e.steps, t.elapsed().as_secs_f64()),
        }
    }
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    use wire::rules::without as w;
    let most = std::env::args().nth(1).map_or(3_000_000, |n| n.parse().unwrap());
    let only = std::env::args().nth(2).unwrap_or_default();
    macro_rules! go { ($($t:ident: $($s:literal)*;)*) => { $( if only.is_empty() || only == stringify!($t) { scan::<w::$t>(stringify!($t), most, &[$($s),*]); } )* } }
    go! {
        LAST_UNLOCK_FILTERS_UNLOCKS: "switch-duplicate" "home-duplicate" "add-duplicate";
        UNLOCK_OF_NOTHING_IS_SHORT: "switch-duplicate" "home-duplicate" "add-duplicate";
        HOME_MARK_STICKS: "add-duplicate" "home-duplicate";
        WRITE_BACK_ONCE: "home-turns" "switch-turns" "home-evict-duplicate";
        AGENT_IGNORES_OLD: "switch-turns" "home-turns";
        AGENT_CHECKS_STATE: "switch-turns" "switch-3-readers" "home-3-readers";
        REPEATED_READ_IS_CLOSED: "switch-3-readers" "home-3-readers";
        AGENT_CLOSES: "switch-3-readers" "home-3-readers";
        FORWARDER_SAYS_REPEATED: "switch-3-readers" "home-3-readers";
        CLOSED_TAKES_NO_WRITE_BACK: "switch-3-readers" "home-3-readers" "switch-turns";
    }
}
