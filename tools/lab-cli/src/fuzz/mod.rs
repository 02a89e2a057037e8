//! `rackmem-lab fuzz`: a protocol under faults, one random run a seed.
//!
//! The runs are those of `check::rack`, of one world or another; here they are spread over threads, summed up and told. The sums
//! do not depend on the threads: a seed gives one run, and the seeds that failed are listed in order.

mod coherence;
mod failure;
mod joint;
mod locks;
mod report;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use check::rack::{Case, Effort, Failure, Knobs, Plan, Rack, Report, Sum, Verdict, World};

use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output::{print, print_json};
use cli::processes::rendezvous::random_bytes;
use cli::say;
use cli::ycsb::progress::Progress;
use report::Summary;
use wire::AllRules;

/// Counts, by name and group.
type Groups = Vec<(&'static str, Vec<(String, u64)>)>;

fn named(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// What is run: the random racks of a world.
trait Subject: 'static {
    /// What its machines send one another.
    type Message: Copy;
    /// What runs of it are like.
    type Plan: Knobs + Send;
    /// What a run did.
    type Seen: Sum + Send;
    /// The machines.
    type World: World<Self::Message, Message = Self::Message, Plan = Self::Plan, Seen = Self::Seen, Rules = AllRules>;

    /// What the run of a seed is like.
    fn plan(seed: u64) -> Plan<Self::Plan>;

    fn operations(seen: &Self::Seen) -> u64;

    fn groups(sum: &Self::Seen, fewest: u64) -> Groups;
}

/// How a run ended.
type Outcome<S> = Result<Report<<S as Subject>::Seen>, Failure>;

/// What the run of a seed is, as the command line has it.
fn case_of<S: Subject>(seed: u64, args: &Args) -> Result<Case<S::Plan>, String> {
    let effort = Effort { steps: args.steps.unwrap_or(Effort::FUZZ.steps), ..Effort::FUZZ };
    let mut case = Case { plan: S::plan(seed).traced(args.trace), stream: seed, effort };
    for (name, to) in &args.with {
        case.set(name, *to)?;
    }
    Ok(case)
}

/// Failures that are told in full; of the others, only the seeds.
const TOLD: usize = 5;

const EXAMPLES: &str = "\
Examples:
  rackmem-lab fuzz --seeds 0..10000        ten thousand runs
  rackmem-lab fuzz --seeds 17..18 --trace  one run, every delivery on standard error
  rackmem-lab fuzz --fresh 10000           ten thousand that nobody has run before
  rackmem-lab fuzz --locks --seeds 0..200  locks that carry their data
  rackmem-lab fuzz --seeds 17..18 --with nodes=2,lose=0
                                       a run with some of its numbers changed
  rackmem-lab fuzz --all --seeds 0..200    blocks, locks, words, objects, chains and the allocator in one rack

Every run has at least 2,000 operations and 20 faults. Exit codes: 1 a property did not hold, 3 a run was stuck,
4 a machine panicked.";

/// The flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The seeds: from A, up to but not including B
    #[arg(long, value_name = "A..B", default_value = "0..200", value_parser = seeds)]
    seeds: Range<u64>,
    /// So many seeds, from one on that the operating system draws
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = clap::value_parser!(u64).range(1..))]
    fresh: Option<u64>,
    /// Locks that carry their data, instead of coherent blocks
    #[arg(long, conflicts_with = "all")]
    locks: bool,
    /// Blocks, locks, words, objects and chains in one rack, at the same addresses
    #[arg(long)]
    all: bool,
    /// Steps that each run takes at least [default: 40000]
    #[arg(long)]
    steps: Option<usize>,
    /// Numbers of the runs that are not as the seed has them: nodes=2,lose=0. A wrong name says which there are
    #[arg(long, value_name = "NAME=N,...", value_delimiter = ',', value_parser = number)]
    with: Vec<(String, u64)>,
    /// Seconds that each failing run is made smaller for, before it is told; 0: it is told as it was
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    shrink: u64,
    /// Threads; by default one for each core
    #[arg(long)]
    jobs: Option<usize>,
    /// Print every delivery and every restart on standard error (one thread)
    #[arg(long)]
    trace: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not a range of seeds: write it as 0..1000");
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let range = number(first)?..number(end)?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

fn number(text: &str) -> Result<(String, u64), String> {
    let wrong = || format!("`{text}` is not a number of a run: write it as nodes=2");
    let (name, to) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), to.parse().map_err(|_| wrong())?))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let args = &Args { seeds: chosen(args)?, ..args.clone() };
    if args.all {
        runs::<joint::JointRuns>(args)
    } else if args.locks {
        runs::<locks::LockRuns>(args)
    } else {
        runs::<coherence::BlockRuns>(args)
    }
}

