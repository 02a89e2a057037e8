//! The rules of the locks, in the order of `wire::rules`; what catches the mutant of each; what goes wrong without it.

use crate::coherence_mutants::mutant::By::{JointScope, LockEnds, LockRestarts, LockRuns, Lossless};
use crate::coherence_mutants::mutant::{Mutant, mutants, scenario};
use crate::locks_mutants::scenarios;

mutants! {
    MoveKnowsAll, Lossless(0), "whoever is still on the way to the queue runs after it, and is passed again and again";
    MoveIsOfThisTerm, LockRuns(20), "a late copy of a MOVE gives the lock away again";
    OneMoveAtATime, LockRuns(2), "two copies of a MOVE are both approved";
    ReadersAreInvalidated, Lossless(0), "readers keep their copies beside a writer";
    HolderQueues, Lossless(0), "the lock is granted a second time";
    HomeIsCurrent, Lossless(0), "the home serves what was there before the last writer";
    HomeKeepsEarly, Lossless(0), "a request that overtakes the data waits for ever";
    WriteBackIsNewer, LockRuns(60), "a late copy of a write-back brings old data back";
    OldTenuresAreRefused, LockRuns(0), "a late copy of a hand-over begins a term that is over";
    EndedCopiesAreRefused, Lossless(0), "a copy that was on its way stays beside a writer";
    WriterAwaitsReaders, Lossless(0), "a writer enters while others read";
    ReadersLeaveFirst, Lossless(0), "a reader says that it has left, and reads on";
    RefusedReadersAskAgain, Lossless(0), "a reader waits for a copy that it has refused";
    EarlyAnswersAreKept, Lossless(0), "a writer waits for an answer that has come";
    EarlyForwardsAreKept, Lossless(0), "who was sent to a queue on its way is forgotten";
    HolderLeavesFirst, Lossless(0), "the lock goes on with a writer inside";
    GateClosesFirst, Lossless(0), "a thread enters a lock that is on its way";
    DeniedAdopts, Lossless(0), "a MOVE is denied for ever";
    DenialsNameTheirMove, LockRuns(25), "a late denial of a MOVE ends the next one, which is approved";
    MovesAreKept, LockRuns(0), "data that were lost on the way are gone";
    PassedOnStays, Lossless(200), "in a rack within one process a reader copies bytes of another lock";
    LaterTermsApprove, Lossless(0), "a node does not know that its term is over";
    QueueGoesAlong, Lossless(0), "who waits is forgotten";
    ForwardsAreOfThisTerm, scenario!(a_forward_of_an_earlier_term_comes), "the lock is closed, and its data are sent, for nobody";
    DataGoesHome, LockRuns(0), "a write-back that was lost is not sent again";
    LateRequestsMakeNoLock, scenario!(a_request_comes_after_the_lock_has_ended), "a lock is made anew with a former length, and whoever names the region's is refused";
    VerdictsAwaitData, Lossless(0), "the next holder finds what was in its copy before";
    DataAreOfTheirMove, Lossless(0), "data of a MOVE that was denied pass for those of the next, and what was written in between is gone";
    LockRequestsAreRepeated, LockRuns(0), "a lost request is waited for for ever";
    MovesAreRepeated, LockRuns(0), "a lost MOVE is waited for for ever";
    LockEpochsAreFenced, LockRestarts(0), "packets of the switch's former incarnation act";
    LockHomeAwaitsReports, LockRestarts(0), "the lock is granted while somebody alive has it";
    DeadHoldersLose, LockRestarts(0), "stale data are served as if nothing had been lost";
    LossesAreNamed, LockEnds(0), "a late copy takes a later loss, and those who ask next get stale data";
    TakenLossesStay, LockEnds(0), "whoever took a lost lock does not hear so, and others get stale data";
    MovesAreReported, LockRestarts(0), "data that were on their way are forgotten, and stale ones served";
    FreedMemoryIsNotWritten, JointScope("lock-free-outside"), "what comes back late is written to memory that is a block by now";
    FreedLocksEnd, JointScope("lock-free-death"), "whoever was told that he could not free goes on with a lock of no memory";
    FreesComeFirst, JointScope("lock-take-death"), "a lock is reclaimed whose memory a dead thread has freed";
    HoldersAreConfirmed, scenario!(threads_come_before_the_home_has_said_that_the_lock_is_one), "a thread gets in behind one that has freed the memory";
}
