//! `rackmem-lab bench instructions`: how many instructions an operation takes.
//!
//! Time says as much about the machine as about us; instructions are nearly the same on every run, so that a change that costs
//! three of a hundred is seen. Callgrind counts in a child for each operation. One thread uses both nodes of an embedded rack, so that
//! nobody ever waits.
//!
//! What a program calls that is in another language cannot be inlined. So a call from C is compared with one from Rust that is not
//! inlined either: [`called`].

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use clap::ValueEnum;
use rackmem::{Config, Directory, Discipline, Error, Locked, NodeHandle, NodeId};

use super::called;
use super::rounds::{failed, rack, table};
use crate::callgrind::Callgrind;
use cli::fault::Fault;
use cli::output;
use cli::processes::rendezvous::RuntimeDir;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What was counted before, one line of JSON an operation; an operation that takes 3 % more is a failure
    #[arg(long, default_value = "tools/lab-cli/instructions.json")]
    against: PathBuf,

    /// Write the file instead
    #[arg(long)]
    write: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// Only do this, for callgrind
    #[arg(long, hide = true)]
    only: Option<Operation>,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
enum Operation {
    /// A read of a cached word.
    ReadHit,
    /// A write of a cached word that this node may write.
    WriteHit,
    /// A read of a block that nobody has cached.
    ReadMiss,
    /// A write of a block that another node has written last.
    WriteMiss,
    /// A lock for writing that another node has had, with its 32 bytes.
    HandOver,
    /// A fetch-and-add to a word of another node.
    FetchAdd,
    /// A lock for writing that this node has: taken and released.
    Lock,
    /// As `lock`, of a lock that has a name: its node watches it, counts, and times some.
    LockNamed,
    /// As `read-hit`, in a call.
    ReadHitCall,
    /// As `write-hit`, in a call.
    WriteHitCall,
    /// As `fetch-add`, in a call.
    FetchAddCall,
    /// As `lock`, in two calls.
    LockCall,
}

/// So much more is a failure.
const MORE: f64 = 1.03;
/// The name of the function that callgrind looks for.
const COUNTED: &str = concat!(module_path!(), "::counted");
/// How often a child does it.
pub(super) const TIMES: u64 = 4096;
const BLOCK: u64 = 4096;

impl Operation {
    fn name(self) -> String {
        self.to_possible_value().expect("none is skipped").get_name().to_owned()
    }

    /// Does it, in [`counted`].
    fn run(self) -> Result<(), Fault> {
        let rack = rack(Config {
            nodes: 2,
            memory: 2 * TIMES * BLOCK,
            cache: 2 * TIMES * BLOCK,
            directory: Directory::Switch,
            ..Config::default()
        })?;
        self.run_on(&mut rack.node(NodeId(0)), &mut rack.node(NodeId(1))).map_err(failed)
    }

    fn run_on(self, here: &mut NodeHandle, there: &mut NodeHandle) -> Result<(), Error> {
        // Only where they are used: a home has work with blocks that it has given away, in the background.
        let alloc = |here: &mut NodeHandle| here.alloc(TIMES * BLOCK, NodeId(1), Discipline::Coherent);
        match self {
            Self::ReadHit => {
                let blocks = alloc(here)?;
                here.read_word(blocks)?;
                counted(|_| here.read_word(black_box(blocks)).map(drop))
            }
            Self::WriteHit => {
                let blocks = alloc(here)?;
                here.write_word(blocks, 1)?;
                counted(|at| here.write_word(black_box(blocks), at))
            }
            Self::ReadMiss => {
                let blocks = alloc(here)?;
                counted(|at| here.read_word(blocks + at * BLOCK).map(drop))
            }
            Self::WriteMiss => {
                let blocks = alloc(here)?;
                counted(|at| match at % 2 {
                    0 => here.write_word(blocks, at),
                    _ => there.write_word(blocks, at),
                })
            }
            Self::HandOver => {
                let value = Locked::new(here, NodeId(1), [0_u64; 4])?;
                counted(|at| {
                    let node = if at % 2 == 0 { &mut *here } else { &mut *there };
                    value.write(node).expect("nobody has panicked")[0] += 1;
                    Ok(())
                })
            }
            Self::FetchAdd => {
                let words = here.words::<u64>(8, NodeId(1))?;
                counted(|_| words.fetch_add(here, 3, 1).map(drop))
            }
            Self::Lock | Self::LockNamed => {
                let value = if self == Self::Lock {
                    Locked::new(here, NodeId(1), [0_u64; 4])?
                } else {
                    here.named("lock").open_or(|| [0_u64; 4]).expect("nobody has made another one")
                };
                drop(value.write(here));
                counted(|_| {
                    value.write(here).expect("nobody has panicked")[0] += 1;
                    Ok(())
                })
            }
            Self::ReadHitCall => {
                let blocks = alloc(here)?;
                here.read_word(blocks)?;
                counted(|_| {
                    called::read_word(here, blocks).map(|word| {
                        black_box(word);
                    })
                })
            }
            Self::WriteHitCall => {
                let blocks = alloc(here)?;
                here.write_word(blocks, 1)?;
                counted(|at| called::write_word(here, blocks, at))
            }
            Self::FetchAddCall => {
                let words = here.words::<u64>(8, NodeId(1))?;
                counted(|_| {
                    called::fetch_add(&words, here, 3, 1).map(|word| {
                        black_box(word);
                    })
                })
            }
            Self::LockCall => {
                let value = Locked::new(here, NodeId(1), [0_u64; 4])?;
                drop(value.write(here));
                counted(|_| {
                    let mut guard = called::lock(&value, here).expect("nobody has panicked");
                    guard[0] += 1;
                    called::unlock(guard);
                    Ok(())
                })
            }
        }
    }

