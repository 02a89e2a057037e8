//! What `peers --locks` prints.

use serde::Serialize;

use super::RECORD;
use crate::bench::rounds::table;

/// What updates over shared memory must be, against Redis and against etcd.
const LEAST_OVER_REDIS: f64 = 20.0;
const LEAST_OVER_ETCD: f64 = 100.0;

#[derive(Serialize)]
pub(super) struct LockPeersReport {
    record_bytes: usize,
    least_over_redis: f64,
    least_over_etcd: f64,
    rows: Vec<Row>,
}

/// Updates per second. None: it is not installed.
#[derive(Serialize)]
pub(super) struct Row {
    clients: u16,
    redis_per_second: Option<f64>,
    etcd_per_second: Option<f64>,
    shm: OnRack,
    udp: OnRack,
}

/// On a rack.
#[derive(Serialize)]
struct OnRack {
    per_second: f64,
    over_redis: Option<f64>,
    over_etcd: Option<f64>,
    /// The share of the client that got least, against an equal share.
    least_share: f64,
}

impl Row {
    /// Updates per second of the services, and of racks with the least share.
    pub(super) fn new(
        clients: u16,
        (redis, etcd): (Option<f64>, Option<f64>),
        (shm, udp): ((f64, f64), (f64, f64)),
    ) -> Self {
        let on_rack = |(per_second, least_share): (f64, f64)| OnRack {
            per_second,
            over_redis: redis.map(|redis| per_second / redis),
            over_etcd: etcd.map(|etcd| per_second / etcd),
            least_share,
        };
        Self { clients, redis_per_second: redis, etcd_per_second: etcd, shm: on_rack(shm), udp: on_rack(udp) }
    }
}

impl LockPeersReport {
    pub(super) fn new(rows: Vec<Row>) -> Self {
        Self {
            record_bytes: RECORD,
            least_over_redis: LEAST_OVER_REDIS,
            least_over_etcd: LEAST_OVER_ETCD,
            rows,
        }
    }

    pub(super) fn text(&self) -> String {
        let rate = |rate: f64| format!("{rate:.0}");
        let installed = |rate_of: Option<f64>| rate_of.map_or_else(|| "-".to_owned(), rate);
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}x"));
        let on_rack = |rack: &OnRack| {
            let share = format!("{:.0} %", rack.least_share * 100.0);
            [rate(rack.per_second), ratio(rack.over_redis), ratio(rack.over_etcd), share]
        };
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                let services = [
                    row.clients.to_string(),
                    installed(row.redis_per_second),
                    installed(row.etcd_per_second),
                ];
                services.into_iter().chain(on_rack(&row.shm)).chain(on_rack(&row.udp)).collect()
            })
            .collect();
        let header = [
            "clients",
            "Redis",
            "etcd",
            "shm",
            "over Redis",
            "over etcd",
            "least share",
            "udp",
            "over Redis",
            "over etcd",
            "least share",
        ];
        let targets = [
            ("Redis", "redis-server", LEAST_OVER_REDIS, self.least(|rack| rack.over_redis)),
            ("etcd", "etcd-server", LEAST_OVER_ETCD, self.least(|rack| rack.over_etcd)),
        ];
        let judged: String = targets
            .into_iter()
            .map(|(name, package, target, least)| match least {
                None => format!("{name} is not installed: its Debian package is {package}\n"),
                Some(least) => {
                    let met = if least >= target { "met" } else { "not met" };
                    format!("target over shared memory: at least {target:.0}x {name}: {met}\n")
                }
            })
            .collect();
        format!(
            "Updates per second of one record of {} bytes under one lock\n\n{}\n{judged}",
            self.record_bytes,
            table(&header, &rows)
        )
    }

    /// The least ratio over shared memory.
    fn least(&self, of: impl Fn(&OnRack) -> Option<f64>) -> Option<f64> {
        self.rows
            .iter()
            .map(|row| of(&row.shm))
            .try_fold(f64::INFINITY, |least, ratio| Some(least.min(ratio?)))
    }
}
