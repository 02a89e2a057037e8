//! Rounds, in which every operation and its yardstick take turns.

use std::ffi::OsString;

use rackmem::BlockSize;

use super::node::{Done, Operating, Operation, Order, RunOrder, WordLocations};
use super::report::{Busy, Figure};
use crate::bench::bare::Bare;
use crate::bench::nodes::{How, Nodes, spec};
use crate::bench::rounds::median;
use crate::bench::samples::Recorder;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;

/// Exchanges that are the yardstick of a round.
const EXCHANGES: u64 = 2000;
/// Of the time of a measurement, that in which single operations are timed.
const TIMED: u64 = 3;

/// What to measure.
pub(crate) struct Question<'a> {
    pub(crate) transport: TransportKind,
    pub(crate) nodes: u16,
    pub(crate) words: u64,
    pub(crate) in_flight: u64,
    pub(crate) millis: u64,
    pub(crate) rounds: u64,
    /// True: all on one word; false: at random.
    pub(crate) patterns: &'a [bool],
    pub(crate) operations: &'a [Operation],
    /// With a yardstick.
    pub(crate) yardstick: bool,
}

impl Question<'_> {
    /// Words are within reach of loads and stores.
    pub(super) fn is_near(&self) -> bool {
        self.transport != TransportKind::Udp
    }
}

/// The node that has the words.
const HOME: u16 = 0;

/// A rack with words on one node.
struct Rack {
    nodes: Nodes<Operating>,
    /// Nodes that operate on them.
    others: std::ops::Range<u16>,
}

impl Rack {
    /// With a bare word for each word on every other node, if they are to be compared with; the process of node 1 runs under this program.
    fn start(
        question: &Question<'_>,
        bare: bool,
        under: &[OsString],
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        let common = spec(BlockSize::DEFAULT);
        // Capacity for the words, twice.
        let memory = (2 * question.words * 8 + (1 << 20)).next_power_of_two().max(common.memory);
        let spec = RackSpec { nodes: question.nodes.into(), memory, ..common };
        let how = How { under, ..How::default() };
        let mut nodes = Nodes::start_as(how, question.transport, &spec, &(), interrupt)?;
        let place: WordLocations = nodes.ask(HOME, Order::Make(question.words))?;
        let open = |node| (node, Order::Open(place, bare && node != HOME));
        nodes.ask_each::<()>((0..question.nodes).map(open))?;
        Ok(Self { nodes, others: HOME + 1..question.nodes })
    }

    /// What every node but the words' home has done; all of them at once.
    fn run(&mut self, order: RunOrder) -> Result<Vec<Done>, Fault> {
        self.nodes.ask_each(self.others.clone().map(|node| (node, Order::Run(order))))
    }

    /// What all words add up to has to be what was added.
    fn sound(&mut self, added: u64) -> Result<(), Fault> {
        let found: u64 = self.nodes.ask(HOME, Order::Sum)?;
        if found == added {
            return Ok(());
        }
        Err(Fault::failed(format_args!(
            "{added} was added, and the words add up to {found}: this is a bug in rackmem"
        )))
    }
}

/// What came of the rounds for one operation.
struct Rounds {
    operation: Operation,
    hot: bool,
    /// Operations a second, by round, of all threads together.
    rates: Vec<f64>,
    times: Recorder,
    /// Nanoseconds of an operation over those of its yardstick, by round.
    ratios: Vec<f64>,
    yardsticks: Vec<f64>,
}

fn rate(done: &[Done]) -> f64 {
    done.iter().map(Done::per_second).sum()
}

/// Nanoseconds that an operation takes a thread.
fn nanos(done: &[Done]) -> f64 {
    1e9 * done.len() as f64 / rate(done)
}

