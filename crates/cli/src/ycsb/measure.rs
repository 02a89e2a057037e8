//! One workload from an empty store to its numbers: load, then run.

use std::time::Duration;

use super::client::Client;
use super::distribution::Chooser;
use super::history::History;
use super::keys::InsertSequence;
use super::latency::Latencies;
use super::phase::{Span, in_parallel};
use super::progress::Progress;
use super::random::Random;
use super::store::{Session, StoreError, Traffic};
use super::trips::Trips;
use super::workload::Workload;
use crate::interrupt::Interrupt;
use crate::processes::place::Travelled;
use crate::processes::taken::Taken;

/// What a command decides for its workloads.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Of all random numbers.
    pub seed: u64,
    /// Which of the command's workloads this is. Each has streams of random numbers of its own, so that no two
    /// writes of a history have the same digest.
    pub ordinal: u64,
    /// Where every operation is written down.
    pub history: Option<&'a History>,
    /// Operations before the run that are not measured.
    pub warm_up: u64,
    /// Ends the run early.
    pub interrupt: &'a Interrupt,
}

/// A workload that ran, to its end or until somebody stopped it.
pub struct Measured {
    /// How long the load took.
    pub load: Duration,
    /// How long the run took.
    pub took: Duration,
    /// How long each operation took.
    pub latencies: Latencies,
    /// Round trips, where the store counts them.
    pub(crate) trips: Trips,
    /// Operations that did not find a record that must be there. Anything but 0 is a bug of the store.
    pub absent: u64,
    /// What the rack counted during the run.
    pub(crate) traffic: Traffic,
    /// What its transports did during the run, if it has any.
    pub travelled: Option<Travelled>,
    /// What its processes took during the run, if it has any.
    pub taken: Option<Taken>,
}

/// Loads the records, one client a session, and runs the workload. None if it was stopped before there was
/// anything to measure. `traffic` reads the rack's counters; sessions may report what they did as late as when
/// they end, so load and run have their own, and the run's are gone before the counters are read.
pub(crate) fn measure<S: Session + Send>(
    workload: &Workload,
    sessions: impl Fn() -> Vec<S>,
    setting: &Setting<'_>,
    traffic: impl Fn() -> Traffic,
) -> Result<Option<Measured>, StoreError> {
    let chooser = Chooser::new(workload);
    let mut clients: Vec<Client<'_, S>> = (0..)
        .zip(sessions())
        .map(|(number, session)| {
            let random = Random::new(setting.seed, setting.ordinal << 32 | number);
            let recorder = setting.history.map(|history| history.recorder(number));
            Client::new(session, workload, chooser.clone(), random, recorder)
        })
        .collect();
    let count = clients.len() as u64;

    let mut progress = Progress::start(format!("workload {}: load", workload.name), workload.records);
    let load = in_parallel(&mut clients, setting.interrupt, &mut progress, |number, client, gauge| {
        let part = |number| part_start(workload.records, count, number);
        client.load(part(number as u64)..part(number as u64 + 1), gauge)
    })?;
    if setting.interrupt.requested() {
        return Ok(None);
    }
    let load = load.took();
    progress.finish(workload.records, load);

    let sequence = InsertSequence::after(workload.records);
    let run = |clients: &mut [Client<'_, S>], name: &str, operations| -> Result<Span, StoreError> {
        let mut progress = Progress::start(format!("workload {}: {name}", workload.name), operations);
        let span = in_parallel(clients, setting.interrupt, &mut progress, |number, client, gauge| {
            let part = |number| part_start(operations, count, number);
            client.run(part(number as u64 + 1) - part(number as u64), &sequence, gauge)
        })?;
        progress.finish(clients.iter().map(|client| client.latencies().count()).sum(), span.took());
        Ok(span)
    };
    if setting.warm_up > 0 {
        run(&mut clients, "warm-up", setting.warm_up)?;
    }
    let mut absent = 0;
    for (client, session) in clients.iter_mut().zip(sessions()) {
        absent += client.absent();
        client.forget();
        client.switch_to(session);
    }
    if setting.interrupt.requested() {
        return Ok(None);
    }
    let before = traffic();
    let took = run(&mut clients, "run ", workload.operations)?.took();
    let mut latencies = Latencies::new(&workload.mix);
    let mut trips = Trips::default();
    for client in &clients {
        latencies.add(client.latencies());
        trips.add(client.trips());
    }
    absent += clients.iter().map(Client::absent).sum::<u64>();
    drop(clients);
    let traffic = traffic().since(&before);
    Ok((latencies.count() > 0).then_some(Measured {
        load,
        took,
        latencies,
        trips,
        absent,
        traffic,
        travelled: None,
        taken: None,
    }))
}

