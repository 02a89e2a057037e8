//! What `rackmem-lab bench wire` prints.

use serde::Serialize;

use super::SHORTER;
use crate::bench::pingpong::micros;
use crate::bench::rounds::{Against, table};

/// A miss, and a hand-over, may take so much of what they take with the programs in a process.
const MOST_OF_PROCESS: f64 = 0.8;
/// Packets that pass in a second, against a process that sends them on in batches.
const LEAST_FLOOD: f64 = 3.0;
/// What homes may send and receive for an operation, and take of the processors, of what they do with the directory.
const MOST_MESSAGES: f64 = 0.25;
const MOST_PROCESSOR: f64 = 0.5;
/// How much faster memory is used that others have, and YCSB A.
const LEAST_FASTER: f64 = 1.2;

#[derive(Debug, Serialize)]
pub(super) struct WireReport {
    pub(super) rounds: u64,
    pub(super) millis: u64,
    /// In the kernel, against in the process.
    pub(super) passing: Passing,
    /// In the drivers of the ports, against at their traffic control.
    pub(super) in_drivers: Passing,
    pub(super) apart: Vec<Apart>,
    pub(super) mixes: Vec<Mix>,
}

/// What one packet, or one operation, takes of the machine, in the kernel against in the process.
#[derive(Debug, Serialize)]
pub(super) struct Takes {
    datagrams: Against,
    processor_ns: Against,
    switches: Against,
    interrupts: Against,
}

impl Takes {
    pub(super) const fn of([datagrams, processor_ns, switches, interrupts]: [Against; 4]) -> Self {
        Self { datagrams, processor_ns, switches, interrupts }
    }

    fn rows(&self, what: &str) -> [Vec<String>; 4] {
        let exact = |count: f64| format!("{count:.2}");
        let row = |named: &str, of: &Against, text: &dyn Fn(f64) -> String| {
            let ratio = format!("{:.2}x", of.ratio);
            vec![what.to_owned(), named.to_owned(), text(of.measured), text(of.yardstick), ratio]
        };
        [
            row("datagrams that processes send", &self.datagrams, &exact),
            row("time of processors", &self.processor_ns, &micros),
            row("changes from thread to thread", &self.switches, &exact),
            row("interrupts to receive", &self.interrupts, &exact),
        ]
    }
}

/// Operations a second of a mix of YCSB, in the kernel against in the process.
#[derive(Debug, Serialize)]
pub(super) struct Mix {
    pub(super) workload: char,
    pub(super) rate: Against,
    pub(super) takes: Takes,
    /// None: it is not installed.
    pub(super) redis_per_s: Option<f64>,
}

/// What passes the switch.
#[derive(Debug, Serialize)]
pub(super) struct Passing {
    pub(super) bare: BareFigures,
    /// Nanoseconds.
    pub(super) miss: Against,
    pub(super) hand_over: Against,
}

/// Packets alone, without a rack's nodes.
#[derive(Debug, Serialize)]
pub(super) struct BareFigures {
    /// Nanoseconds of three messages, one of them through the switch.
    pub(super) of_three: Against,
    /// Nanoseconds of two that are forwarded as any packet.
    pub(super) forwarded_ns: f64,
    /// Bytes a second of a stream of TCP that is forwarded so.
    pub(super) stream: Against,
    /// Packets a second through the switch.
    pub(super) flood: Against,
    pub(super) flood_takes: Takes,
}

/// Nodes that have memory, apart from those that use it: the directory in the switch, against at the homes.
#[derive(Debug, Serialize)]
pub(super) struct Apart {
    /// Per cent of accesses to what all users share.
    pub(super) sharing: u64,
    /// Operations a second.
    pub(super) rate: Against,
    /// Messages that homes send and receive for an operation.
    pub(super) messages: Against,
    /// Nanoseconds of processors that homes take for an operation.
    pub(super) processor_ns: Against,
}

