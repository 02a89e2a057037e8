//! What `peers --words` prints.

use serde::Serialize;

use super::program::Library;
use crate::bench::pingpong::micros;
use crate::bench::rounds::table;
use crate::bench::word::{BUSY_P50, Operation};
use cli::processes::TransportKind;
use cli::say;

/// A fetch-add on words within reach may take so much of OpenSHMEM's time.
const MOST_TIME_NEAR: f64 = 0.3;
/// A blocking one over a network.
const MOST_TIME_FAR: f64 = 1.0;
/// Adds in flight, of OpenSHMEM's, on random words and on one.
const LEAST_RANDOM: f64 = 20.0;
const LEAST_HOT: f64 = 40.0;

/// Whose figure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum System {
    Peer(Library),
    Rack,
}

/// One operation of one system.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) system: System,
    pub(super) operation: Operation,
    /// All on one word.
    pub(super) hot: bool,
    /// The words' home computed.
    pub(super) busy: bool,
    /// Of all requesters together.
    pub(super) per_second: f64,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
}

impl Measured {
    /// Of the same, in another round.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        (self.system, self.operation, self.hot, self.busy)
            == (other.system, other.operation, other.hot, other.busy)
    }

    pub(super) fn said(&self) -> String {
        let word = if self.hot { "one word" } else { "random words" };
        format!("{}: {} on {word}: {:.0}/s", self.system.name(), self.operation.name(), self.per_second)
    }
}

impl System {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Peer(library) => library.name(),
            Self::Rack => "rackmem",
        }
    }
}

/// Says that a library is not installed.
pub(super) fn said_missing(library: Library) {
    say!(
        "{} ({}, {}) is not installed and is left out; on Debian: apt-get install openmpi-bin libopenmpi-dev",
        library.name(),
        library.compiler(),
        library.launcher()
    );
}

#[derive(Serialize)]
struct Row {
    transport: TransportKind,
    processes: u16,
    #[serde(flatten)]
    of: Measured,
}