    /// Instructions of one.
    fn count(self, callgrind: &Callgrind) -> Result<f64, Fault> {
        let me = env::current_exe()
            .map_err(|error| Fault::failed(format_args!("this command has no file: {error}")))?;
        let total = callgrind.around(COUNTED, |under| {
            let status = Command::new(&under[0])
                .args(&under[1..])
                .arg(&me)
                .args(["bench", "instructions", "--only", &self.name()])
                .status();
            match status {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(Fault::failed(format_args!("`{}` under valgrind: {status}", self.name()))),
                Err(error) => Err(Fault::failed(format_args!("valgrind does not run: {error}"))),
            }
        })?;
        Ok(of_one(total))
    }
}

/// Of so many.
pub(super) fn of_one(total: u64) -> f64 {
    (total as f64 / TIMES as f64 * 10.0).round() / 10.0
}

/// What is counted: so many operations, and the loop around them.
#[inline(never)]
fn counted(turn: impl FnMut(u64) -> Result<(), Error>) -> Result<(), Error> {
    (0..TIMES).try_for_each(turn)
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    if let Some(only) = args.only {
        return only.run();
    }
    let path = args.against.display();
    let before: BTreeMap<String, f64> = match fs::read_to_string(&args.against) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| Fault::usage(format_args!("{path}: {error}; --write makes it anew")))?,
        Err(_) if args.write => BTreeMap::new(),
        Err(error) => {
            return Err(Fault::usage(format_args!(
                "{path}: {error}; --write makes it, --against names another"
            )));
        }
    };
    let folder = RuntimeDir::new()?;
    let callgrind = Callgrind::new(folder.path())?;
    let mut now = BTreeMap::new();
    for operation in Operation::value_variants() {
        now.insert(operation.name(), operation.count(&callgrind)?);
    }
    let too_long = called::count(&callgrind, folder.path(), &mut now)?;
    if args.json {
        output::print_json(&now)?;
    } else {
        let row = |(name, count): (&String, &f64)| {
            let was = before.get(name);
            vec![
                name.clone(),
                format!("{count:.1}"),
                was.map_or_else(|| "-".to_owned(), |was| format!("{was:.1}")),
                was.map_or_else(|| "-".to_owned(), |was| format!("{:+.1} %", 100.0 * (count / was - 1.0))),
            ]
        };
        let rows: Vec<_> = now.iter().map(row).collect();
        output::print(&table(&["operation", "instructions", "before", ""], &rows))?;
    }
    if !too_long.is_empty() {
        let text = too_long.join(", ");
        return Err(Fault::failed(format_args!(
            "a call from C takes too much more than one from Rust: {text}"
        )));
    }
    if args.write {
        let text = serde_json::to_string_pretty(&now).expect("names and numbers") + "\n";
        return fs::write(&args.against, text)
            .map_err(|error| Fault::failed(format_args!("{path} cannot be written: {error}")));
    }
    let grown: Vec<_> = now
        .iter()
        .filter(|(name, count)| before.get(*name).is_none_or(|was| **count > was * MORE))
        .map(|(name, _)| name.as_str())
        .collect();
    if grown.is_empty() {
        return Ok(());
    }
    Err(Fault::failed(format_args!(
        "{} takes more than 3 % more instructions than {path} says, or is not in it; if that is worth it, say why and --write it",
        grown.join(", ")
    )))
}
