//! `rackmem-lab routines`: what each routine of the OpenSHMEM library that is installed executes, counted by callgrind, for the
//! simulator of `tools/riscv` to charge.
//!
//! One program calls every routine some times, in some rounds, with another process's memory, and barriers with more processes; its
//! source is `tools/lab-cli/peers/routines_shmem.c`. What is recorded is the call without the loop around it: the fewest instructions of all rounds
//! and runs, which is what is charged, and the most. They differ where a routine waits for an answer and polls meanwhile. Instructions of
//! the kernel are not among them.
//!
//! What must always hold: a file has every routine, or is not written.

use std::fs;
use std::path::PathBuf;

use riscv::library::{Count, Library as Counts, Routine};

use super::instructions::TRIES;
use super::program::{Library, Program};
use crate::callgrind::Callgrind;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::rendezvous::RuntimeDir;
use cli::say;

const SOURCE: (&str, &str) = ("routines_shmem.c", include_str!("../../../peers/routines_shmem.c"));
/// What the program calls the function that is counted.
const COUNTED: &str = "counted_calls";
/// Calls of a round.
const CALLS: u64 = 20;
/// Processes that meet at barriers, besides the two that do everything else: as many as the library starts with.
const RENDEZVOUS: [u64; 5] = [1, 4, 6, 8, 16];
/// Routines whose effect is waited for by another one: what is counted is both, and this is to be subtracted.
const WITH_STORE: [(&str, Routine); 2] = [("p_and_quiet", Routine::Quiet), ("p_and_fence", Routine::Fence)];

/// Where to, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where openmpi-shm.txt and openmpi-tcp.txt go; the simulator has those of tools/riscv/libraries
    #[arg(long, value_name = "DIR", default_value = "lab-out")]
    out: PathBuf,

    /// Runs over each transport
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,

    /// Rounds of a run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
}

/// What a round of a routine has executed, by the program's name for it.
type Round = (String, u64, u64);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    let folder = RuntimeDir::new()?;
    let callgrind = Callgrind::new(folder.path())?;
    let program = Program::compile_source(Library::OpenShmem, SOURCE, folder.path())?.ok_or_else(|| {
        Fault::usage("routines are counted in OpenSHMEM, which is not installed; on Debian: apt-get install libopenmpi-dev openmpi-bin")
    })?;
    output::prepare_directory("--out", &args.out)?;
    for (kind, name) in [(TransportKind::Shm, "openmpi-shm"), (TransportKind::Udp, "openmpi-tcp")] {
        let mut rounds = Vec::new();
        for run in 1..=args.runs {
            rounds.extend(once(&program, kind, (2, args.rounds), &callgrind, &interrupt)?);
            for processes in RENDEZVOUS {
                // Over TCP Open MPI 4.1 hardly ever starts with more than four under valgrind. Then barriers of fewer are what there is.
                match once(&program, kind, (processes, args.rounds), &callgrind, &interrupt) {
                    Ok(counted) => rounds.extend(counted),
                    Err(fault) if interrupt.requested() => return Err(fault),
                    Err(_) => {
                        say!("{name}: barriers of {processes} were not counted: the library does not start");
                        break;
                    }
                }
            }
            say!("{name}: {run} of {} runs", args.runs);
        }
        let path =
            if kind == TransportKind::Shm { "UCX, shared memory (posix)" } else { "UCX, TCP over loopback" };
        let versions = [
            program.version(),
            format!(
                "{path}; 2 processes, of barriers more; {} runs of {} rounds of {CALLS} calls",
                args.runs, args.rounds
            ),
            format!("{}, on {}", callgrind.version(), std::env::consts::ARCH),
        ];
        let text = Counts::text(name, &versions, &counts(&rounds)?);
        let path = args.out.join(format!("{name}.txt"));
        fs::write(&path, &text)
            .map_err(|error| Fault::failed(format_args!("cannot write {}: {error}", path.display())))?;
        output::print(&text)?;
    }
    Ok(())
}

