//! Litmus programs: a few loads and stores of several threads, and which outcomes a memory model forbids.
//!
//! They run on whatever is memory: slices of atomic words, as each thread sees them. Each program is run on many places at once,
//! one word of `x` and one of `y` for each; a pass stores a value that was never there before, so nothing has to be cleared.
//!
//! The model is that of x86 (TSO) for plain loads and stores, and sequential consistency for atomics. An outcome that only the
//! first one allows is *weak*: it is counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// A program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// Each of two threads stores to its location, and loads the other's.
    StoreBuffering,
    /// One thread stores data, then a flag; the other one loads the flag, then the data.
    MessagePassing,
    /// Each of two threads loads the other's location, and stores to its own.
    LoadBuffering,
    /// Two threads store to a location each; two load both, in different orders.
    Iriw,
}

/// How strong the accesses are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strength {
    /// Those of the machine: a load acquires, a store releases.
    Plain,
    /// Sequentially consistent ones.
    Atomic,
}

/// The words of one thread's view: `x` and `y` at every place.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// One location of each place.
    pub x: &'a [AtomicU64],
    /// The other one.
    pub y: &'a [AtomicU64],
}

/// What a thread's first and second load found at one place: true for the value of this pass. Threads that do not load find
/// nothing.
pub type Found = [bool; 2];

/// What came out of many places.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcomes {
    /// How many there were.
    pub all: u64,
    /// Outcomes that are not sequentially consistent, and allowed all the same.
    pub weak: u64,
    /// Outcomes that the model forbids.
    pub forbidden: u64,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::StoreBuffering, Self::MessagePassing, Self::LoadBuffering, Self::Iriw];

    /// How many threads it has.
    pub const fn threads(self) -> usize {
        if matches!(self, Self::Iriw) { 4 } else { 2 }
    }

    /// Runs one thread of it at all places, with this value; appends what it found.
    ///
    /// # Panics
    /// If there is no such thread, or the view's locations are not as many of both kinds.
    pub fn run(self, thread: usize, view: View<'_>, value: u64, strength: Strength, found: &mut Vec<Found>) {
        assert_eq!(view.x.len(), view.y.len(), "a place has an x and a y");
        let (loads, stores) = match strength {
            Strength::Plain => (Ordering::Acquire, Ordering::Release),
            Strength::Atomic => (Ordering::SeqCst, Ordering::SeqCst),
        };
        let is_new = |word: &AtomicU64| word.load(loads) == value;
        let set = |word: &AtomicU64| word.store(value, stores);
        for (x, y) in view.x.iter().zip(view.y) {
            found.push(match (self, thread) {
                (Self::StoreBuffering, 0) => {
                    set(x);
                    [is_new(y), false]
                }
                (Self::StoreBuffering, 1) => {
                    set(y);
                    [is_new(x), false]
                }
                (Self::MessagePassing, 0) => {
                    set(x);
                    set(y);
                    [false; 2]
                }
                (Self::MessagePassing, 1) => [is_new(y), is_new(x)],
                (Self::LoadBuffering, 0) => {
                    let found = is_new(x);
                    set(y);
                    [found, false]
                }
                (Self::LoadBuffering, 1) => {
                    let found = is_new(y);
                    set(x);
                    [found, false]
                }
                (Self::Iriw, 0) => {
                    set(x);
                    [false; 2]
                }
                (Self::Iriw, 1) => {
                    set(y);
                    [false; 2]
                }
                (Self::Iriw, 2) => [is_new(x), is_new(y)],
                (Self::Iriw, 3) => [is_new(y), is_new(x)],
                _ => panic!("{self:?} has no thread {thread}"),
            });
        }
    }

    /// Judges what all threads found, place by place.
    ///
    /// # Panics
    /// If a thread is missing, or places of one.
    pub fn judge(self, strength: Strength, found: &[Vec<Found>]) -> Outcomes {
        assert_eq!(found.len(), self.threads(), "every thread says what it found");
        let places = found[0].len();
        let mut outcomes = Outcomes { all: places as u64, ..Outcomes::default() };
        let mut of_threads: Vec<_> = found.iter().map(|found| found.iter()).collect();
        for _ in 0..places {
            let here: Vec<Found> = of_threads
                .iter_mut()
                .map(|found| *found.next().expect("every thread has been at every place"))
                .collect();
            let at = |thread: usize| here[thread];
            // What no interleaving of the threads brings about.
            let inconsistent = match self {
                Self::StoreBuffering => !at(0)[0] && !at(1)[0],
                Self::MessagePassing => at(1) == [true, false],
                Self::LoadBuffering => at(0)[0] && at(1)[0],
                Self::Iriw => at(2) == [true, false] && at(3) == [true, false],
            };
            // A store may wait in its processor's buffer, and that is all.
            if inconsistent && self == Self::StoreBuffering && strength == Strength::Plain {
                outcomes.weak += 1;
            } else if inconsistent {
                outcomes.forbidden += 1;
            }
        }
        outcomes
    }
}