impl WireReport {
    pub(super) fn text(&self) -> String {
        let arms = self.passing.rows();
        let hooks = self.in_drivers.rows().map(|mut row| {
            row.truncate(4);
            row
        });
        let bare = &self.passing.bare;
        let mixes: Vec<_> = self.mixes.iter().map(Mix::row).collect();
        let of_mixes = self.mixes.iter().filter(|mix| mix.workload != 'C');
        let of_mixes = of_mixes.flat_map(|mix| mix.takes.rows(&format!("operation of {}", mix.workload)));
        let takes: Vec<_> =
            bare.flood_takes.rows("packet of the flood").into_iter().chain(of_mixes).collect();
        let rows: Vec<Vec<String>> = self.apart.iter().flat_map(Apart::rows).collect();
        format!(
            "Racks over cables between network namespaces (medians of {} rounds, and of {} of what is over at once)\n\n{}\n\
             Two messages that are forwarded as any packet: {}\n\n\
             The programs in the drivers of the ports, and at the traffic control\n\n{}\n\
             Two nodes have memory and two use it, {} ms in each round\n\n{}\n\
             YCSB on 4 nodes of 2 threads, operations/s, beside a Redis with 50 connections through the same ports\n\n{}\n\
             What one of them takes of the machine\n\n{}",
            self.rounds,
            SHORTER * self.rounds,
            table(&["", "in the kernel", "in the process", "ratio", "target", ""], &arms),
            micros(bare.forwarded_ns),
            table(&["", "in the driver", "at the traffic control", "ratio"], &hooks),
            self.millis,
            table(&["sharing", "", "in the switch", "at the homes", "ratio", "target", ""], &rows),
            table(&["mix", "in the kernel", "in the process", "ratio", "target", "", "Redis"], &mixes),
            table(&["one", "takes", "in the kernel", "in the process", "ratio"], &takes),
        )
    }
}

impl Passing {
    fn rows(&self) -> [Vec<String>; 5] {
        let took = |what: &str, of: &Against| {
            row([what.to_owned()], of, micros, most(MOST_OF_PROCESS), of.ratio <= MOST_OF_PROCESS)
        };
        let flood = &self.bare.flood;
        let (target, is_met) = (least(LEAST_FLOOD), flood.ratio >= LEAST_FLOOD);
        let mut stream = row(
            ["MB/s of TCP beside the rack".to_owned()],
            &self.bare.stream,
            megabytes,
            String::new(),
            true,
        );
        // What is only forwarded has no mark.
        stream[5].clear();
        [
            took("three messages, one through the switch", &self.bare.of_three),
            took("read of a block modified elsewhere", &self.miss),
            took("hand-over of a lock with 1 KiB", &self.hand_over),
            row(["packets/s through the switch".to_owned()], flood, whole, target, is_met),
            stream,
        ]
    }
}

impl Mix {
    /// Only A, which writes as often as it reads, has a mark.
    fn row(&self) -> Vec<String> {
        let mut row = row([self.workload.to_string()], &self.rate, whole, least(LEAST_FASTER), self.is_met());
        if self.workload != 'A' {
            row[4..].fill(String::new());
        }
        row.push(self.redis_per_s.map_or_else(|| "not installed".to_owned(), whole));
        row
    }

    fn is_met(&self) -> bool {
        self.rate.ratio >= LEAST_FASTER
    }
}

impl Apart {
    fn rows(&self) -> [Vec<String>; 3] {
        let named = |what: &str| [format!("{} %", self.sharing), what.to_owned()];
        let Self { rate, messages, processor_ns, .. } = self;
        let (few, short) = (messages.ratio <= MOST_MESSAGES, processor_ns.ratio <= MOST_PROCESSOR);
        let exact = |messages: f64| format!("{messages:.3}");
        [
            row(
                named("operations/s, by the slowest user"),
                rate,
                whole,
                least(LEAST_FASTER),
                rate.ratio >= LEAST_FASTER,
            ),
            row(named("messages of homes for one"), messages, exact, most(MOST_MESSAGES), few),
            row(named("processor time of homes for one"), processor_ns, micros, most(MOST_PROCESSOR), short),
        ]
    }
}

fn row<const N: usize>(
    named: [String; N],
    of: &Against,
    text: impl Fn(f64) -> String,
    target: String,
    is_met: bool,
) -> Vec<String> {
    let met = if is_met { "met" } else { "missed" }.to_owned();
    let values = [text(of.measured), text(of.yardstick), format!("{:.2}x", of.ratio), target, met];
    named.into_iter().chain(values).collect()
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

fn megabytes(bytes: f64) -> String {
    whole(bytes / 1e6)
}

fn most(ratio: f64) -> String {
    format!("at most {ratio}x")
}

fn least(ratio: f64) -> String {
    format!("at least {ratio}x")
}
