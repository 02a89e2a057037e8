//! Makes a failing run smaller: fewer steps, faults, nodes and threads, and still the same verdict.
//!
//! What must always hold: the case that comes out fails in the way of the one that went in.

use std::time::Instant;

use super::{Case, Failure, Knobs, Rack, World};

/// Other streams of choices that are tried where a run with fewer of something goes another way and ends well.
const STREAMS: u64 = 300;

impl<W: World<M, Message = M>, M: Copy> Rack<W, M> {
    /// The smallest case with the same verdict that is found until then.
    pub fn shrink(
        rules: W::Rules,
        case: &Case<W::Plan>,
        failure: &Failure,
        until: Instant,
    ) -> (Case<W::Plan>, Failure) {
        let mut search = Search::<W, M> { rules, best: *case, failure: failure.clone(), until };
        search.best.plan.rack.trace = false;
        // The same run, which is not gone on with.
        search.improve(|case| {
            (case.effort.steps, case.effort.operations, case.effort.faults) = (failure.steps, 0, 0);
        });
        for streams in [0, STREAMS] {
            while search.turn_all(streams) {}
        }
        (search.best, search.failure)
    }
}

struct Search<W: World<M>, M> {
    rules: W::Rules,
    best: Case<W::Plan>,
    failure: Failure,
    until: Instant,
}

impl<W: World<M, Message = M>, M: Copy> Search<W, M> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Takes the change if the run still fails in this way.
    fn improve(&mut self, change: impl FnOnce(&mut Case<W::Plan>)) -> bool {
        let mut case = self.best;
        change(&mut case);
        let Err(failure) = Rack::<W, M>::run_case(self.rules, &case) else { return false };
        let same = failure.verdict == self.failure.verdict && gist(&failure.what) == gist(&self.failure.what);
        if same {
            // Behind its last step it does nothing.
            case.effort.steps = case.effort.steps.min(failure.steps);
            (self.best, self.failure) = (case, failure);
        }
        same
    }

    /// Tries less of everything, one after the other; true if something became less.
    fn turn_all(&mut self, streams: u64) -> bool {
        let mut better = false;
        let names: Vec<&str> =
            self.best.knobs().iter().map(|knob| knob.name).filter(|name| *name != "stream").collect();
        for name in names {
            while !self.is_over() && self.turn(name, streams) {
                better = true;
            }
        }
        better
    }

    /// Tries less of one thing: the least, and if that is too little, ever closer to what it is.
    fn turn(&mut self, name: &str, streams: u64) -> bool {
        let mut case = self.best;
        let knobs = case.knobs();
        let knob = knobs.iter().find(|knob| knob.name == name).expect("it is one of them");
        let (now, least) = (knob.get(), knob.least);
        // What is not bounded is bounded by what there was.
        let now = if now == u64::MAX { self.counted() } else { now };
        let mut less = now.saturating_sub(least);
        while less > 0 && less >= now / 64 && !self.is_over() {
            let to = now - less;
            let turned = |case: &mut Case<W::Plan>| case.set(name, to).expect("it is in its range");
            let other = |stream| {
                move |case: &mut Case<W::Plan>| {
                    turned(case);
                    case.stream = stream;
                }
            };
            if self.improve(turned)
                || (1..=streams).any(|stream| !self.is_over() && self.improve(other(stream)))
            {
                return true;
            }
            less /= 2;
        }
        false
    }

    /// An upper bound of the faults that the run has had: some in each step.
    fn counted(&self) -> u64 {
        self.best.effort.steps as u64 * 4
    }
}

/// What went wrong, without the names and numbers of who was concerned.
fn gist(what: &str) -> Vec<&str> {
    let what = what.lines().next().unwrap_or_default();
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase());
    let words = what.split(|c: char| c.is_whitespace() || ",:;".contains(c)).filter(is_word);
    words.filter(|word| !["step", "faults", "off"].contains(word)).take(6).collect()
}

#[cfg(test)]
mod tests {
    use super::gist;

    #[test]
    fn a_gist_says_nothing_of_who_it_was() {
        let one = gist("step 1861: thread 2 gets into a lock that is no more: Want { lock: 1 }, now 7");
        let other =
            gist("faults off, step 3: thread 11 gets into a lock that is no more: Want { lock: 0 }, now 13");
        assert_eq!(one, other);
        assert_ne!(one, gist("step 3: the data changed under thread 3"));
    }
}
