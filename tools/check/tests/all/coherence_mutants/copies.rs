//! The rules of memory with copies, what goes wrong without each, and what catches its mutant.

use super::mutant::{By, Mutant, mutants, scenario};
use super::scenarios;

mutants! {
    CommitBeforeGiving, By::Copies(0), "others have seen a write, and an earlier one is lost with its node";
    BatchesProtect, By::Copies(0), "a block is written again, and no batch has that";
    BatchesAreOneMoment, scenario!(a_block_of_a_batch_is_written_again), "whoever writes again and again keeps a batch from being one moment, and others wait for it";
    CommitBeforeRelease, scenario!(what_was_written_under_a_lock_is_committed), "a lock is free, and what was written under it is lost";
    CommitBeforeFree, scenario!(what_was_written_before_a_free_is_committed), "an address has been allocated anew, and a write before its free is lost";
    BatchesAreWhole, By::Copies(230), "a part of a batch survives";
    FateIsAsked, By::JointScope("copies-alone"), "one node takes a batch, another one drops it";
    HomeAwaitsBatches, By::Copies(0), "a home gives what it has before it has what was committed";
    CallsAreReplicated, By::Copies(0), "an allocation is gone with the node that served it";
    FreshIsKept, scenario!(a_block_is_committed_while_its_memory_is_copied), "a node that is getting a memory brings back what was there before";
    RefillAwaitsBatches, scenario!(a_memory_is_copied_when_its_home_knows_it), "a node that is getting a memory does not get what is in a batch of before";
    BatchesEndWithMemories, By::JointScope("copies-alone-again"), "a memory of which all copies were lost begins anew, and what was written before gets into one of its copies";
    MemoriesBeginEmpty, By::JointScope("copies-alone-again"), "a memory that begins anew has at its beginning what a node had got of the one before";
}
