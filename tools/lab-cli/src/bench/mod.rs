//! `rackmem-lab bench`: what an access costs, beside a yardstick measured in the same run.
//!
//! Absolute times say much about the machine; the ratios are what the project holds itself to. Every figure is
//! the median of several rounds, in which yardstick and rack take turns.
//!
//! | file | measures |
//! | --- | --- |
//! | `hit` | cached words against a plain `Vec<u64>` |
//! | `instructions` | hits, misses, hand-overs and remote atomics, counted; no yardstick, but a file of what they took before |
//! | `called` | calls from C beside the same calls from Rust, counted |
//! | `miss` | misses, evictions, upgrades and reads of modified blocks against a memcpy of a block |
//! | `mapped` | both through pointers into mapped memory |
//! | `pingpong` | the bare exchange of a miss's messages between processes |
//! | `contend` | many threads on one block |
//! | `lock` | locks that carry their data: cached, handed over, and under a mix beside layered ones |
//! | `store` | a store in mapped memory against one that is reached by calls |
//! | `object` | reads of whole objects beside other layouts of objects, while threads write them |
//! | `wire` | the switch's programs in the kernel, at the ports |
//! | `word` | operations on words of another node |
//!
//! | file | what they have in common |
//! | --- | --- |
//! | `nodes` | a rack in this process or in several, and what its nodes are asked to do |
//! | `bare` | three processes that exchange messages, and are no rack |
//! | `rounds`, `samples` | medians, clocks, threads, tables; times of single accesses |

mod bare;
mod called;
mod contend;
mod copies;
mod hit;
mod instructions;
pub(crate) mod lock;
mod mapped;
mod miss;
pub(crate) mod nodes;
mod object;
pub(crate) mod pingpong;
pub(crate) mod rounds;
pub(crate) mod samples;
mod store;
mod stream;
mod wire;
pub(crate) mod word;

use clap::Subcommand;

use cli::fault::Fault;
use cli::processes::Job;

/// What the children of benchmarks may be.
pub(crate) fn jobs() -> Vec<Job> {
    vec![
        Job::of(bare::place),
        Job::of(nodes::place::<miss::Reader>),
        Job::of(nodes::place::<copies::Keeper>),
        Job::of(nodes::place::<mapped::Mapper>),
        Job::of(nodes::place::<lock::Threads>),
        Job::of(nodes::place::<object::Objects>),
        Job::of(nodes::place::<wire::User>),
        Job::of(nodes::place::<word::Operating>),
    ]
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Reads and writes of cached words, against a plain array of the same size
    Hit(hit::Args),
    /// Instructions of a hit, a miss, a hand-over and a fetch-and-add, against a file of what they took before
    Instructions(instructions::Args),
    /// Misses of a block, against copying a block of memory, or against the bare exchange of their messages
    Miss(miss::Args),
    /// Three processes that exchange the messages of a miss, and nothing else
    Pingpong(pingpong::Args),
    /// Threads on all nodes that change one block
    Contend(contend::Args),
    /// Writes, syncs and reads of memory with copies, against the same of memory without
    Copies(copies::Args),
    /// Locks that carry their data, against plain locks, the bare exchange of messages, and layered locks
    Lock(lock::Args),
    /// YCSB C on one node: a store in mapped memory, against one that is reached by calls
    Store(store::Args),
    /// Reads of whole objects, against versions in cache lines, checksums, remote locks and unchecked READs
    Object(object::Args),
    /// The switch's programs in the kernel, against the same in its process, and against directories at homes (as root)
    Wire(wire::Args),
    /// Operations on words of another node, against bare ones, or against the bare exchange of messages
    Word(word::Args),
}

/// Runs the command.
pub(crate) fn run(bench: &Bench) -> Result<(), Fault> {
    match bench {
        Bench::Hit(args) => hit::run(args),
        Bench::Instructions(args) => instructions::run(args),
        Bench::Miss(args) => miss::run(args),
        Bench::Pingpong(args) => pingpong::run(args),
        Bench::Contend(args) => contend::run(args),
        Bench::Copies(args) => copies::run(args),
        Bench::Lock(args) => lock::run(args),
        Bench::Store(args) => store::run(args),
        Bench::Object(args) => object::run(args),
        Bench::Wire(args) => wire::run(args),
        Bench::Word(args) => word::run(args),
    }
}
