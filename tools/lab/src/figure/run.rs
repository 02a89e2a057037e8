//! Measures points on the cores that there are.
//!
//! What must always hold: what is measured at a point does not depend on how many threads measure, nor on which
//! other points there are. So each point's seed comes from the run's seed and the point itself.

use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::Results;
use super::measured::Measured;
use super::point::Point;

/// What watches a run, and may end it.
pub trait Watch: Sync {
    /// So many operations more are simulated. False: do not go on.
    fn advance(&self, operations: u64) -> bool;
}

/// Nobody watches.
pub struct Unwatched;

impl Watch for Unwatched {
    fn advance(&self, _: u64) -> bool {
        true
    }
}

/// A point's run was ended from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupted;

/// Measures all points on `threads` threads. `measure` gets a point and its seed.
///
/// # Errors
/// [`Interrupted`] if a point's run was.
///
/// # Panics
/// If a point's run does.
pub fn measure_all(
    points: &[Point],
    threads: usize,
    seed: u64,
    measure: impl Fn(&Point, u64) -> Result<Measured, Interrupted> + Sync,
) -> Result<Results, Interrupted> {
    let next = AtomicUsize::new(0);
    let places: Vec<Mutex<Option<Result<Measured, Interrupted>>>> =
        points.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(index) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < points.len())
        {
            let point = &points[index];
            let measured = measure(point, seed_of(point, seed));
            let ended = measured.is_err();
            *places[index].lock().expect("nobody panics with it") = Some(measured);
            if ended {
                next.store(points.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, points.len().max(1))).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().unwrap_or_else(|why| panic::resume_unwind(why));
        }
    });
    let measured = places.into_iter().map(|place| place.into_inner().expect("nobody panics with it"));
    let results: Result<Vec<_>, _> = points
        .iter()
        .zip(measured)
        .map(|(point, measured)| Ok((*point, measured.ok_or(Interrupted).flatten()?)))
        .collect();
    results.map(Results::new)
}

/// The seed of a point.
fn seed_of(point: &Point, seed: u64) -> u64 {
    let mut bytes = serde_json::to_vec(point).expect("numbers and names can be written");
    bytes.extend(seed.to_le_bytes());
    fnv(&bytes)
}

/// FNV-1a.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::point::{Load, Micro, Subject};

    fn points(count: u8) -> Vec<Point> {
        (0..count)
            .map(|sharing| Point::new(Subject::Concordia, Load::Micro(Micro::sharing(sharing))))
            .collect()
    }

    fn made_up(_: &Point, seed: u64) -> Result<Measured, Interrupted> {
        Ok(Measured { operations: seed, ..Measured::default() })
    }

    #[test]
    fn results_are_the_same_for_any_number_of_threads() {
        let run = |threads| measure_all(&points(20), threads, 5, made_up).unwrap().digest();
        assert_eq!([run(1), run(2), run(7), run(100)], [run(1); 4]);
    }

    #[test]
    fn a_point_does_not_depend_on_the_others() {
        let (few, many) = (
            measure_all(&points(2), 1, 5, made_up).unwrap(),
            measure_all(&points(9), 2, 5, made_up).unwrap(),
        );
        let last = points(2)[1];
        assert_eq!(few.at(last.subject, last.load), many.at(last.subject, last.load));
    }

    #[test]
    fn points_and_runs_have_seeds_of_their_own() {
        let [a, b]: [Point; 2] = points(2).try_into().unwrap();
        assert!(seed_of(&a, 1) != seed_of(&b, 1) && seed_of(&a, 1) != seed_of(&a, 2));
    }

    #[test]
    fn an_interrupted_point_ends_the_run() {
        let measured = AtomicUsize::new(0);
        let run = measure_all(&points(50), 1, 1, |_, _| {
            let before = measured.fetch_add(1, Ordering::Relaxed);
            if before == 3 { Err(Interrupted) } else { Ok(Measured::default()) }
        });
        assert_eq!((run.err(), measured.into_inner()), (Some(Interrupted), 4));
    }
}