/// All rounds of a run. The library crashes while it starts, every other time or so, if only one process runs under valgrind.
fn once(
    program: &Program,
    kind: TransportKind,
    (processes, rounds): (u64, u64),
    callgrind: &Callgrind,
    interrupt: &Interrupt,
) -> Result<Vec<Round>, Fault> {
    let mut arguments = vec![CALLS.to_string(), rounds.to_string()];
    if processes != 2 {
        arguments.push("barriers".to_owned());
    }
    let mut last = Fault::failed("the program for OpenSHMEM was never run");
    for _ in 0..TRIES {
        // Of this run only.
        (1..).take_while(|number| callgrind.take(*number).is_some()).for_each(drop);
        match program.run_routines(kind, processes, &arguments, &callgrind.command(COUNTED), interrupt) {
            Ok(lines) => return taken(&lines, callgrind),
            Err(fault) if interrupt.requested() => return Err(fault),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

/// What the program has said that it called, with what was counted.
fn taken(lines: &[String], callgrind: &Callgrind) -> Result<Vec<Round>, Fault> {
    let mut rounds = Vec::new();
    for (line, number) in lines.iter().filter_map(|line| line.strip_prefix("routine ")).zip(1..) {
        let counted = callgrind.take(number).ok_or_else(|| {
            Fault::failed(format_args!("callgrind has not counted what the program says it called: {line}"))
        })?;
        let [name, size, _] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(Fault::failed(format_args!("the program has said what nobody understands: {line}")));
        };
        let size = size.parse().map_err(|_| Fault::failed(format_args!("{size} is no size")))?;
        rounds.push((name.to_owned(), size, counted));
    }
    Ok(rounds)
}

/// What is recorded of all rounds: each routine, each size.
fn counts(rounds: &[Round]) -> Result<Vec<Count>, Fault> {
    let of = |name: &str, bytes: u64| {
        let all =
            rounds.iter().filter(|(this, size, _)| this == name && *size == bytes).map(|(_, _, all)| *all);
        let ends = all.clone().min().zip(all.max());
        ends.ok_or_else(|| Fault::failed(format_args!("{name} was not counted")))
    };
    let (loop_, _) = of("nothing", 0)?;
    let (store, _) = of("p", 0)?;
    // Rounded up: an instruction that is executed now and then is one.
    let one = |total: u64, without: u64| total.saturating_sub(without).div_ceil(CALLS);
    let mut counts = Vec::new();
    for routine in Routine::ALL {
        let pair = WITH_STORE.iter().find(|(_, of)| *of == routine);
        let (name, without) = pair.map_or((routine.name(), loop_), |(name, _)| (*name, store));
        let mut sizes: Vec<u64> =
            rounds.iter().filter(|(this, ..)| this == name).map(|(_, size, _)| *size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() {
            return Err(Fault::failed(format_args!("{name} was not counted")));
        }
        for size in sizes {
            let (least, most) = of(name, size)?;
            counts.push(Count { routine, size, least: one(least, without), most: one(most, without) });
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds in which everything takes 50 instructions a call, besides 100 for the loop, and these others.
    fn rounds(others: &[(&str, u64)]) -> Vec<Round> {
        let names =
            Routine::ALL.map(Routine::name).into_iter().filter(|name| *name != "quiet" && *name != "fence");
        let all = names.map(|name| (name.to_owned(), 0, 100 + 50 * CALLS));
        let extra = [("nothing", 100), ("p_and_quiet", 100 + 57 * CALLS), ("p_and_fence", 100 + 53 * CALLS)];
        let extra = extra.iter().chain(others).map(|(name, total)| ((*name).to_owned(), 0, *total));
        all.chain(extra).collect()
    }

    fn count(rounds: &[Round], routine: Routine) -> (u64, u64) {
        let counts = counts(rounds).unwrap();
        let count = counts.iter().find(|count| count.routine == routine).unwrap();
        (count.least, count.most)
    }

    #[test]
    fn a_call_is_counted_without_the_loop_around_it_and_a_quiet_without_its_store() {
        assert_eq!(count(&rounds(&[]), Routine::G), (50, 50));
        assert_eq!(count(&rounds(&[]), Routine::Quiet), (7, 7));
        assert_eq!(count(&rounds(&[]), Routine::Fence), (3, 3));
    }

    #[test]
    fn the_round_with_the_fewest_and_that_with_the_most_are_recorded() {
        let rounds = rounds(&[("g", 100 + 40 * CALLS), ("g", 100 + 900 * CALLS)]);
        assert_eq!(count(&rounds, Routine::G), (40, 900));
    }

    #[test]
    fn without_a_routine_nothing_is_recorded() {
        for missing in ["g", "nothing", "p_and_quiet"] {
            let rounds: Vec<Round> = rounds(&[]).into_iter().filter(|(name, ..)| name != missing).collect();
            assert!(counts(&rounds).is_err(), "{missing}");
        }
    }
}
