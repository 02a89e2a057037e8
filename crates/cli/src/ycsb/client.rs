//! One client of the store: one thread of one node, which does one operation after another.
//!
//! A client is a closed loop: the next operation starts when the one before has returned, so that throughput
//! and latency are two sides of one number. The time of an operation is that of the store's call alone; drawing
//! keys and values counts for the throughput only, as in YCSB.
//!
//! Where all operations are reads of a cache, drawing a key takes as long as reading its record. So requests are drawn
//! some at a time: the processor then overlaps the draws. And a read that follows another one began when that one
//! returned: a run of reads looks at the clock once an operation.

use crate::clock::Moment;
use std::ops::Range;

use super::distribution::Chooser;
use super::history::{Did, Digest, Recorder};
use super::keys::InsertSequence;
use super::latency::Latencies;
use super::phase::Gauge;
use super::random::Random;
use super::store::{Session, StoreError};
use super::trips::Trips;
use super::workload::{OperationKind, Workload};

/// Requests that are drawn at a time, where none of them changes which records there are.
const AHEAD: u64 = 64;

/// What a client is going to do.
#[derive(Clone, Debug)]
struct Request {
    kind: OperationKind,
    /// Of which record; nothing for a new one.
    key: Vec<u8>,
}

/// One client and what it has seen.
pub(crate) struct Client<'a, S> {
    session: S,
    workload: &'a Workload,
    chooser: Chooser,
    random: Random,
    recorder: Option<Recorder<'a>>,
    /// Drawn, in order.
    ahead: Vec<Request>,
    /// When the last read returned, if nothing was done since.
    idle_since: Option<Moment>,
    /// The operation in flight: its key, and the record or field that it reads or writes.
    key: Vec<u8>,
    record: Vec<u8>,
    field: Vec<u8>,
    /// The record as the operation found it, for the history.
    before: Vec<u8>,
    latencies: Latencies,
    trips: Trips,
    /// Operations of the run that did not find a record that must be there.
    absent: u64,
}

impl<'a, S: Session> Client<'a, S> {
    /// A client with a stream of random numbers of its own.
    pub(crate) fn new(
        session: S,
        workload: &'a Workload,
        chooser: Chooser,
        random: Random,
        recorder: Option<Recorder<'a>>,
    ) -> Self {
        Self {
            session,
            workload,
            chooser,
            random,
            recorder,
            ahead: Vec::new(),
            idle_since: None,
            key: Vec::new(),
            record: vec![0; workload.record_len()],
            field: vec![0; workload.field_len],
            before: Vec::new(),
            latencies: Latencies::new(&workload.mix),
            trips: Trips::default(),
            absent: 0,
        }
    }

    /// Goes on with another session.
    pub(crate) fn switch_to(&mut self, session: S) {
        self.session = session;
    }

    /// The latencies of its run.
    pub(crate) fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// The round trips of its run.
    pub(crate) fn trips(&self) -> &Trips {
        &self.trips
    }

    /// Operations of the run that did not find a record that must be there.
    pub(crate) fn absent(&self) -> u64 {
        self.absent
    }

    /// Forgets what it has measured: the next phase is another one.
    pub(crate) fn forget(&mut self) {
        self.latencies.clear();
        self.trips = Trips::default();
        self.absent = 0;
    }

    /// Inserts its part of the data set.
    pub(crate) fn load(&mut self, records: Range<u64>, gauge: &Gauge<'_>) -> Result<(), StoreError> {
        for (done, record) in (1..).zip(records) {
            if gauge.stopped() {
                break;
            }
            self.draw_record();
            self.insert(record)?;
            gauge.show(done);
        }
        self.end_phase()
    }

