//! `rackmem-lab tpcc`: TPC-C on a rack, beside the same engine on plain memory of one process.
//!
//! Every thread of every node has a warehouse, which it loads. Then rack and plain memory take turns, with the same number
//! of threads. Racks in one process and racks of processes are those of `rackmem-lab bench` (`bench/nodes.rs`). All
//! consistency conditions are checked after loading, and after every run.
//!
//! | file | holds |
//! | --- | --- |
//! | `args` | flags; whether there is memory for what they ask |
//! | `node` | what a node does |
//! | `plain` | memory of one process, for the yardstick |
//! | `report` | what comes out |

mod args;
mod node;
mod plain;
mod report;

use std::ops::{Add, Range};
use std::time::Instant;

use apps::tpcc::Scale;

use self::node::{Ended, Order, Ran, Setup, Side, Task};
use self::report::{Round, TpccReport};
use crate::bench::nodes::{Counted, Nodes};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::ycsb::progress::Progress;

pub(crate) use args::Args;
pub(crate) use node::Part;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let scale = args.scale()?;
    let spec = args.rack(scale)?;
    let interrupt = Interrupt::listen()?;
    let Args { nodes: count, threads, transport, distribution, transactions, rounds, seed, .. } = *args;
    let shrink = scale.shrink;
    let setup =
        Setup { threads, shrink, distribution, seed, transactions, plain_bytes: args.plain_bytes(scale) };
    let nodes = Nodes::<Part>::start(transport, &spec, &setup, &interrupt)?;
    let mut rack = TpccRack { nodes, count, scale, checks: 0, interrupt: &interrupt };
    let (rows, load_seconds) = rack.load(Side::Rack)?;
    rack.load(Side::Plain)?;
    let mut of_rounds = Vec::new();
    for run in 0..rounds {
        let before = rack.counted()?;
        let ran = rack.run(Side::Rack, run, transactions)?;
        let counted = rack.counted()? - before;
        rack.check(Side::Rack, false)?;
        let plain = rack.run(Side::Plain, run, transactions)?;
        rack.check(Side::Plain, false)?;
        of_rounds.push(Round::of(&ran, &plain, counted, transport));
    }
    let report = TpccReport {
        warehouses: scale.warehouses,
        rows_shrunk_by: shrink,
        rows,
        distribution_percent: distribution,
        nodes: count,
        threads,
        transport,
        block_bytes: args.block_size.bytes(),
        copies: args.copies,
        load_seconds,
        checks: rack.checks,
        rounds: of_rounds,
    };
    output::show(args.json, "tpcc", &report, || report.text())
}

/// A rack with a database, and a process with another one.
struct TpccRack<'a> {
    nodes: Nodes<Part>,
    count: u16,
    scale: Scale,
    /// So often all conditions have held.
    checks: u64,
    interrupt: &'a Interrupt,
}

impl TpccRack<'_> {
    /// The nodes that are at work.
    fn on(&self, side: Side) -> Range<u16> {
        if side == Side::Rack { 0..self.count } else { 0..1 }
    }

    /// Loads a database, and checks it. Gives how many rows it has, and the seconds that loading took.
    fn load(&mut self, side: Side) -> Result<(u64, f64), Fault> {
        let root: Result<u64, String> = self.nodes.ask(0, Order::Create(side))?;
        let root = root.map_err(|why| Fault::failed(format_args!("cannot create the database: {why}")))?;
        let (began, mut rows) = (Instant::now(), 0);
        let mut progress = Progress::start(format!("rows loaded{}", side.suffix()), self.scale.first_rows());
        let done = self.begin(self.on(side), Task::Load(side, root), |done| {
            rows = done;
            progress.show(done);
        });
        let took = began.elapsed();
        done?;
        progress.finish(rows, took);
        self.check(side, true)?;
        Ok((rows, took.as_secs_f64()))
    }

    /// Runs transactions on all threads.
    fn run(&mut self, side: Side, run: u64, transactions: u64) -> Result<Ran, Fault> {
        let (began, all) = (Instant::now(), transactions * self.scale.warehouses);
        let mut progress = Progress::start(format!("transactions{}", side.suffix()), all);
        let ended = self.begin(self.on(side), Task::Run(side, run), |done| progress.show(done));
        let took = began.elapsed();
        let mut sum = Ran::default();
        for ended in ended? {
            let Ended::Ran(ran) = ended else { return Err(unexpected()) };
            sum.add(&ran);
        }
        progress.finish(all, took);
        Ok(sum)
    }

    fn check(&mut self, side: Side, is_first: bool) -> Result<(), Fault> {
        match self.begin(0..1, Task::Check(side, is_first), |_| {})?.pop() {
            Some(Ended::Checked(None)) => {
                self.checks += 1;
                Ok(())
            }
            Some(Ended::Checked(Some(broken))) => {
                Err(Fault::failed(format_args!("the database is wrong{}: {broken}", side.suffix())))
            }
            _ => Err(unexpected()),
        }
    }

    fn counted(&mut self) -> Result<Counted, Fault> {
        let of_nodes: Vec<Counted> = self.nodes.ask_all(&Order::Count)?;
        Ok(of_nodes.into_iter().fold(Counted::default(), Counted::add))
    }

    /// Begins a task at these nodes, and waits until it has ended at all of them.
    fn begin(&mut self, nodes: Range<u16>, task: Task, show: impl FnMut(u64)) -> Result<Vec<Ended>, Fault> {
        let orders = [Order::Begin(task), Order::Ask];
        let ended: Vec<Ended> = self.nodes.until_ended(nodes, orders, self.interrupt, show)?;
        match ended.iter().find_map(|ended| if let Ended::Failed(why) = ended { Some(why) } else { None }) {
            Some(why) => Err(Fault::failed(why)),
            None => Ok(ended),
        }
    }
}

/// A node that ended with something else than what it was asked for.
fn unexpected() -> Fault {
    Fault::failed("a node has done something else than it was asked to")
}
