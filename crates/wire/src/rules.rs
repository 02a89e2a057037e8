//! The rules of the protocols, by name: what a mutant leaves out.
//!
//! Every machine of the protocol core holds a value of [`Rules`] and asks it wherever a rule matters. The shipped one is
//! [`AllRules`], which has no size: every rule holds, the questions fold away, and nothing of this is left in its code. A
//! *mutant* ([`Without`]) turns one rule off, and the checkers must catch it: so each rule is shown to be needed, and
//! each checker to be able to fail.

use core::fmt::Debug;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// Which rules hold.
pub trait Rules: Copy + PartialEq + Debug + Send + Sync + UnwindSafe + RefUnwindSafe + 'static {
    /// True if this one does.
    fn holds(self, rule: Rule) -> bool;
}

/// All rules hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllRules;

impl Rules for AllRules {
    #[inline(always)]
    fn holds(self, _: Rule) -> bool {
        true
    }
}

/// All rules hold but this one. For checkers only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Without(pub Rule);

impl Rules for Without {
    fn holds(self, rule: Rule) -> bool {
        rule != self.0
    }
}

/// Declares the rules, protocol by protocol.
macro_rules! rules {
    ($($(#[$about:meta])* $protocol:ident { $($(#[$doc:meta])* $name:ident),* $(,)? })*) => {
        /// What a protocol depends on, so that each is tried without.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Rule {
            $($($(#[$doc])* $name,)*)*
        }

        impl Rule {
            $($(#[$about])* pub const $protocol: &[Self] = &[$(Self::$name),*];)*
        }
    };
}

rules! {
    /// The rules of FlowCC.
    COHERENCE {
        // The requester.
        /// A WRITE-MISS, WRITE-SHARED or PURGE is granted when all sharers have answered (section 5.1.1).
        AllSharersAnswer,
        /// A READ-MISS that found the block modified is unlocked only after the home has its copy (FlowCC 1).
        ReadWaitsForHome,
        /// EVICT-MODIFIED is unlocked only after the home has acknowledged the write-back (FlowCC 1).
        EvictionWaitsForHome,
        /// Event n+2 waits for the acknowledgement of n's unlock (FlowCC 2, section 5.3.2).
        OneUnlockAParity,
        /// A refused event ends with an unlock, too (FlowCC 2).
        RefusedIsUnlocked,
        /// The requester of a repeated READ-MISS closes the event at the agents before it unlocks.
        RepeatedReadIsClosed,
        /// CLOSE is sent only after the write-back is acknowledged.
        CopyBeforeClose,
        /// An answer "Shared" to a repeated READ-MISS stands for its lost write-back.
        SharedStandsForCopy,
        /// An eviction evicts the block where it is when it is granted, not where it was when it was asked for.
        EvictWhereItIs,
        /// The choice of the provider travels with the request, so that its copies choose alike (FlowCC 3).
        RepeatsChooseAlike,
        /// Requests that stay unanswered are sent again (section 5.3.1).
        RequestsAreRepeated,
        /// Unlocks that stay unacknowledged are sent again (section 5.3.1).
        UnlocksAreRepeated,
        /// However often an answer was missing, and however long the last one took, it is asked for again within a bounded time.
        WaitsAreBounded,
        /// An answer to an earlier PEEK is not taken for that to this one.
        PeekKnowsItsAnswer,
        // The requester, if conflicting requests wait in a queue.
        /// An event hands its lock to a follower once, however often it is told of it.
        HandsOverOnce,
        /// The unlock of an event whose lock went on says so, and installs nothing.
        HandedUnlockSaysSo,
        /// An event whose unlock is answered "followed" waits until it is told by whom.
        FollowedWaits,
        /// An event that was handed the lock and is refused installs what it was told.
        RefusedInLineInstalls,
        /// The unlock of an event that was handed the lock waits until that of the one before is recorded.
        UnlocksKeepTheirPlace,
        // The cache agent.
        /// LAST-EXECUTED: an agent ignores requests older than the last one of their requester (section 5.3.1).
        AgentIgnoresOld,
        /// LAST-EXECUTED is kept for each parity (FlowCC 1).
        AgentKnowsParities,
        /// A repeated request gets the same answer again, data included (FlowCC 3).
        AgentKeepsAnswers,
        /// A request that names a state in which this node's copy is not changes nothing (FlowCC 5).
        AgentChecksState,
        /// A copy is invalidated before its invalidation is acknowledged.
        AgentInvalidates,
        /// A PEEK that finds no copy is refused as often as it comes, and not forgotten.
        PeekIsRefusedAgain,
        /// The owner that answers a READ-MISS gives up the right to write.
        AgentDowngrades,
        /// The owner that answers a READ-MISS sends the block home, too (FlowCC 1).
        AgentWritesBack,
        /// An agent that was told to close executes no late copy of the request.
        AgentCloses,
        // The home agent.
        /// A home decides a request once, however often it comes (section 5.3.1).
        HomeDecidesOnce,
        /// After an event's unlock, a home decides no late copy of its request.
        HomeRemembersUnlocks,
        /// A home that does not keep the entry refuses (FlowCC 4).
        HomeKnowsKeeper,
        /// A home takes the write-back of an event once.
        WriteBackOnce,
        /// A home takes no write-back of an event that was closed.
        ClosedTakesNoWriteBack,
        /// A home has a PEEK of a modified block answered by the owner, and not from its own memory.
        OwnerAnswersPeek,
        /// While an ADD is in flight, the home's entry is locked (section 5.2.1).
        AddLocksAtHome,
        /// A freed block's incarnation ends at its home before its copies are purged.
        IncarnationEndsBeforePurge,
        // Whoever keeps the entry: the switch and the home.
        /// Conflicting requests are serialized by the entry's lock (section 5.1.1).
        LockSerializes,
        /// Evictions take the entry's lock for writing (section 5.1.1).
        EvictionLocksForWriting,
        /// The check table refuses requests that came too late (Table 2).
        CheckTable,
        /// The unlock of a READ-MISS adds to the copyset, and does not replace it (section 5.1.1).
        ReadUnlockMerges,
        /// A forwarder says that a READ-MISS was granted before.
        ForwarderSaysRepeated,
        // The switch.
        /// LAST-UNLOCK filters requests (FlowCC 2).
        LastUnlockFiltersRequests,
        /// LAST-UNLOCK filters unlocks (section 5.3.2).
        LastUnlockFiltersUnlocks,
        /// The switch records the unlocks of events that the home decided, too (FlowCC 2).
        SwitchRecordsAllUnlocks,
        /// SCOREBOARD: the duplicate of a request that has the lock is granted as well (section 5.3.2).
        Scoreboard,
        /// A refusal is remembered until the event is unlocked.
        RefusalSticks,
        /// So is that a request went to the home.
        HomeMarkSticks,
        /// An unlock of nothing is acknowledged in its first pass.
        UnlockOfNothingIsShort,
        /// An ADD between its passes is marked.
        ClaimIsMarked,
        /// An ADD of a tag that is present changes nothing (FlowCC 4).
        AddIsIdempotent,
        /// LAST-REQUEST: a request joins a queue once, however often it comes.
        JoinsOnce,
        /// REMOVE locks and reports; only its unlock clears the entry (FlowCC 4).
        RemoveCommits,
        // Incarnations.
        /// Packets of another incarnation of the switch are dropped (FlowCC 6).
        EpochsAreFenced,
        /// Packets of a former incarnation of their sender are dropped (FlowCC 6).
        IncarnationsAreFenced,
        // Recovery (section 5.4).
        /// A home decides nothing until every live node has reported.
        HomeAwaitsReports,
        /// What is cached is reported to the block's home.
        CopiesAreReported,
        /// An eviction that is cut short leaves its block in the cache.
        CutEvictionIsUndone,
        /// A retained answer whose event was cut short is the latest copy, if no other is left.
        RetainedAnswersAreReported,
        /// A retained answer of an event that was not cut short is old.
        OnlyCutEventsCount,
        /// What was saved for a home that has rebuilt its directory since is old.
        OldSavingsAreDropped,
        /// A request of an epoch in which its home decided nothing is not reported.
        VainRequestsAreForgotten,
        /// What was saved is kept until the home has rebuilt its directory.
        SavingsAreKept,
        /// A shared copy that the home may not have yet is sent home again.
        StaleHomeIsMended,
        /// Application locks that are held are reported to their home.
        HeldLocksAreReported,
        /// A block that a dead node may have written, and nobody alive has, is lost.
        DeadWritersLose,
        /// Copies of blocks that belong to no allocation are dropped.
        EndedCopiesAreDropped,
        /// Copies of the blocks of a dead home are dropped.
        OrphanedCopiesAreDropped,
        /// A FREE that was called before its chunk was taken back from a dead allocator frees nothing of the next
        /// owner's.
        FreesAreForTheirAllocator,
        /// What a home knew is kept until it has rebuilt its directory, over further restarts.
        KnowledgeIsKept,
    }
    /// The rules of memory with copies.
    COPIES {
        /// A block that was written leaves its node when the writes before it are committed.
        CommitBeforeGiving,
        /// What is in a batch is protected, so that it is seen when it is written again.
        BatchesProtect,
        /// Nobody writes again in a block of a batch before all its blocks are protected.
        BatchesAreOneMoment,
        /// A block lock is released when the writes before it are committed.
        CommitBeforeRelease,
        /// An allocation is freed when the writes before it are committed.
        CommitBeforeFree,
        /// A batch takes effect when all who take part hold the whole of it.
        BatchesAreWhole,
        /// What became of a dead node's batch is asked of all who took part.
        FateIsAsked,
        /// A home with copies decides nothing until every node has committed what it had changed, and knows what became of the dead's batches.
        HomeAwaitsBatches,
        /// A grant or a mark is answered when all copies have it.
        CallsAreReplicated,
        /// What was committed or marked while a copy is made is newer than what the copying brings.
        FreshIsKept,
        /// A memory is copied when all batches of before are in it.
        RefillAwaitsBatches,
        /// What a batch has of a memory that is gone does not get into the one that begins in its place.
        BatchesEndWithMemories,
        /// Where a memory begins anew, its first block, which is live from the beginning, is zeroed.
        MemoriesBeginEmpty,
    }
    /// The rules of the locks that carry their data.
    LOCKS {
        // The directory.
        /// A MOVE is approved only if its sender knows everybody who was forwarded to it (GCS, section 4.2).
        MoveKnowsAll,
        /// And only from the holder of this term.
        MoveIsOfThisTerm,
        /// While a MOVE is between its passes, no copy of it is judged.
        OneMoveAtATime,
        /// A writer that finds readers has their copies ended.
        ReadersAreInvalidated,
        /// Whoever finds a queue holder is sent to stand in its queue.
        HolderQueues,
        // The home.
        /// A home serves a copy only if it has the data of the term named.
        HomeIsCurrent,
        /// What is asked for data that are on their way back waits for them.
        HomeKeepsEarly,
        /// A home takes data that come back once, and never older ones.
        WriteBackIsNewer,
        // The agent.
        /// What a term brought that this node has left is not taken again.
        OldTenuresAreRefused,
        /// A copy that its reader was told to end before it came is not taken.
        EndedCopiesAreRefused,
        /// A new writer waits until every reader has said that its copy is gone.
        WriterAwaitsReaders,
        /// A reader says so only when its threads have left.
        ReadersLeaveFirst,
        /// Whoever could not take its copy asks again.
        RefusedReadersAskAgain,
        /// An answer that comes before the question is kept.
        EarlyAnswersAreKept,
        /// So is whoever is sent to stand in the queue before that is here.
        EarlyForwardsAreKept,
        /// The lock goes on only when this node's threads have left.
        HolderLeavesFirst,
        /// While the lock is on its way, nobody enters here.
        GateClosesFirst,
        /// A holder that is denied adopts those that it did not know of.
        DeniedAdopts,
        /// A denial is of the MOVE that knew of those whom it names.
        DenialsNameTheirMove,
        /// What has been sent is kept until it was received.
        MovesAreKept,
        /// It is kept also where a later writer has ended this node's own copy: others may be about to copy the bytes.
        PassedOnStays,
        /// What belongs to a later term says that this node's MOVE has been approved.
        LaterTermsApprove,
        /// The queue goes with the lock.
        QueueGoesAlong,
        /// A forward of another term is not queued.
        ForwardsAreOfThisTerm,
        /// A lock without a writer has its data at home.
        DataGoesHome,
        /// A request makes a lock only if it was asked after the last one ended there: a late one names another length.
        LateRequestsMakeNoLock,
        /// What the directory has approved is taken when its data are there.
        VerdictsAwaitData,
        /// Data count for the one MOVE that they were sent beside: not for another of the same term.
        DataAreOfTheirMove,
        /// Requests that stay unanswered are sent again.
        LockRequestsAreRepeated,
        /// So are MOVEs, and what came of them.
        MovesAreRepeated,
        // Incarnations.
        /// Packets of another incarnation of the switch are dropped.
        LockEpochsAreFenced,
        // Recovery.
        /// A home serves nobody before every live node has reported.
        LockHomeAwaitsReports,
        /// A lock that was lent for writing, and that nobody alive has, is lost.
        DeadHoldersLose,
        /// Whoever takes a lost lock names the loss: a late copy of that takes no later one.
        LossesAreNamed,
        /// A lock that was lost and taken stays lost until data come from whoever took it.
        TakenLossesStay,
        /// Data that were on their way are reported.
        MovesAreReported,
        // Locks whose memory was given back.
        /// What comes back of a lock is not written to memory that belongs to no allocation any more, or to another one.
        FreedMemoryIsNotWritten,
        /// A lock whose memory was given back is no more in the next epoch, whoever has it.
        FreedLocksEnd,
        /// A node says that it has no more to report when what its allocator takes back there is taken back.
        FreesComeFirst,
        /// Who holds a lock when an epoch begins lets nobody in before the home has said that the lock is still one.
        HoldersAreConfirmed,
    }
    /// The rules of one-sided operations.
    VERBS {
        // Keys.
        /// A region's key is never accepted again after the region was deregistered.
        KeysHaveGenerations,
        // The responder.
        /// A repeated atomic is answered from the replay cache, and not executed again.
        AtomicsAreReplayed,
        /// So is a repeated batch of remote atomics.
        BatchesAreReplayed,
        /// Whatever is sent of an object for one request comes from one snapshot.
        SnapshotsAreKept,
        /// Each answer that is remembered has a slot of its own.
        AnswersHaveSlots,
        /// A repeated WRITE or SEND is acknowledged, and not executed again.
        WritesAreExecutedOnce,
        /// What comes after a gap is not executed before the gap is filled.
        GapsAreRefused,
        /// The NAK of a failed request is sent again for as long as somebody asks.
        RefusalsAreRepeated,
        // The requester.
        /// An acknowledgement beyond an unanswered READ or atomic does not complete it.
        AnswersAreAwaited,
        /// A READ response is taken once, in its turn.
        ResponsesComeInTurn,
        /// What stays unanswered is sent again.
        PacketsAreRepeated,
        /// No more READs and atomics are in flight than the responder remembers.
        OutstandingIsLimited,
    }
    /// The rules of regions: allocations that others use by one-sided operations, and the connections on which they do.
    REGIONS {
        /// A region begins only in live memory of its discipline.
        RegionsBeginInLiveMemory,
        /// It, and a store's metadata server, begins only in the incarnation of its home in which that memory was allocated.
        RegionsBeginInTheirIncarnation,
        /// When memory is given back, the regions in it end.
        RegionsEndWithTheirMemory,
        /// A connection ends with either node's incarnation.
        ConnectionsEndWithIncarnations,
        /// A key is used only in the incarnation of its home in which it was told.
        KeysAreOfIncarnations,
        /// Where a connection begins anew, its packets have other numbers.
        AttemptsHaveNumbers,
        /// An end that hears of a later attempt goes to that.
        TheLaterAttemptCounts,
    }
    /// The rules of the SABRe engine: whole-object reads that are validated where the memory is.
    SABRES {
        /// While the version is not read, an invalidation of a block that is read already aborts (SABRes, section 3.3, Figure 2).
        WindowIsGuarded,
        /// While the version is not read, no block is read that the stream buffer could not watch (section 4.1).
        WindowIsBounded,
        /// A memory that is not snooped is read only once the version is known (section 3.2).
        VersionComesFirst,
        /// An object that somebody writes now, by its odd version, is not taken (section 4.2).
        OddIsWritten,
        /// An invalidation of the block with the version has the version read again, after all data (section 4.2).
        HeaderIsReadAgain,
        /// And the version must be the one that was read first.
        VersionStays,
        /// The verdict comes after all data (section 4.2).
        VerdictComesLast,
        /// With locks: no verdict is good without the lock (section 4.1).
        LockIsHeld,
        /// With locks: the lock is held until all data are read.
        LockIsKept,
        /// An attempt has a number, and what is for an earlier one is not taken for it (PROTOCOLS.md).
        AttemptsDiffer,
    }
    /// The rules of the remote atomics' engine: operations on words, done where the memory is.
    ATOMICS {
        /// What is for a line that is pending already joins it (RAE, section III-D).
        SameLineMerges,
        /// Operations on a line are executed in the order in which they came.
        OrderIsKept,
        /// A line that was changed is written back (the W bit).
        ChangedIsWritten,
        /// Two lines with the same place in the cache are there one after the other.
        PlaceIsExclusive,
        /// A line leaves only when nothing is pending for it (section III-C).
        LastLetsGo,
        /// Where others wait for its place, a line takes in no more than its entry had capacity for.
        TurnIsBounded,
        /// Results of word operations are sign-extended, as those of RISC-V.
        WordsAreSigned,
        /// Of two words in one double word, an operation changes one.
        HalvesAreApart,
    }
    /// The rules of chains.
    CHAINS {
        // The client.
        /// What was read counts only if it was read while the cursor counted.
        CursorsExpire,
        /// An append whose outcome is unknown is settled by the metadata server, not tried again.
        IndeterminateAppendsAreSettled,
        // The metadata server.
        /// A slot that is not a tail any more is quarantined before it is used anew.
        SlotsAreQuarantined,
        /// Memory that nobody has written to yet is not taken for a tail: a slot's first use has number 1.
        UsesBeginWithOne,
        /// A chain is forgotten only after its tail was closed.
        ChainsAreClosed,
        /// What a dead client was given, and did not append, comes back.
        TheDeadAreSwept,
        // Where a switch steers.
        /// An entry whose append was refused, and that others may stand behind, is not tried again under its number.
        RefusedAreRenewed,
        /// What became of a slot is decided when whatever was in flight is over: something that it stands behind may come into the
        /// chain until then.
        IndeterminateAppendsWait,
        // Where there are several copies.
        /// An entry is appended only when no WRITE to one of its copies is indeterminate.
        AllCopiesAreWritten,
        /// An append has ended when the entry follows in all copies that live.
        AllCopiesAreLinked,
        /// Appends are compared in the first copy that lives, and then repeated in the others, in their order.
        CopiesHaveAnOrder,
        /// Gets read the last copy that lives.
        GetsReadTheLastCopy,
        /// An append goes behind an entry only if that is in the chain in the last copy.
        AppendsWaitForCopies,
        /// Nor does one that a switch has sent there go behind it in another copy than the first.
        SteeredAppendsWaitForCopies,
        /// Where a switch steers, nobody knows behind what an append was that was asked of a copy that died: it is settled.
        SteeredAppendsOfTheDeadAreSettled,
        /// What is repeated in a copy so late that the tail's slot has another use is settled by the metadata server.
        LateLinksAreSettled,
        /// A walk brings what it finds in the first copy to the others, before it goes on.
        WalksFinishLinks,
        /// A chain is forgotten only when it is closed in all copies.
        AllCopiesAreClosed,
        // Where the metadata server has backups.
        /// What it answers, and what it changes in memory, waits until its backups have what that follows from.
        BackupsKnowFirst,
        /// What a backup has, those before it have: whoever takes over lacks nothing that others act on.
        BackupsHaveAnOrder,
        /// A new backup is one when it has all that others may act on, and those before it have what it has.
        BackupsJoinInOrder,
        /// Whoever takes over does again what the primary was in the middle of.
        WalksAreTakenOver,
    }
    /// The rules of steering: a switch that sends each append to the true tail of its chain.
    STEERING {
        // Requests.
        /// With the address of a compare-and-swap its operands are rewritten. The published prototype rewrites only the address.
        CompareIsRewritten,
        /// A packet that comes again is rewritten as it was (PROTOCOLS.md).
        RepeatsAreAlike,
        /// Only a packet with a new number is taken for a new one.
        NumbersAreNew,
        /// A slot is outstanding for the key that it was written for last: a client may use it for another one under the same number.
        LastWriteCounts,
        /// What a read brings that was sent to the tail is passed on only if that one's append is acknowledged (PROTOCOLS.md).
        ReadsTakeWhatIsAcknowledged,
        /// And only if it is that entry, and not what was in its slot before.
        ReadsBringWhatTheyWereSentFor,
        /// What a read brings to a connection from before a restart of the switch is not passed on: nobody knows where the read was sent.
        UnknownPeersReadNothing,
        // Acknowledgements.
        /// The client is told what it was steered to, and not what another word was (PROTOCOLS.md).
        OriginalIsRewritten,
        /// An append that stands behind one that is not acknowledged is not acknowledged before it (PROTOCOLS.md).
        AcksWait,
        /// What stands behind an append that failed has failed, too.
        FollowersFall,
        /// A compare that fails ends what is known of the tail (PROTOCOLS.md).
        MismatchesReset,
        /// What a connection from before a restart of the switch is told of an atomic is that nobody knows what it did.
        AppendsOfUnknownPeersAreIndeterminate,
        // Where words are bound to queue pairs.
        /// Every compare-and-swap goes on the bound queue pair of its word, or to no word.
        AllAreBound,
        /// A client is told of its append only when its own queue pair has come so far.
        FillersAreAwaited,
        /// A compare-and-swap that comes again takes no other number of the bound queue pair.
        NumbersAreTakenOnce,
        /// What a client had in flight when its connection ended is not sent again.
        HolesAreFilled,
        /// What was in flight on a bound queue pair that begins anew is indeterminate.
        BegunAnewIsIndeterminate,
        /// Where there is no capacity, a compare-and-swap goes on its client's own queue pair only if it is the first that is sent to its word.
        OverflowsAreFirst,
        /// A compare-and-swap becomes a WRITE only if nothing was sent to its word since that entry's append.
        WritesFindNothingSent,
        /// And only if that append is acknowledged (PROTOCOLS.md).
        WritesTakeWhatIsAcknowledged,
        // The control plane.
        /// When a key leaves its place to another one, nothing refers to the place any more.
        SlotsAreLeftClean,
        /// What is known of tails and outstanding entries is forgotten before a slot's number can come round.
        KnowledgeExpires,
        /// An introduction that was in flight when the switch died means nothing to the next one: the connection may have been used since.
        IntroductionsNameTheSwitch,
    }
}