impl Outcomes {
    /// Both together.
    pub fn add(&mut self, more: &Self) {
        self.all += more.all;
        self.weak += more.weak;
        self.forbidden += more.forbidden;
    }
}

/// Runs a program a number of passes, its threads each on a view, in any order.
///
/// # Panics
/// If it has another number of threads.
pub fn run(program: Program, strength: Strength, views: &[View<'_>], first: u64, passes: u64) -> Outcomes {
    assert_eq!(views.len(), program.threads(), "a view for each thread");
    let barrier = std::sync::Barrier::new(views.len());
    let found: Vec<Vec<Found>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(views)
            .map(|(thread, view)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut found = Vec::new();
                    for pass in 0..passes {
                        barrier.wait();
                        program.run(thread, *view, first + pass, strength, &mut found);
                    }
                    found
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    program.judge(strength, &found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_program_forbids_is_told_from_what_it_allows() {
        let judge = |program: Program, strength, found: &[Found]| {
            program.judge(strength, &found.iter().map(|one| vec![*one]).collect::<Vec<_>>())
        };
        let [none, both] = [[false, false], [true, true]];
        let old = [[false; 2]; 2];
        assert_eq!(judge(Program::StoreBuffering, Strength::Plain, &old).weak, 1);
        assert_eq!(judge(Program::StoreBuffering, Strength::Atomic, &old).forbidden, 1);
        assert_eq!(judge(Program::MessagePassing, Strength::Plain, &[none, [true, false]]).forbidden, 1);
        assert_eq!(judge(Program::MessagePassing, Strength::Plain, &[none, [false, true]]).forbidden, 0);
        assert_eq!(judge(Program::LoadBuffering, Strength::Plain, &[both, both]).forbidden, 1);
        let split = [none, none, [true, false], [true, false]];
        assert_eq!(judge(Program::Iriw, Strength::Plain, &split).forbidden, 1);
        assert_eq!(judge(Program::Iriw, Strength::Atomic, &[none, none, both, [true, false]]).forbidden, 0);
    }

    #[test]
    fn the_memory_of_this_machine_keeps_to_the_model() {
        let words: Vec<AtomicU64> = (0..128).map(|_| AtomicU64::new(0)).collect();
        let view = View { x: &words[..64], y: &words[64..] };
        for (round, program) in (0..).zip(Program::ALL) {
            for strength in [Strength::Plain, Strength::Atomic] {
                let views = vec![view; program.threads()];
                let first = 1 + round * 1000 + if strength == Strength::Plain { 0 } else { 500 };
                let outcomes = run(program, strength, &views, first, 100);
                assert_eq!((outcomes.all, outcomes.forbidden), (6400, 0), "{program:?} {strength:?}");
            }
        }
    }
}
