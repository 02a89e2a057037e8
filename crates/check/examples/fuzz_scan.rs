use check::rack::{Plan, Rack, Restarts};
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let mode = a[2];
    let steps = a[3] as usize;
    let mut bad = 0;
    std::panic::set_hook(Box::new(move |i| {
        if a[1] - a[0] == 1 {
            eprintln!("{i} {}", std::backtrace::Backtrace::force_capture())
        }
    }));
    let a: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (mut acc, mut epochs, mut lost, mut salv) = (0, 0, 0, 0);
    for seed in a[0]..a[1] {
        let mut plan = match mode {
            0 => Plan::from_seed(seed),
            _ => Plan::with_restarts(seed),
        };
        if mode == 1 {
            plan.restarts = Restarts { switch: 12, ..Restarts::default() };
            plan.faults.partition = 0;
        }
        plan.trace = std::env::var_os("T").is_some();
        let out = std::panic::catch_unwind(|| {
            let mut r = Rack::<wire::Faithful>::with_rules(plan, seed);
            let x = r.run_mut(steps);
            (x, r.report().clone())
        });
        let why = match out {
            Ok((Ok(()), r)) => {
                acc += r.accesses;
                epochs += r.stops.epochs;
                lost += r.protocol.lost;
                salv += r.protocol.salvaged;
                continue;
            }
            Ok((Err(e), _)) => e,
            Err(p) => format!(
                "PANIC {}",
                p.downcast_ref::<String>()
                    .cloned()
                    .or(p.downcast_ref::<&str>().map(|s| s.to_string()))
                    .unwrap_or_default()
            ),
        };
        bad += 1;
        if bad <= 25 {
            println!(
                "{seed}: {}",
                why.chars()
                    .take(if a[1] - a[0] == 1 { 20000 } else { 200 })
                    .collect::<String>()
                    .replace("\n", " ")
            );
        }
    }
    println!("bad {bad} accesses {acc} epochs {epochs} lost {lost} salvaged {salv}");
}
