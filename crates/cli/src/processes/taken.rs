//! What some processes have taken of their machine, as the kernel says it.

use std::fs;

use serde::Serialize;

/// Ticks of the clock in which the kernel counts processor time: a hundred a second, whatever it uses inside.
const TICK_NS: u64 = 10_000_000;

/// What processes have taken, or what came between two looks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Taken {
    /// Nanoseconds of processors, in steps of ten milliseconds; the kernel's work for them is among it.
    pub processor_ns: u64,
    /// Datagrams of UDP that have left their networks, if each has a network of its own.
    pub datagrams: u64,
    /// Times that a processor of this machine went from one thread to another, whosever they are.
    pub switches: u64,
    /// Times that a processor of this machine was interrupted to receive from a network.
    pub interrupts: u64,
}

impl Taken {
    /// What these have taken until now. None: one of them is not there, or the kernel does not say it.
    pub fn by(processes: impl IntoIterator<Item = u32>) -> Option<Self> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let of_machine = |line: &str, column: usize| -> Option<u64> {
            machine
                .lines()
                .find_map(|it| it.strip_prefix(line)?.split_ascii_whitespace().nth(column)?.parse().ok())
        };
        // Behind how many there were, as in the kernel's list: hi, timer, net_tx, net_rx.
        let (switches, interrupts) = (of_machine("ctxt ", 0)?, of_machine("softirq ", 4)?);
        let mut taken = Self { switches, interrupts, ..Self::default() };
        for process in processes {
            taken.processor_ns +=
                ticks(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)? * TICK_NS;
            taken.datagrams += datagrams(&fs::read_to_string(format!("/proc/{process}/net/snmp")).ok()?)?;
        }
        Some(taken)
    }

    /// What came since then.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            processor_ns: self.processor_ns - before.processor_ns,
            datagrams: self.datagrams - before.datagrams,
            switches: self.switches - before.switches,
            interrupts: self.interrupts - before.interrupts,
        }
    }
}

/// Ticks of a process, its own and the kernel's for it: the 14th and 15th of its numbers. The second is a name, which may
/// hold anything.
fn ticks(statistics: &str) -> Option<u64> {
    let (_, behind_name) = statistics.rsplit_once(") ")?;
    let mut numbers = behind_name.split_ascii_whitespace().skip(14 - 3);
    Some(numbers.next()?.parse::<u64>().ok()? + numbers.next()?.parse::<u64>().ok()?)
}

/// The first line of a protocol has names, the second one the numbers.
fn datagrams(statistics: &str) -> Option<u64> {
    let mut lines = statistics.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut columns = names.split(' ').zip(numbers.split(' '));
    columns.find(|(name, _)| *name == "OutDatagrams")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    #[test]
    fn what_a_process_takes_is_said_by_the_kernel() {
        let me = || Taken::by([std::process::id()]).expect("Linux says it");
        let before = me();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0], socket.local_addr().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(50) {}
        let taken = me().since(before);
        let all = [taken.processor_ns, taken.datagrams, taken.switches, taken.interrupts];
        assert!(all.iter().all(|count| *count > 0), "{taken:?}");
        assert_eq!(Taken::by([u32::MAX]), None);
    }

    #[test]
    fn a_name_with_brackets_and_other_protocols_do_not_confuse() {
        assert_eq!(ticks("1 (a) 9 (b) S 4 5 6 7 8 9 10 11 12 13 140 15 16"), Some(155));
        assert_eq!(ticks("1 (a) S 4"), None);
        let said = "Tcp: OutSegs\nTcp: 7\nUdp: InDatagrams OutDatagrams\nUdp: 1 2\nUdpLite: OutDatagrams\nUdpLite: 9\n";
        assert_eq!(datagrams(said), Some(2));
        assert_eq!(datagrams("Tcp: OutSegs\nTcp: 7\n"), None);
    }
}
