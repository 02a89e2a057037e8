//! What a rack has to reach, as multiples of a peer's throughput in the same run.

use cli::processes::TransportKind;

/// One mark.
pub(super) struct Mark {
    pub(super) kind: TransportKind,
    pub(super) workload: &'static str,
    /// At least so many times.
    pub(super) times: f64,
    /// Against Redis whose clients send ahead.
    pub(super) deep: bool,
}

const fn mark(kind: TransportKind, workload: &'static str, times: f64) -> Mark {
    Mark { kind, workload, times, deep: false }
}

const fn deep(kind: TransportKind, workload: &'static str, times: f64) -> Mark {
    Mark { kind, workload, times, deep: true }
}

/// All marks.
pub(super) const MARKS: [Mark; 8] = [
    mark(TransportKind::Shm, "A", 1.5),
    mark(TransportKind::Shm, "B", 3.0),
    mark(TransportKind::Shm, "C", 20.0),
    deep(TransportKind::Shm, "C", 1.0),
    mark(TransportKind::Udp, "A", 1.0),
    mark(TransportKind::Udp, "B", 1.5),
    mark(TransportKind::Udp, "C", 20.0),
    deep(TransportKind::Udp, "C", 1.0),
];