/// What a rack has to reach.
#[derive(Serialize)]
struct Verdict {
    what: &'static str,
    target: f64,
    is: Option<f64>,
    met: Option<bool>,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
pub(super) struct WordsReport {
    processes: Vec<u16>,
    words: u64,
    in_flight: u64,
    millis: u64,
    rounds: u64,
    missing: Vec<&'static str>,
    rows: Vec<Row>,
    targets: Vec<Verdict>,
}

impl WordsReport {
    pub(super) fn new(processes: Vec<u16>, words: u64, in_flight: u64, millis: u64, rounds: u64) -> Self {
        Self {
            processes,
            words,
            in_flight,
            millis,
            rounds,
            missing: Vec::new(),
            rows: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// This library is not installed.
    pub(super) fn missing(&mut self, library: Library) {
        said_missing(library);
        self.missing.push(library.name());
    }

    pub(super) fn add(&mut self, transport: TransportKind, processes: u16, of: Measured) {
        self.rows.push(Row { transport, processes, of });
    }

    fn find(
        &self,
        transport: TransportKind,
        system: System,
        operation: Operation,
        hot: bool,
        busy: bool,
    ) -> Option<&Measured> {
        let fewest = self.processes.iter().min().copied();
        let is_it = |row: &&Row| {
            row.transport == transport
                && (busy || Some(row.processes) == fewest)
                && (row.of.system, row.of.operation, row.of.hot, row.of.busy)
                    == (system, operation, hot, busy)
        };
        self.rows.iter().find(is_it).map(|row| &row.of)
    }

    /// A rack's throughput over that of OpenSHMEM, with as few processes as were measured.
    fn over_shmem(&self, transport: TransportKind, operation: Operation, hot: bool) -> Option<f64> {
        let of = |system| self.find(transport, system, operation, hot, false).map(|of| of.per_second);
        Some(of(System::Rack)? / of(System::Peer(Library::OpenShmem))?)
    }

    /// Compares with the targets.
    pub(super) fn judge(&mut self) {
        let time = |hot| self.over_shmem(TransportKind::Shm, Operation::FetchAdd, hot).map(f64::recip);
        let most = |what, target: f64, is: Option<f64>| Verdict {
            what,
            target,
            is,
            met: is.map(|is| is <= target),
            text: format!("at most {target}x the time of OpenSHMEM"),
        };
        let least = |what, target: f64, is: Option<f64>| Verdict {
            what,
            target,
            is,
            met: is.map(|is| is >= target),
            text: format!("at least {target}x the throughput of OpenSHMEM"),
        };
        // Half of them, and not all: what waits for a core on a full machine says nothing of either.
        let p50 = |system| {
            let of = self.find(TransportKind::Udp, system, Operation::FetchAdd, false, false)?;
            of.p50_ns.map(|nanos| nanos as f64)
        };
        let far = || Some(p50(System::Rack)? / p50(System::Peer(Library::OpenShmem))?);
        let adds = |hot| self.over_shmem(TransportKind::Udp, Operation::Add, hot);
        let busy = self.find(TransportKind::Udp, System::Rack, Operation::FetchAdd, false, true);
        let busy = busy.and_then(|of| of.p50_ns).map(|nanos| nanos as f64 / 1e3);
        let most_busy = BUSY_P50.as_secs_f64() * 1e6;
        self.targets = vec![
            most("shm: fetch_add on random words", MOST_TIME_NEAR, time(false)),
            most("shm: fetch_add on one word", MOST_TIME_NEAR, time(true)),
            most("udp: half of fetch_adds on random words", MOST_TIME_FAR, far()),
            least("udp: adds in flight on random words", LEAST_RANDOM, adds(false)),
            least("udp: adds in flight on one word", LEAST_HOT, adds(true)),
            Verdict {
                what: "udp: half of fetch_adds on a target that computes",
                target: most_busy,
                is: busy,
                met: busy.map(|busy| busy < most_busy),
                text: format!("under {most_busy} µs"),
            },
        ];
    }

    pub(super) fn text(&self) -> String {
        let time = |nanos: f64| if nanos < 1000.0 { format!("{nanos:.1} ns") } else { micros(nanos) };
        let timed = |nanos: Option<u64>| nanos.map_or_else(String::new, |nanos| time(nanos as f64));
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|Row { transport, processes, of }| {
                let against = |library| {
                    let same = |row: &&Row| {
                        let peer = Measured { system: System::Peer(library), ..of.clone() };
                        (row.transport, row.processes) == (*transport, *processes) && row.of.is_alike(&peer)
                    };
                    let peer = self.rows.iter().find(same).filter(|_| of.system == System::Rack);
                    peer.map_or_else(String::new, |row| format!("{:.2}x", of.per_second / row.of.per_second))
                };
                let path = match (of.system, transport) {
                    (System::Peer(_), TransportKind::Udp) => "TCP",
                    (_, TransportKind::Udp) => "UDP",
                    _ => "shared memory",
                };
                let word = match (of.hot, of.busy) {
                    (true, _) => "one",
                    (false, true) => "random, home computes",
                    (false, false) => "random",
                };
                vec![
                    format!("{} over {path}", of.system.name()),
                    processes.to_string(),
                    of.operation.name().to_owned(),
                    word.to_owned(),
                    format!("{:.3} M", of.per_second / 1e6),
                    timed(of.p50_ns),
                    timed(of.p99_ns),
                    against(Library::OpenShmem),
                    against(Library::Mpi),
                ]
            })
            .collect();
        let header = [
            "system",
            "processes",
            "operation",
            "word",
            "a second",
            "p50",
            "p99",
            "over OpenSHMEM",
            "over MPI",
        ];
        let mut text = format!(
            "Operations on {} words of another process; {} in flight where they are not waited for\n\n{}\n",
            self.words,
            self.in_flight,
            table(&header, &rows)
        );
        for Verdict { what, is, met, text: target, .. } in &self.targets {
            let verdict = match (is, met) {
                (Some(is), Some(met)) => format!("{is:.2}: {}", if *met { "met" } else { "not met" }),
                _ => "nothing to compare with".to_owned(),
            };
            text += &format!("{what}: {target}; {verdict}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(system: System, operation: Operation, hot: bool, per_second: f64) -> Measured {
        Measured {
            system,
            operation,
            hot,
            busy: false,
            per_second,
            p50_ns: Some((1e9 / per_second) as u64),
            p99_ns: None,
        }
    }

    fn report(of_rack: f64) -> WordsReport {
        let mut report = WordsReport::new(vec![2], 1, 1, 1, 1);
        for hot in [false, true] {
            for (operation, kind) in [
                (Operation::FetchAdd, TransportKind::Shm),
                (Operation::FetchAdd, TransportKind::Udp),
                (Operation::Add, TransportKind::Udp),
            ] {
                report.add(kind, 2, measured(System::Peer(Library::OpenShmem), operation, hot, 100.0));
                report.add(kind, 2, measured(System::Rack, operation, hot, of_rack));
            }
        }
        report
    }

    #[test]
    fn targets_that_are_missed_are_named() {
        let mut report = report(99.0);
        let busy = Measured { busy: true, ..measured(System::Rack, Operation::FetchAdd, false, 1.0) };
        report.add(TransportKind::Udp, 2, busy);
        report.judge();
        let text = report.text();
        assert_eq!(text.matches("not met").count(), 6, "{text}");
        assert!(
            text.contains("on one word: at least 40x the throughput of OpenSHMEM; 0.99: not met"),
            "{text}"
        );
    }

    #[test]
    fn targets_that_are_reached_say_by_how_much() {
        let mut report = report(4000.0);
        report.judge();
        let text = report.text();
        assert_eq!((text.matches(": met").count(), text.matches("not met").count()), (5, 0), "{text}");
        assert!(text.contains("0.03: met") && text.contains("40.00: met"), "{text}");
        assert!(text.contains("nothing to compare with"), "nobody computed: {text}");
    }

    #[test]
    fn without_peers_nothing_is_judged() {
        let mut report = WordsReport::new(vec![2], 1, 1, 1, 1);
        report.add(TransportKind::Udp, 2, measured(System::Rack, Operation::Add, true, 1e9));
        report.judge();
        assert!(report.targets.iter().all(|target| target.met.is_none()));
    }
}
