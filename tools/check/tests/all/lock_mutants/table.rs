//! The rules of the locks, in the order of `wire::rules`; what catches the mutant of each; what goes wrong without it.

use check::locks::Plan;
use wire::Faithful;
use wire::rules::without_lock;

use crate::lock_mutants::{runs, scenarios, scope};
use crate::mutants::mutant::{Found, Mutant, scenario};

/// One way to catch a mutant: words for it, and the function that does it.
macro_rules! by {
    ($rule:ident, lossless($from:literal)) => {
        ("runs without faults", || runs::<without_lock::$rule>(Plan::lossless, $from))
    };
    ($rule:ident, faults($from:literal)) => {
        ("random runs", || runs::<without_lock::$rule>(Plan::from_seed, $from))
    };
    ($rule:ident, restarts($from:literal)) => {
        ("runs with restarts", || runs::<without_lock::$rule>(Plan::with_restarts, $from))
    };
    ($rule:ident, losses($from:literal)) => {
        ("runs in which locks end", || {
            runs::<without_lock::$rule>(|seed| Plan::with_restarts(seed).freeing(), $from)
        })
    };
    ($rule:ident, scope($scope:literal)) => {
        (concat!("scope ", $scope), || scope::<without_lock::$rule>($scope))
    };
    ($rule:ident, scenario($scenario:ident)) => {
        (concat!("scenario ", stringify!($scenario)), || {
            scenario(scenarios::$scenario::<without_lock::$rule>, scenarios::$scenario::<Faithful>)
        })
    };
}

macro_rules! mutants {
    ($($rule:ident, $by:ident($arg:tt), $without:literal;)*) => {
        pub(crate) const MUTANTS: &[Mutant] = &[$({
            const BY: (&str, fn() -> Found) = by!($rule, $by($arg));
            Mutant { rule: stringify!($rule), without: $without, by: BY.0, check: BY.1 }
        }),*];
    };
}

mutants! {
    MOVE_KNOWS_ALL, lossless(0), "whoever is still on the way to the queue runs after it, and is passed again and again";
    MOVE_IS_OF_THIS_TENURE, faults(20), "a late copy of a MOVE gives the lock away again";
    ONE_MOVE_AT_A_TIME, faults(2), "two copies of a MOVE are both approved";
    READERS_ARE_INVALIDATED, lossless(0), "readers keep their copies beside a writer";
    HOLDER_QUEUES, lossless(0), "the lock is granted a second time";
    HOME_IS_CURRENT, lossless(0), "the home serves what was there before the last writer";
    HOME_KEEPS_EARLY, lossless(0), "a request that overtakes the data waits for ever";
    WRITE_BACK_IS_NEWER, faults(60), "a late copy of a write-back brings old data back";
    OLD_TENURES_ARE_REFUSED, faults(0), "a late copy of a hand-over begins a reign that is over";
    ENDED_COPIES_ARE_REFUSED, lossless(0), "a copy that was on its way stays beside a writer";
    WRITER_AWAITS_READERS, lossless(0), "a writer enters while others read";
    READERS_LEAVE_FIRST, lossless(0), "a reader says that it has left, and reads on";
    REFUSED_READERS_ASK_AGAIN, lossless(0), "a reader waits for a copy that it has refused";
    EARLY_ANSWERS_ARE_KEPT, lossless(0), "a writer waits for an answer that has come";
    EARLY_FORWARDS_ARE_KEPT, lossless(0), "who was sent to a queue on its way is forgotten";
    HOLDER_LEAVES_FIRST, lossless(0), "the lock goes on with a writer inside";
    GATE_CLOSES_FIRST, lossless(0), "a thread enters a lock that is on its way";
    DENIED_ADOPTS, lossless(0), "a MOVE is denied for ever";
    DENIALS_NAME_THEIR_MOVE, faults(25), "a late denial of a MOVE ends the next one, which is approved";
    MOVES_ARE_KEPT, faults(0), "data that were lost on the way are gone";
    LATER_REIGNS_APPROVE, lossless(0), "a node does not know that its reign is over";
    QUEUE_GOES_ALONG, lossless(0), "who waits is forgotten";
    FORWARDS_ARE_OF_THIS_TENURE, scenario(a_forward_of_an_earlier_tenure_comes), "the lock is closed, and its data are sent, for nobody";
    DATA_GOES_HOME, faults(0), "a write-back that was lost is not sent again";
    LOCK_REQUESTS_ARE_REPEATED, faults(0), "a lost request is waited for for ever";
    MOVES_ARE_REPEATED, faults(0), "a lost MOVE is waited for for ever";
    LOCK_EPOCHS_ARE_FENCED, restarts(0), "packets of the switch's former life act";
    LOCK_HOME_AWAITS_REPORTS, restarts(0), "the lock is granted while somebody alive has it";
    DEAD_HOLDERS_LOSE, restarts(0), "stale data are served as if nothing had been lost";
    LOSSES_ARE_NAMED, losses(0), "a late copy takes a later loss, and those who ask next get stale data";
    TAKEN_LOSSES_STAY, losses(0), "whoever took a lost lock does not hear so, and others get stale data";
    MOVES_ARE_REPORTED, restarts(0), "data that were on their way are forgotten, and stale ones served";
    FREED_MEMORY_IS_NOT_WRITTEN, scope("lock-free-outside"), "what comes back late is written to memory that is a block by now";
    FREED_LOCKS_END, scope("lock-free-death"), "whoever was told that he could not free goes on with a lock of no memory";
    FREES_COME_FIRST, scope("lock-take-death"), "a lock is reclaimed whose memory a dead thread has freed";
    REIGNS_ARE_CONFIRMED, scenario(threads_come_before_the_home_has_said_that_the_lock_is_one), "a thread gets in behind one that has freed the memory";
}
