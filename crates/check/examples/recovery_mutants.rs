use check::rack::{Plan, Rack};
use wire::rules::without::*;
use wire::Rules;
fn scan<R: Rules>(name: &str, _: R) {
    for seed in 0..1500 {
        let outcome = std::panic::catch_unwind(|| Rack::<R>::with_rules(Plan::with_restarts(seed), seed).run(8000));
        let why = match outcome { Ok(Ok(_)) => continue, Ok(Err(w)) => w, Err(p) => format!("PANIC {}", p.downcast_ref::<String>().cloned().unwrap_or_default()) };
        println!("{name:32} seed {seed:4}: {}", why.lines().next().unwrap_or("").chars().take(150).collect::<String>());
        return;
    }
    println!("{name:32} SURVIVES");
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    macro_rules! all { ($($r:ident)*) => { $(scan(stringify!($r), $r);)* } }
    all!(HOME_AWAITS_REPORTS COPIES_ARE_REPORTED CUT_EVICTION_IS_UNDONE RETAINED_ANSWERS_ARE_REPORTED ONLY_CUT_EVENTS_COUNT
        OLD_SAVINGS_ARE_DROPPED SAVINGS_ARE_KEPT STALE_HOME_IS_MENDED HELD_LOCKS_ARE_REPORTED DEAD_WRITERS_LOSE
        ENDED_COPIES_ARE_DROPPED ORPHANED_COPIES_ARE_DROPPED KNOWLEDGE_IS_KEPT EPOCHS_ARE_FENCED LIVES_ARE_FENCED);
}
