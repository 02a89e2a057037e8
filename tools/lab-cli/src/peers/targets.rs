//! What a rack has to reach, as multiples of a peer's throughput in the same run.

use cli::processes::TransportKind;

/// One target.
pub(super) struct Target {
    pub(super) kind: TransportKind,
    pub(super) workload: &'static str,
    /// At least so many times.
    pub(super) times: f64,
    /// Against Redis whose clients send ahead.
    pub(super) deep: bool,
}

const fn target(kind: TransportKind, workload: &'static str, times: f64) -> Target {
    Target { kind, workload, times, deep: false }
}

const fn deep(kind: TransportKind, workload: &'static str, times: f64) -> Target {
    Target { kind, workload, times, deep: true }
}

/// All targets.
pub(super) const TARGETS: [Target; 8] = [
    target(TransportKind::Shm, "A", 1.5),
    target(TransportKind::Shm, "B", 3.0),
    target(TransportKind::Shm, "C", 20.0),
    deep(TransportKind::Shm, "C", 1.0),
    target(TransportKind::Udp, "A", 1.0),
    target(TransportKind::Udp, "B", 1.5),
    target(TransportKind::Udp, "C", 20.0),
    deep(TransportKind::Udp, "C", 1.0),
];
