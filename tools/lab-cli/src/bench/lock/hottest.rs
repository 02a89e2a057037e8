//! What the lock that is asked for most is doing while a mix runs: somebody is inside, it is on its way to somebody who waits, or it is
//! idle. The parts of the time sum to one.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The lock that plans ask for most.
const HOTTEST: u64 = 0;

/// When a thread asked for the lock, when it was inside, and when it began to leave: by the machine's clock, which all processes read.
pub(crate) type Span = [u64; 3];

/// What a thread does with the hottest lock, where somebody wants to know it.
#[derive(Default)]
pub(super) struct Trace(Option<Vec<Span>>);

/// One time.
pub(super) struct Turn(Option<Span>);

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Trace {
    pub(super) const fn begun() -> Self {
        Self(Some(Vec::new()))
    }

    #[inline]
    pub(super) fn asks(&self, lock: u64) -> Turn {
        Turn((lock == HOTTEST && self.0.is_some()).then(|| [now(), 0, 0]))
    }

    #[inline]
    pub(super) fn note(&mut self, turn: Turn) {
        if let (Some(all), Some(span)) = (&mut self.0, turn.0) {
            all.push(span);
        }
    }

    /// All of it; nothing is noted from then on.
    pub(super) fn take(&mut self) -> Vec<Span> {
        self.0.take().unwrap_or_default()
    }
}

impl Turn {
    #[inline]
    pub(super) fn is_in(&mut self) {
        if let Some(span) = &mut self.0 {
            span[1] = now();
        }
    }

    #[inline]
    pub(super) fn leaves(&mut self) {
        if let Some(span) = &mut self.0 {
            span[2] = now();
        }
    }
}

/// Parts of the time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Hottest {
    /// Somebody is inside.
    pub(super) held: f64,
    /// Nobody is inside, and somebody waits.
    pub(super) on_its_way: f64,
    /// Nobody is inside, and nobody waits.
    pub(super) idle: f64,
    /// Of a thread's time, how much it waits for this lock.
    pub(super) threads_wait: f64,
}

impl Hottest {
    /// From what threads did with it: while all of them were at work. None if that was never.
    pub(super) fn of(threads: &[Vec<Span>]) -> Option<Self> {
        let first = threads.iter().map(|spans| spans.first().map(|span| span[0]));
        let last = threads.iter().map(|spans| spans.last().map(|span| span[2]));
        let begin = first.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let end = last.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        if end <= begin {
            return None;
        }
        // Who comes and who goes: of those who wait, and of those inside.
        let clipped = |at: u64| at.clamp(begin, end);
        let spans = threads.iter().flatten();
        let mut events: Vec<(u64, i64, i64)> = spans
            .flat_map(|[asked, entered, left]| [(*asked, 1, 0), (*entered, -1, 1), (*left, 0, -1)])
            .map(|(at, waits, inside)| (clipped(at), waits, inside))
            .collect();
        events.sort_unstable_by_key(|(at, ..)| *at);
        events.push((end, 0, 0));
        let (mut at, mut waits, mut inside) = (begin, 0, 0);
        let (mut held, mut on_its_way, mut waited) = (0, 0, 0);
        for (next, more_wait, more_inside) in events {
            let span = next - at;
            waited += span * u64::try_from(waits).unwrap_or(0);
            match (inside, waits) {
                (1.., _) => held += span,
                (_, 1..) => on_its_way += span,
                _ => {}
            }
            (at, waits, inside) = (next, waits + more_wait, inside + more_inside);
        }
        let part = |nanos: u64| nanos as f64 / (end - begin) as f64;
        Some(Self {
            held: part(held),
            on_its_way: part(on_its_way),
            idle: 1.0 - part(held) - part(on_its_way),
            threads_wait: part(waited) / threads.len() as f64,
        })
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let parts = [self.held, self.on_its_way, self.idle, self.threads_wait];
        parts.map(|part| format!("{:.0} %", part * 100.0)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_locks_time_are_those_of_its_threads() {
        // Both are at work from 10 to 110: the first is inside from 20 to 40 and 90 to 110, the second from 50 to 70.
        let first = vec![[0, 20, 40], [80, 90, 110]];
        let second = vec![[10, 50, 70], [105, 115, 120]];
        let found = Hottest::of(&[first.clone(), second]).unwrap();
        let expected = Hottest { held: 0.6, on_its_way: 0.3, idle: 0.1, threads_wait: 0.325 };
        let parts = |it: Hottest| [it.held, it.on_its_way, it.idle, it.threads_wait];
        for (found, expected) in parts(found).into_iter().zip(parts(expected)) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        assert_eq!(Hottest::of(&[first, Vec::new()]), None, "the second was never at work");
    }

    #[test]
    fn what_is_not_traced_is_not_noted() {
        let mut trace = Trace::default();
        let turn = trace.asks(HOTTEST);
        trace.note(turn);
        assert!(trace.take().is_empty());
        let mut trace = Trace::begun();
        for lock in [HOTTEST, HOTTEST + 1] {
            let mut turn = trace.asks(lock);
            turn.is_in();
            turn.leaves();
            trace.note(turn);
        }
        let [[asked, entered, left]] = trace.take()[..] else { panic!("one of the two") };
        assert!(0 < asked && asked <= entered && entered <= left);
    }
}