/// Where part `number` of `parts` nearly equal parts of `total` starts.
pub fn part_start(total: u64, parts: u64, number: u64) -> u64 {
    total / parts * number + (total % parts).min(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ycsb::store::mock::MockStore;
    use crate::ycsb::workload::Mix;

    fn small(letter: char) -> Workload {
        Workload { records: 100, operations: 2003, ..Workload::letter(letter).unwrap() }
    }

    fn run(workload: &Workload, store: &MockStore, clients: usize) -> Result<Option<Measured>, StoreError> {
        let interrupt = Interrupt::default();
        let setting = Setting { seed: 1, ordinal: 0, history: None, warm_up: 0, interrupt: &interrupt };
        measure(workload, || vec![store; clients], &setting, Traffic::default)
    }

    #[test]
    fn parts_cover_the_whole_without_overlap_and_differ_by_at_most_one() {
        for (total, parts) in [(10, 3), (3, 10), (1, 1), (100, 8)] {
            let starts: Vec<u64> = (0..=parts).map(|number| part_start(total, parts, number)).collect();
            assert_eq!((starts[0], starts[starts.len() - 1]), (0, total));
            assert!(
                starts
                    .windows(2)
                    .all(|pair| (total / parts..=total / parts + 1).contains(&(pair[1] - pair[0])))
            );
        }
    }

    #[test]
    fn every_record_is_loaded_and_every_operation_done_exactly_once() {
        for letter in ['A', 'B', 'C', 'D', 'E', 'F'] {
            for clients in [1, 7] {
                let (workload, store) = (small(letter), MockStore::default());
                let measured = run(&workload, &store, clients).unwrap().unwrap();
                assert_eq!((measured.latencies.count(), measured.absent), (2003, 0), "workload {letter}");
                let inserts: u64 = measured
                    .latencies
                    .percentiles()
                    .iter()
                    .filter(|(kind, _)| kind.name() == "insert")
                    .map(|(_, percentiles)| percentiles.count)
                    .sum();
                assert_eq!(store.records.lock().unwrap().len() as u64, 100 + inserts, "workload {letter}");
            }
        }
    }

    #[test]
    fn kinds_happen_in_the_proportions_of_the_mix() {
        let workload = Workload { mix: Mix::new(0.5, 0.2, 0.1, 0.2), operations: 20_000, ..small('A') };
        let measured = run(&workload, &MockStore::default(), 2).unwrap().unwrap();
        for (kind, percentiles) in measured.latencies.percentiles() {
            let share = percentiles.count as f64 / 20_000.0;
            assert!((share - workload.mix.share(kind)).abs() < 0.02, "{kind:?}: {share}");
        }
    }

    #[test]
    fn records_keep_their_length_and_change_field_by_field() {
        let workload = Workload { records: 1, fields: 4, field_len: 3, operations: 1, ..small('A') };
        let workload = Workload { mix: Mix::new(0.0, 1.0, 0.0, 0.0), ..workload };
        let interrupt = Interrupt::default();
        let store = MockStore::default();
        let idle = Workload { operations: 1, mix: Mix::new(1.0, 0.0, 0.0, 0.0), ..workload.clone() };
        let setting = Setting { seed: 1, ordinal: 0, history: None, warm_up: 0, interrupt: &interrupt };
        measure(&idle, || vec![&store], &setting, Traffic::default).unwrap();
        let only = |store: &MockStore| store.records.lock().unwrap().values().next().unwrap().clone();
        let loaded = only(&store);
        // The same seed loads the same record; then one update follows.
        measure(&workload, || vec![&store], &setting, Traffic::default).unwrap();
        let updated = only(&store);
        let changed: Vec<usize> =
            (0..4).filter(|field| loaded[field * 3..][..3] != updated[field * 3..][..3]).collect();
        assert_eq!((updated.len(), changed.len()), (12, 1), "{loaded:?} {updated:?}");
    }

    #[test]
    fn a_store_that_fails_ends_the_run_with_the_operation_and_the_key() {
        let store = MockStore { full_at: Some(50), ..MockStore::default() };
        let error = run(&small('C'), &store, 4).err().unwrap();
        assert!(
            error.0.starts_with("insert of key user") && error.0.ends_with("the mock is full"),
            "{error:?}"
        );
    }

    #[test]
    fn a_store_that_loses_records_is_found_out() {
        struct Forgetful<'a>(&'a MockStore);
        impl Session for Forgetful<'_> {
            fn read(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, StoreError> {
                Ok(false)
            }
            fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<(), StoreError> {
                (&mut self.0).insert(key, record)
            }
            fn update(&mut self, _: &[u8], _: usize, _: &[u8]) -> Result<bool, StoreError> {
                Ok(false)
            }
            fn modify(&mut self, _: &[u8], _: impl FnMut(&mut Vec<u8>)) -> Result<bool, StoreError> {
                Ok(false)
            }
            fn scan(&mut self, _: &[u8], _: u64, mut each: impl FnMut(&[u8])) -> Result<u64, StoreError> {
                // A record that is not whole.
                each(b"half");
                Ok(1)
            }
        }
        let (store, interrupt) = (MockStore::default(), Interrupt::default());
        let setting = Setting { seed: 1, ordinal: 0, history: None, warm_up: 0, interrupt: &interrupt };
        for letter in ['A', 'F'] {
            let measured = measure(&small(letter), || vec![Forgetful(&store)], &setting, Traffic::default);
            assert_eq!(measured.unwrap().unwrap().absent, 2003, "workload {letter}");
        }
        let measured = measure(&small('E'), || vec![Forgetful(&store)], &setting, Traffic::default);
        let measured = measured.unwrap().unwrap();
        let (kind, scans) = measured.latencies.percentiles()[1];
        assert_eq!((kind.name(), scans.count), ("scan", measured.absent));
    }

    #[test]
    fn an_interrupt_stops_a_run_that_would_take_for_ever() {
        let interrupt = Interrupt::default();
        let setting = Setting { seed: 1, ordinal: 0, history: None, warm_up: 0, interrupt: &interrupt };
        let workload = Workload { operations: u64::MAX / 2, ..small('C') };
        let store = MockStore::default();
        let measured = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                interrupt.request();
            });
            measure(&workload, || vec![&store; 3], &setting, Traffic::default).unwrap()
        });
        let measured = measured.expect("300 ms are enough for some operations");
        assert!(measured.latencies.count() > 0 && measured.took < Duration::from_secs(30));
    }

    #[test]
    fn an_interrupt_during_the_load_leaves_nothing_to_report() {
        let interrupt = Interrupt::default();
        interrupt.request();
        let setting = Setting { seed: 1, ordinal: 0, history: None, warm_up: 0, interrupt: &interrupt };
        let store = MockStore::default();
        let measured = measure(&small('C'), || vec![&store], &setting, Traffic::default).unwrap();
        assert!(measured.is_none());
    }
}