/// The seeds to run.
fn chosen(args: &Args) -> Result<Range<u64>, Fault> {
    let Some(count) = args.fresh else { return Ok(args.seeds.clone()) };
    // Short enough to be typed.
    let first = u64::from_le_bytes(random_bytes()?) >> 24;
    let seeds = first..first.saturating_add(count);
    say!("these runs again: {}", again(args, &seeds));
    Ok(seeds)
}

/// The command that runs some seeds in the same way.
fn again(args: &Args, seeds: &Range<u64>) -> String {
    let with: Vec<_> = args.with.iter().map(|(name, to)| format!("{name}={to}")).collect();
    let steps = args.steps.map(|steps| format!(" --steps {steps}")).unwrap_or_default();
    format!("{}{steps}", command(args, seeds, &with.join(",")))
}

fn command(args: &Args, seeds: &Range<u64>, with: &str) -> String {
    let which = match (args.all, args.locks) {
        (true, _) => " --all",
        (_, true) => " --locks",
        _ => "",
    };
    let with = if with.is_empty() { String::new() } else { format!(" --with {with}") };
    format!("rackmem-lab fuzz{which} --seeds {}..{}{with}", seeds.start, seeds.end)
}

fn runs<S: Subject>(args: &Args) -> Result<(), Fault> {
    // What is wrong with the numbers is wrong for every seed.
    case_of::<S>(args.seeds.start, args).map_err(|why| Fault::usage(format_args!("--with: {why}")))?;
    let interrupt = Interrupt::listen()?;
    if !args.trace {
        // What panicked is told with its seed.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let start = Instant::now();
    let total = args.seeds.end - args.seeds.start;
    let mut progress = Progress::start("fuzz".to_owned(), total);
    let mut summary = Summary::<S>::new(args.seeds.clone());
    let next = AtomicU64::new(args.seeds.start);
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs(args) {
            let (done, next, interrupt) = (done.clone(), &next, interrupt.clone());
            scope.spawn(move || work::<S>(args, next, &interrupt, &done));
        }
        drop(done);
        for (seed, result) in results {
            summary.take(seed, result);
            progress.show(summary.done);
        }
    });
    progress.finish(summary.done, start.elapsed());
    finish(args, summary, start.elapsed(), &interrupt)
}

fn jobs(args: &Args) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if args.trace { 1 } else { args.jobs.unwrap_or(cores).max(1) }
}

/// One thread: takes the next seed until there are none, or somebody asks to stop.
fn work<S: Subject>(
    args: &Args,
    next: &AtomicU64,
    interrupt: &Interrupt,
    done: &mpsc::Sender<(u64, Outcome<S>)>,
) {
    while !interrupt.requested() {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= args.seeds.end {
            return;
        }
        let case = case_of::<S>(seed, args).expect("the numbers were looked at");
        let result = Rack::<S::World, S::Message>::run_case(AllRules, &case);
        if done.send((seed, result)).is_err() {
            return;
        }
    }
}

fn finish<S: Subject>(
    args: &Args,
    mut summary: Summary<S>,
    took: Duration,
    interrupt: &Interrupt,
) -> Result<(), Fault> {
    summary.failures.sort_by_key(|(seed, _)| *seed);
    let first = summary.failures.iter().take(TOLD);
    let told: Vec<_> =
        first.map(|(seed, failure)| failure::Told::of::<S>(args, *seed, failure, interrupt)).collect();
    if args.json {
        print_json(&summary.to_json(took, &told))?;
    } else {
        print(&summary.to_text())?;
    }
    let mut text: String = told.iter().map(failure::Told::to_text).collect();
    let count = summary.failures.len();
    if count > TOLD {
        let seeds: Vec<_> = summary.failures[TOLD..].iter().map(|(seed, _)| seed.to_string()).collect();
        text += &format!("and {} more, with seeds {}\n", count - TOLD, seeds.join(" "));
    }
    let told = format!("{count} of {} runs failed\n{text}", summary.done);
    let any = |verdict| summary.failures.iter().any(|(_, failure)| failure.verdict == verdict);
    if any(Verdict::Crashed) {
        return Err(Fault::Crashed(told));
    }
    if any(Verdict::Wrong) {
        return Err(Fault::Failed(told));
    }
    if any(Verdict::Stuck) {
        return Err(Fault::Stuck(told));
    }
    let blind: Vec<_> = summary.blind().into_iter().map(check::rack::Fault::name).collect();
    if !blind.is_empty() {
        return Err(Fault::failed(format_args!(
            "the search is blind: {} were to happen in these runs, and never did",
            blind.join(", ")
        )));
    }
    if summary.done < args.seeds.end - args.seeds.start {
        return Err(Fault::Interrupted);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_as_a_range_and_nothing_else() {
        assert_eq!(seeds("0..10"), Ok(0..10));
        for bad in ["", "5", "5..5", "9..3", "a..b", "0...5", "-1..2"] {
            assert!(seeds(bad).unwrap_err().contains("0..1000"), "{bad}");
        }
    }
}