/// Runs it.
pub(crate) fn measure(question: &Question<'_>, interrupt: &Interrupt) -> Result<Vec<Figure>, Fault> {
    let near = question.is_near();
    let bare = near && question.yardstick;
    let mut rack = Rack::start(question, bare, &[], interrupt)?;
    let exchange =
        (!near && question.yardstick).then(|| Bare::start(question.transport, BlockSize::MIN, interrupt));
    let mut exchange = exchange.transpose()?;
    let mut all: Vec<Rounds> = question
        .patterns
        .iter()
        .flat_map(|hot| question.operations.iter().map(move |operation| (*operation, *hot)))
        .map(|(operation, hot)| Rounds {
            operation,
            hot,
            rates: Vec::new(),
            times: Recorder::new(),
            ratios: Vec::new(),
            yardsticks: Vec::new(),
        })
        .collect();
    let mut added = 0;
    // The first round warms up.
    for round in 0..=question.rounds {
        for of in &mut all {
            if interrupt.requested() {
                return Err(Fault::Interrupted);
            }
            let order = RunOrder {
                operation: of.operation,
                hot: of.hot,
                bare: false,
                timed: false,
                in_flight: question.in_flight,
                millis: if round == 0 { question.millis / 5 + 1 } else { question.millis },
            };
            let done = rack.run(order)?;
            added += done.iter().map(|done| done.added).sum::<u64>();
            let yardstick = if bare {
                Some(nanos(&rack.run(RunOrder { bare: true, ..order })?))
            } else {
                exchange.as_mut().map(|it| it.exchange_of_two(EXCHANGES)).transpose()?.map(|it| it.mean())
            };
            let timed = if of.operation.is_blocking() {
                rack.run(RunOrder { timed: true, millis: order.millis / TIMED + 1, ..order })?
            } else {
                Vec::new()
            };
            added += timed.iter().map(|done| done.added).sum::<u64>();
            if round > 0 {
                timed.iter().filter_map(|done| done.samples.as_ref()).for_each(|it| of.times.add(it));
                of.rates.push(rate(&done));
                of.yardsticks.extend(yardstick);
                of.ratios.extend(yardstick.map(|yardstick| nanos(&done) / yardstick));
            }
        }
    }
    rack.sound(added)?;
    let threads = f64::from(question.nodes - 1);
    Ok(all
        .into_iter()
        .map(|of| {
            let per_second = median(of.rates);
            let timed = |part| of.operation.is_blocking().then(|| of.times.quantile(part));
            Figure {
                operation: of.operation,
                hot: of.hot,
                in_flight: if of.operation.is_blocking() { 1 } else { question.in_flight },
                per_second,
                nanos: 1e9 * threads / per_second,
                p50_ns: timed(0.5),
                p99_ns: timed(0.99),
                yardstick_ns: (!of.yardsticks.is_empty()).then(|| median(of.yardsticks)),
                ratio: (!of.ratios.is_empty()).then(|| median(of.ratios)),
            }
        })
        .collect())
}

/// A blocking fetch-add while the process of the words' home computes on every core.
pub(crate) fn busy(question: &Question<'_>, interrupt: &Interrupt) -> Result<Busy, Fault> {
    let mut rack = Rack::start(question, false, &[], interrupt)?;
    rack.nodes.ask::<()>(HOME, Order::Compute)?;
    let order = RunOrder {
        operation: Operation::FetchAdd,
        hot: false,
        bare: false,
        timed: true,
        in_flight: 1,
        millis: question.millis,
    };
    let mut times = Recorder::new();
    let (mut added, mut rates) = (0, Vec::new());
    // The first round finds out that the machine is full.
    for round in 0..=question.rounds {
        let done = rack.run(order)?;
        added += done.iter().map(|done| done.added).sum::<u64>();
        if round > 0 {
            done.iter().filter_map(|done| done.samples.as_ref()).for_each(|it| times.add(it));
            rates.push(rate(&done));
        }
    }
    rack.sound(added)?;
    Ok(Busy::new(median(rates), times.quantile(0.5), times.quantile(0.99)))
}

/// One operation so many times on the first word of another process, whose requester runs under a program that counts its
/// instructions. The first ones, for which connections are made, are done before, outside the function that is counted.
pub(crate) fn count(
    question: &Question<'_>,
    operation: Operation,
    times: u64,
    program: &[OsString],
    interrupt: &Interrupt,
) -> Result<(), Fault> {
    let mut rack = Rack::start(question, false, program, interrupt)?;
    let order =
        RunOrder { operation, hot: true, bare: false, timed: false, in_flight: times.min(64), millis: 1 };
    let added: u64 = rack.run(order)?.iter().map(|done| done.added).sum();
    rack.nodes.ask::<()>(HOME + 1, Order::Count(operation, times))?;
    rack.sound(added + times)
}