    /// Does its part of the operations.
    pub(crate) fn run(
        &mut self,
        operations: u64,
        sequence: &InsertSequence,
        gauge: &Gauge<'_>,
    ) -> Result<(), StoreError> {
        // What is inserted may be asked for next: then nothing is drawn before it is due.
        let ahead = if self.workload.mix.insert_share() > 0.0 { 1 } else { AHEAD };
        let mut done = 0;
        'run: while done < operations {
            self.draw_ahead(ahead.min(operations - done), sequence);
            self.idle_since = None;
            for at in 0..self.ahead.len() {
                if gauge.stopped() {
                    break 'run;
                }
                let request = &mut self.ahead[at];
                std::mem::swap(&mut self.key, &mut request.key);
                let kind = request.kind;
                let idle_since = self.idle_since.take();
                let (invoke, returned) = match kind {
                    OperationKind::Read => self.read(idle_since)?,
                    OperationKind::Update => self.update()?,
                    OperationKind::Insert => self.insert_new(sequence)?,
                    OperationKind::ReadModifyWrite => self.read_modify_write()?,
                    OperationKind::Scan => self.scan()?,
                };
                self.latencies.record(kind, returned - invoke);
                if let Some(trips) = self.session.trips() {
                    self.trips.record(kind, trips);
                }
                done += 1;
                gauge.show(done);
            }
        }
        self.end_phase()
    }

    fn end_phase(&mut self) -> Result<(), StoreError> {
        self.recorder.as_mut().map_or(Ok(()), Recorder::flush)
    }

    fn read(&mut self, idle_since: Option<Moment>) -> Result<(Moment, Moment), StoreError> {
        let invoke = idle_since.unwrap_or_else(Moment::now);
        let found = self.session.read(&self.key, &mut self.record);
        let returned = Moment::now();
        let found = self.explain(OperationKind::Read, found)?;
        self.absent += u64::from(!found);
        if let Some(recorder) = &mut self.recorder {
            let did = Did::Read(found.then(|| Digest::of(&self.record)));
            recorder.record(&self.key, did, invoke, Some(returned))?;
        } else {
            self.idle_since = Some(returned);
        }
        Ok((invoke, returned))
    }

    /// There is no history of scans: they are not of one key.
    fn scan(&mut self) -> Result<(Moment, Moment), StoreError> {
        let (least, most) = self.workload.scan_lengths;
        let records = least + self.random.below(most - least + 1);
        let (record, mut bytes) = (&mut self.record, 0);
        let invoke = Moment::now();
        let found = self.session.scan(&self.key, records, |found| {
            record.clear();
            record.extend_from_slice(found);
            bytes += found.len();
        });
        let returned = Moment::now();
        let found = self.explain(OperationKind::Scan, found)?;
        // The first one is there, and the last ones have nothing behind them.
        self.absent += u64::from(found == 0 || bytes != found as usize * self.workload.record_len());
        Ok((invoke, returned))
    }

    fn insert_new(&mut self, sequence: &InsertSequence) -> Result<(Moment, Moment), StoreError> {
        let record = sequence.begin();
        self.draw_record();
        let times = self.insert(record)?;
        sequence.acknowledge(record);
        Ok(times)
    }

    /// Inserts what `self.record` holds.
    fn insert(&mut self, record: u64) -> Result<(Moment, Moment), StoreError> {
        self.workload.names.write(record, &mut self.key);
        let invoke = Moment::now();
        let done = self.session.insert(&self.key, &self.record);
        let returned = Moment::now();
        if let Some(recorder) = &mut self.recorder {
            let did = Did::Insert(Digest::of(&self.record));
            recorder.record(&self.key, did, invoke, done.is_ok().then_some(returned))?;
        }
        self.explain(OperationKind::Insert, done)?;
        Ok((invoke, returned))
    }

    fn update(&mut self) -> Result<(Moment, Moment), StoreError> {
        if self.workload.write_all_fields {
            self.draw_record();
            return self.replace();
        }
        let at = self.draw_field();
        if self.recorder.is_some() {
            return self.modify(OperationKind::Update, at);
        }
        let invoke = Moment::now();
        let found = self.session.update(&self.key, at, &self.field);
        let returned = Moment::now();
        self.absent += u64::from(!self.explain(OperationKind::Update, found)?);
        Ok((invoke, returned))
    }

    /// An update of all fields needs nothing of the record that was there.
    fn replace(&mut self) -> Result<(Moment, Moment), StoreError> {
        let invoke = Moment::now();
        let done = self.session.insert(&self.key, &self.record);
        let returned = Moment::now();
        if let Some(recorder) = &mut self.recorder {
            let did = Did::Update(Some(Digest::of(&self.record)));
            recorder.record(&self.key, did, invoke, done.is_ok().then_some(returned))?;
        }
        self.explain(OperationKind::Update, done)?;
        Ok((invoke, returned))
    }

    fn read_modify_write(&mut self) -> Result<(Moment, Moment), StoreError> {
        if self.workload.write_all_fields {
            self.draw_record();
            return self.modify(OperationKind::ReadModifyWrite, 0);
        }
        let at = self.draw_field();
        self.modify(OperationKind::ReadModifyWrite, at)
    }

    /// Changes the record from byte `at` on, atomically, and records the record before and after. This is also
    /// how a field is updated when there is a history (see [`super::history`]).
    fn modify(&mut self, kind: OperationKind, at: usize) -> Result<(Moment, Moment), StoreError> {
        let whole = kind == OperationKind::ReadModifyWrite && self.workload.write_all_fields;
        let change = if whole { &self.record } else { &self.field };
        let (before, digested, mut tried) = (&mut self.before, self.recorder.is_some(), false);
        let invoke = Moment::now();
        let found = self.session.modify(&self.key, |record| {
            // Digests are made of the copy later: others may be waiting for this block.
            if digested {
                before.clear();
                before.extend_from_slice(record);
            }
            tried = true;
            overwrite(record, at, change);
        });
        let returned = Moment::now();
        if let Some(recorder) = &mut self.recorder {
            let absent = found == Ok(false);
            let read = Digest::of(before);
            overwrite(before, at, change);
            let new = Digest::of(before);
            let did = match kind {
                OperationKind::ReadModifyWrite if absent => Did::Read(None),
                OperationKind::ReadModifyWrite => Did::ReadModifyWrite { read, new },
                _ => Did::Update((!absent).then_some(new)),
            };
            // What failed before it came to a change has changed nothing.
            if found.is_ok() || tried {
                recorder.record(&self.key, did, invoke, found.is_ok().then_some(returned))?;
            }
        }
        self.absent += u64::from(!self.explain(kind, found)?);
        Ok((invoke, returned))
    }

    /// Draws the next requests: their kinds, and the records that they ask for.
    fn draw_ahead(&mut self, count: u64, sequence: &InsertSequence) {
        let last = sequence.last();
        let count = usize::try_from(count).expect("at most some dozens");
        self.ahead.resize(count, Request { kind: OperationKind::Read, key: Vec::new() });
        for request in &mut self.ahead {
            request.kind = self.workload.mix.choose(self.random.unit());
            if request.kind != OperationKind::Insert {
                let record = self.chooser.next(&mut self.random, last);
                self.workload.names.write(record, &mut request.key);
            }
        }
    }

    /// Draws a field and its new value; gives where it starts in the record.
    fn draw_field(&mut self) -> usize {
        self.random.printable(&mut self.field);
        let field = self.random.below(self.workload.fields as u64);
        usize::try_from(field).expect("a number of fields") * self.workload.field_len
    }

    fn draw_record(&mut self) {
        // A read may have left another length behind.
        self.record.resize(self.workload.record_len(), 0);
        self.random.printable(&mut self.record);
    }

    /// Adds to an error what it happened to.
    fn explain<T>(&self, kind: OperationKind, result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.map_err(|error| {
            StoreError(format!(
                "{} of key {} failed: {}",
                kind.name(),
                String::from_utf8_lossy(&self.key),
                error.0
            ))
        })
    }
}

/// Writes over a part of a record, or, if a record is shorter than all records are, over what it has there.
fn overwrite(record: &mut [u8], at: usize, change: &[u8]) {
    if let Some(part) = record.get_mut(at..) {
        let len = part.len().min(change.len());
        part[..len].copy_from_slice(&change[..len]);
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
