//! The rules of the protocol, by name: what a mutant leaves out.
//!
//! Every machine of the protocol core is generic over a zero-sized type of this trait. The shipped one is
//! [`Faithful`], where every rule holds: the constants fold away, and nothing of this is left in its code. A
//! *mutant* turns one rule off, and the checkers must catch it: so each rule is shown to be needed, and each
//! checker to be able to fail.

/// Declares a protocol's rules: each is a constant that is true unless a mutant says otherwise.
macro_rules! rules {
    (
        $(#[$about:meta])* $rules:ident, $names:ident, $without:ident, $each:ident:
        $($(#[$doc:meta])* $name:ident),* $(,)?
    ) => {
        $(#[$about])*
        pub trait $rules: Copy + Clone + core::fmt::Debug + Default + Send + Sync + 'static {
            $($(#[$doc])* const $name: bool = true;)*
        }

        /// The names of all these rules, for tables.
        pub const $names: &[&str] = &[$(stringify!($name)),*];

        /// One mutant for each rule, named after the rule that it leaves out. For checkers only.
        #[allow(non_camel_case_types, missing_docs, reason = "the names are those of the rules")]
        pub mod $without {
            $(
                #[derive(Clone, Copy, Debug, Default)]
                pub struct $name;
                impl super::$rules for $name {
                    const $name: bool = false;
                }
            )*
        }

        /// Calls `$run!(name, type)` for every mutant of these rules.
        #[macro_export]
        macro_rules! $each {
            ($run:ident) => {
                $($run!(stringify!($name), $crate::rules::$without::$name);)*
            };
        }
    };
}

/// All rules hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faithful;

impl Rules for Faithful {}
impl LockRules for Faithful {}
impl VerbsRules for Faithful {}
impl RegionRules for Faithful {}
impl SabreRules for Faithful {}
impl AtomicRules for Faithful {}
impl ChainRules for Faithful {}
impl SteerRules for Faithful {}

rules! {
    /// Which rules of FlowCC hold.
    Rules, NAMES, without, for_each_mutant:
    // The requester.
    /// A WRITE-MISS, WRITE-SHARED or PURGE is granted when all sharers have answered (section 5.1.1).
    ALL_SHARERS_ANSWER,
    /// A READ-MISS that found the block modified is unlocked only after the home has its copy (FlowCC 1).
    READ_WAITS_FOR_HOME,
    /// EVICT-MODIFIED is unlocked only after the home has acknowledged the write-back (FlowCC 1).
    EVICTION_WAITS_FOR_HOME,
    /// Event n+2 waits for the acknowledgement of n's unlock (FlowCC 2, section 5.3.2).
    ONE_UNLOCK_A_PARITY,
    /// A refused event ends with an unlock, too (FlowCC 2).
    REFUSED_IS_UNLOCKED,
    /// The requester of a repeated READ-MISS closes the event at the agents before it unlocks.
    REPEATED_READ_IS_CLOSED,
    /// CLOSE is sent only after the write-back is acknowledged.
    COPY_BEFORE_CLOSE,
    /// An answer "Shared" to a repeated READ-MISS stands for its lost write-back.
    SHARED_STANDS_FOR_COPY,
    /// An eviction evicts the block where it is when it is granted, not where it was when it was asked for.
    EVICT_WHERE_IT_IS,
    /// The choice of the provider travels with the request, so that its copies choose alike (FlowCC 3).
    REPEATS_CHOOSE_ALIKE,
    /// Requests that stay unanswered are sent again (section 5.3.1).
    REQUESTS_ARE_REPEATED,
    /// Unlocks that stay unacknowledged are sent again (section 5.3.1).
    UNLOCKS_ARE_REPEATED,
    /// However often an answer was missing, and however long the last one took, it is asked for again within a bounded time.
    WAITS_ARE_BOUNDED,
    /// An answer to an earlier PEEK is not taken for that to this one.
    PEEK_KNOWS_ITS_ANSWER,
    // The requester, if conflicting requests stand in line.
    /// An event hands its lock to a follower once, however often it is told of it.
    HANDS_OVER_ONCE,
    /// The unlock of an event whose lock went on says so, and installs nothing.
    HANDED_UNLOCK_SAYS_SO,
    /// An event whose unlock is answered "followed" waits until it is told by whom.
    FOLLOWED_WAITS,
    /// An event that was handed the lock and is refused installs what it was told.
    REFUSED_IN_LINE_INSTALLS,
    /// The unlock of an event that was handed the lock waits until that of the one before is recorded.
    UNLOCKS_KEEP_THEIR_PLACE,
    // The cache agent.
    /// LAST-EXECUTED: an agent ignores requests older than the last one of their requester (section 5.3.1).
    AGENT_IGNORES_OLD,
    /// LAST-EXECUTED is kept for each parity (FlowCC 1).
    AGENT_KNOWS_PARITIES,
    /// A repeated request gets the same answer again, data included (FlowCC 3).
    AGENT_KEEPS_ANSWERS,
    /// A request that names a state in which this node's copy is not changes nothing (FlowCC 5).
    AGENT_CHECKS_STATE,
    /// A copy is invalidated before its invalidation is acknowledged.
    AGENT_INVALIDATES,
    /// A PEEK that finds no copy is refused as often as it comes, and not forgotten.
    PEEK_IS_REFUSED_AGAIN,
    /// The owner that answers a READ-MISS gives up the right to write.
    AGENT_DOWNGRADES,
    /// The owner that answers a READ-MISS sends the block home, too (FlowCC 1).
    AGENT_WRITES_BACK,
    /// An agent that was told to close executes no late copy of the request.
    AGENT_CLOSES,
    // The home agent.
    /// A home decides a request once, however often it comes (section 5.3.1).
    HOME_DECIDES_ONCE,
    /// After an event's unlock, a home decides no late copy of its request.
    HOME_REMEMBERS_UNLOCKS,
    /// A home that does not keep the entry refuses (FlowCC 4).
    HOME_KNOWS_KEEPER,
    /// A home takes the write-back of an event once.
    WRITE_BACK_ONCE,
    /// A home takes no write-back of an event that was closed.
    CLOSED_TAKES_NO_WRITE_BACK,
    /// A home has a PEEK of a modified block answered by the owner, and not from its own memory.
    OWNER_ANSWERS_PEEK,
    /// While an ADD is under way, the home's entry is locked (section 5.2.1).
    ADD_LOCKS_AT_HOME,
    /// A freed block's life ends at its home before its copies are purged.
    LIFE_ENDS_BEFORE_PURGE,
    // Whoever keeps the entry: the switch and the home.
    /// Conflicting requests are serialized by the entry's lock (section 5.1.1).
    LOCK_SERIALIZES,
    /// Evictions take the entry's lock for writing (section 5.1.1).
    EVICTION_LOCKS_FOR_WRITING,
    /// The check table refuses requests that came too late (Table 2).
    CHECK_TABLE,
    /// The unlock of a READ-MISS adds to the copyset, and does not replace it (section 5.1.1).
    READ_UNLOCK_MERGES,
    /// A forwarder says that a READ-MISS was granted before.
    FORWARDER_SAYS_REPEATED,
    // The switch.
    /// LAST-UNLOCK filters requests (FlowCC 2).
    LAST_UNLOCK_FILTERS_REQUESTS,
    /// LAST-UNLOCK filters unlocks (section 5.3.2).
    LAST_UNLOCK_FILTERS_UNLOCKS,
    /// The switch records the unlocks of events that the home decided, too (FlowCC 2).
    SWITCH_RECORDS_ALL_UNLOCKS,
    /// SCOREBOARD: the duplicate of a request that has the lock is granted as well (section 5.3.2).
    SCOREBOARD,
    /// A refusal is remembered until the event is unlocked.
    REFUSAL_STICKS,
    /// So is that a request went to the home.
    HOME_MARK_STICKS,
    /// An unlock of nothing is acknowledged in its first pass.
    UNLOCK_OF_NOTHING_IS_SHORT,
    /// An ADD between its passes is marked.
    CLAIM_IS_MARKED,
    /// An ADD of a tag that is present changes nothing (FlowCC 4).
    ADD_IS_IDEMPOTENT,
    /// LAST-REQUEST: a request joins a line once, however often it comes.
    JOINS_ONCE,
    /// REMOVE locks and reports; only its unlock clears the entry (FlowCC 4).
    REMOVE_COMMITS,
    // Lives.
    /// Packets of another life of the switch are dropped (FlowCC 6).
    EPOCHS_ARE_FENCED,
    /// Packets of a former life of their sender are dropped (FlowCC 6).
    LIVES_ARE_FENCED,
    // Recovery (section 5.4).
    /// A home decides nothing until every live node has reported.
    HOME_AWAITS_REPORTS,
    /// What is cached is reported to the block's home.
    COPIES_ARE_REPORTED,
    /// An eviction that is cut short leaves its block in the cache.
    CUT_EVICTION_IS_UNDONE,
    /// A retained answer whose event was cut short is the latest copy, if no other is left.
    RETAINED_ANSWERS_ARE_REPORTED,
    /// A retained answer of an event that was not cut short is old.
    ONLY_CUT_EVENTS_COUNT,
    /// What was saved for a home that has rebuilt its directory since is old.
    OLD_SAVINGS_ARE_DROPPED,
    /// A request of an epoch in which its home decided nothing is not reported.
    VAIN_REQUESTS_ARE_FORGOTTEN,
    /// What was saved is kept until the home has rebuilt its directory.
    SAVINGS_ARE_KEPT,
    /// A shared copy that the home may not have yet is sent home again.
    STALE_HOME_IS_MENDED,
    /// Application locks that are held are reported to their home.
    HELD_LOCKS_ARE_REPORTED,
    /// A block that a dead node may have written, and nobody alive has, is lost.
    DEAD_WRITERS_LOSE,
    /// Copies of blocks that belong to no allocation are dropped.
    ENDED_COPIES_ARE_DROPPED,
    /// Copies of the blocks of a dead home are dropped.
    ORPHANED_COPIES_ARE_DROPPED,
    /// A FREE that was called before its chunk was taken back from a dead allocator frees nothing of the next
    /// owner's.
    FREES_ARE_FOR_THEIR_ALLOCATOR,
    /// What a home knew is kept until it has rebuilt its directory, over further restarts.
    KNOWLEDGE_IS_KEPT,
}

rules! {
    /// Which rules of the locks that carry their data hold.
    LockRules, LOCK_NAMES, without_lock, for_each_lock_mutant:
    // The directory.
    /// A MOVE is approved only if its sender knows everybody who was forwarded to it (GCS, section 4.2).
    MOVE_KNOWS_ALL,
    /// And only from the holder of this tenure.
    MOVE_IS_OF_THIS_TENURE,
    /// While a MOVE is between its passes, no copy of it is judged.
    ONE_MOVE_AT_A_TIME,
    /// A writer that finds readers has their copies ended.
    READERS_ARE_INVALIDATED,
    /// Whoever finds a queue holder is sent to stand in its queue.
    HOLDER_QUEUES,
    // The home.
    /// A home serves a copy only if it has the data of the tenure named.
    HOME_IS_CURRENT,
    /// What is asked for data that are on their way back waits for them.
    HOME_KEEPS_EARLY,
    /// A home takes data that come back once, and never older ones.
    WRITE_BACK_IS_NEWER,
    // The agent.
    /// What a tenure brought that this node has left is not taken again.
    OLD_TENURES_ARE_REFUSED,
    /// A copy that its reader was told to end before it came is not taken.
    ENDED_COPIES_ARE_REFUSED,
    /// A new writer waits until every reader has said that its copy is gone.
    WRITER_AWAITS_READERS,
    /// A reader says so only when its threads have left.
    READERS_LEAVE_FIRST,
    /// Whoever could not take its copy asks again.
    REFUSED_READERS_ASK_AGAIN,
    /// An answer that comes before the question is kept.
    EARLY_ANSWERS_ARE_KEPT,
    /// So is whoever is sent to stand in the queue before that is here.
    EARLY_FORWARDS_ARE_KEPT,
    /// The lock goes on only when this node's threads have left.
    HOLDER_LEAVES_FIRST,
    /// While the lock is on its way, nobody enters here.
    GATE_CLOSES_FIRST,
    /// A holder that is denied adopts those that it did not know of.
    DENIED_ADOPTS,
    /// A denial is of the MOVE that knew of those whom it names.
    DENIALS_NAME_THEIR_MOVE,
    /// What has been sent is kept until it was received.
    MOVES_ARE_KEPT,
    /// What belongs to a later reign says that this node's MOVE has been approved.
    LATER_REIGNS_APPROVE,
    /// The queue goes with the lock.
    QUEUE_GOES_ALONG,
    /// A forward of another tenure is not queued.
    FORWARDS_ARE_OF_THIS_TENURE,
    /// A lock without a writer has its data at home.
    DATA_GOES_HOME,
    /// Requests that stay unanswered are sent again.
    LOCK_REQUESTS_ARE_REPEATED,
    /// So are MOVEs, and what came of them.
    MOVES_ARE_REPEATED,
    // Lives.
    /// Packets of another life of the switch are dropped.
    LOCK_EPOCHS_ARE_FENCED,
    // Recovery.
    /// A home serves nobody before every live node has reported.
    LOCK_HOME_AWAITS_REPORTS,
    /// A lock that was lent for writing, and that nobody alive has, is lost.
    DEAD_HOLDERS_LOSE,
    /// Whoever takes a lost lock names the loss: a late copy of that takes no later one.
    LOSSES_ARE_NAMED,
    /// A lock that was lost and taken stays lost until data come from whoever took it.
    TAKEN_LOSSES_STAY,
    /// Data that were on their way are reported.
    MOVES_ARE_REPORTED,
    // Locks whose memory was given back.
    /// What comes back of a lock is not written to memory that belongs to no allocation any more, or to another one.
    FREED_MEMORY_IS_NOT_WRITTEN,
    /// A lock whose memory was given back is no more in the next epoch, whoever has it.
    FREED_LOCKS_END,
    /// A node says that it has no more to report when what its allocator takes back there is taken back.
    FREES_COME_FIRST,
    /// Who reigns when an epoch begins lets nobody in before the home has said that the lock is still one.
    REIGNS_ARE_CONFIRMED,
}

rules! {
    /// Which rules of one-sided operations hold.
    VerbsRules, VERBS_NAMES, without_verbs, for_each_verbs_mutant:
    // Keys.
    /// A region's key is never accepted again after the region was deregistered.
    KEYS_HAVE_GENERATIONS,
    // The responder.
    /// A repeated atomic is answered from the replay cache, and not executed again.
    ATOMICS_ARE_REPLAYED,
    /// So is a repeated batch of remote atomics.
    BATCHES_ARE_REPLAYED,
    /// Whatever is sent of an object for one request comes from one snapshot.
    SNAPSHOTS_ARE_KEPT,
    /// Each answer that is remembered has a slot of its own.
    ANSWERS_HAVE_SLOTS,
    /// A repeated WRITE or SEND is acknowledged, and not executed again.
    WRITES_ARE_EXECUTED_ONCE,
    /// What comes after a gap is not executed before the gap is filled.
    GAPS_ARE_REFUSED,
    /// The NAK of a failed request is sent again for as long as somebody asks.
    REFUSALS_ARE_REPEATED,
    // The requester.
    /// An acknowledgement beyond an unanswered READ or atomic does not complete it.
    ANSWERS_ARE_AWAITED,
    /// A READ response is taken once, in its turn.
    RESPONSES_COME_IN_TURN,
    /// What stays unanswered is sent again.
    PACKETS_ARE_REPEATED,
    /// No more READs and atomics are under way than the responder remembers.
    OUTSTANDING_IS_LIMITED,
}

rules! {
    /// Which rules of regions hold: allocations that others use by one-sided operations, and the connections on which they do.
    RegionRules, REGION_NAMES, without_region, for_each_region_mutant:
    /// A region begins only in live memory of its discipline.
    REGIONS_BEGIN_IN_LIVE_MEMORY,
    /// It, and a store's metadata server, begins only in the life of its home in which that memory was allocated.
    REGIONS_BEGIN_IN_THEIR_LIFE,
    /// When memory is given back, the regions in it end.
    REGIONS_END_WITH_THEIR_MEMORY,
    /// A connection ends with either node's life.
    CONNECTIONS_END_WITH_LIVES,
    /// A key is used only in the life of its home in which it was told.
    KEYS_ARE_OF_LIVES,
    /// Where a connection begins anew, its packets have other numbers.
    ATTEMPTS_HAVE_NUMBERS,
    /// An end that hears of a later attempt goes to that.
    THE_LATER_ATTEMPT_COUNTS,
}

rules! {
    /// Which rules of the SABRe engine hold: whole-object reads that are validated where the memory is.
    SabreRules, SABRE_NAMES, without_sabre, for_each_sabre_mutant:
    /// While the version is not read, an invalidation of a block that is read already aborts (SABRes, section 3.3, Figure 2).
    WINDOW_IS_GUARDED,
    /// While the version is not read, no block is read that the stream buffer could not watch (section 4.1).
    WINDOW_IS_BOUNDED,
    /// A memory that is not snooped is read only once the version is known (section 3.2).
    VERSION_COMES_FIRST,
    /// An object that somebody writes now, by its odd version, is not taken (section 4.2).
    ODD_IS_WRITTEN,
    /// An invalidation of the block with the version has the version read again, after all data (section 4.2).
    HEADER_IS_READ_AGAIN,
    /// And the version must be the one that was read first.
    VERSION_STAYS,
    /// The verdict comes after all data (section 4.2).
    VERDICT_COMES_LAST,
    /// With locks: no verdict is good without the lock (section 4.1).
    LOCK_IS_HELD,
    /// With locks: the lock is held until all data are read.
    LOCK_IS_KEPT,
    /// An attempt has a number, and what is for an earlier one is not taken for it (PROTOCOLS.md).
    ATTEMPTS_DIFFER,
}

rules! {
    /// Which rules of the remote atomics' engine hold: operations on words, done where the memory is.
    AtomicRules, ATOMIC_NAMES, without_atomic, for_each_atomic_mutant:
    /// What is for a line that is pending already joins it (RAE, section III-D).
    SAME_LINE_MERGES,
    /// Operations on a line are executed in the order in which they came.
    ORDER_IS_KEPT,
    /// A line that was changed is written back (the W bit).
    CHANGED_IS_WRITTEN,
    /// Two lines with the same place in the cache are there one after the other.
    PLACE_IS_EXCLUSIVE,
    /// A line leaves only when nothing is pending for it (section III-C).
    LAST_LETS_GO,
    /// Where others wait for its place, a line takes in no more than its entry had room for.
    TURN_IS_BOUNDED,
    /// Results of word operations are sign-extended, as those of RISC-V.
    WORDS_ARE_SIGNED,
    /// Of two words in one double word, an operation changes one.
    HALVES_ARE_APART,
}

rules! {
    /// Which rules of chains hold.
    ChainRules, CHAIN_NAMES, without_chain, for_each_chain_mutant:
    // The client.
    /// What was read counts only if it was read while the cursor counted.
    CURSORS_EXPIRE,
    /// An append whose outcome is unknown is settled by the metadata server, not tried again.
    DOUBTS_ARE_SETTLED,
    // The metadata server.
    /// A slot that is not a tail any more rests before it is used anew.
    SLOTS_REST,
    /// Memory that nobody has written to yet is not taken for a tail: a slot's first use has number 1.
    USES_BEGIN_WITH_ONE,
    /// A chain is forgotten only after its tail was closed.
    CHAINS_ARE_CLOSED,
    /// What a dead client was given, and did not append, comes back.
    THE_DEAD_ARE_SWEPT,
    // Where a switch steers.
    /// An entry whose append was refused, and that others may stand behind, is not tried again under its number.
    REFUSED_ARE_RENEWED,
    /// What became of a slot is decided when whatever was under way is over: something that it stands behind may come into the
    /// chain until then.
    DOUBTS_WAIT,
    // Where there are several copies.
    /// An entry is appended only when no WRITE to one of its copies is in doubt.
    ALL_COPIES_ARE_WRITTEN,
    /// An append has ended when the entry follows in all copies that live.
    ALL_COPIES_ARE_LINKED,
    /// Appends are compared in the first copy that lives, and then repeated in the others, in their order.
    COPIES_HAVE_AN_ORDER,
    /// Gets read the last copy that lives.
    GETS_READ_THE_LAST_COPY,
    /// An append goes behind an entry only if that is in the chain in the last copy.
    APPENDS_WAIT_FOR_COPIES,
    /// What is repeated in a copy so late that the tail's slot has another use is settled by the metadata server.
    LATE_LINKS_ARE_SETTLED,
    /// A walk brings what it finds in the first copy to the others, before it goes on.
    WALKS_FINISH_LINKS,
    /// A chain is forgotten only when it is closed in all copies.
    ALL_COPIES_ARE_CLOSED,
}

rules! {
    /// Which rules of steering hold: a switch that sends each append to the true tail of its chain.
    SteerRules, STEER_NAMES, without_steering, for_each_steering_mutant:
    // Requests.
    /// With the address of a compare-and-swap its operands are rewritten. The published prototype rewrites only the address.
    COMPARE_IS_REWRITTEN,
    /// A packet that comes again is rewritten as it was (PROTOCOLS.md).
    REPEATS_ARE_ALIKE,
    /// Only a packet with a new number is taken for a new one.
    NUMBERS_ARE_NEW,
    /// A slot is outstanding for the key that it was written for last: a client may use it for another one under the same number.
    LAST_WRITE_COUNTS,
    /// What a read brings that was sent to the tail is passed on only if that one's append is acknowledged (PROTOCOLS.md).
    READS_TAKE_WHAT_IS_ACKNOWLEDGED,
    /// And only if it is that entry, and not what was in its slot before.
    READS_BRING_WHAT_THEY_WERE_SENT_FOR,
    /// What a read brings to a connection from before a restart of the switch is not passed on: nobody knows where the read was sent.
    STRANGERS_READ_NOTHING,
    // Acknowledgements.
    /// The client is told what it was steered to, and not what another word was (PROTOCOLS.md).
    ORIGINAL_IS_REWRITTEN,
    /// An append that stands behind one that is not acknowledged is not acknowledged before it (PROTOCOLS.md).
    ACKS_WAIT,
    /// What stands behind an append that failed has failed, too.
    FOLLOWERS_FALL,
    /// A compare that fails ends what is known of the tail (PROTOCOLS.md).
    MISMATCHES_RESET,
    /// What a connection from before a restart of the switch is told of an atomic is that nobody knows what it did.
    STRANGERS_ARE_DOUBTED,
    // Where words are bound to queue pairs.
    /// Every compare-and-swap goes on the bound queue pair of its word, or to no word.
    ALL_ARE_BOUND,
    /// A client is told of its append only when its own queue pair has come so far.
    FILLERS_ARE_AWAITED,
    /// A compare-and-swap that comes again takes no other number of the bound queue pair.
    NUMBERS_ARE_TAKEN_ONCE,
    /// What a client had under way when its connection ended is not sent again.
    HOLES_ARE_FILLED,
    /// What was under way on a bound queue pair that begins anew is in doubt.
    BEGUN_ANEW_IS_DOUBTED,
    /// Where there is no room, a compare-and-swap goes on its client's own queue pair only if it is the first that is sent to its word.
    OVERFLOWS_ARE_FIRST,
    /// A compare-and-swap becomes a WRITE only if nothing was sent to its word since that entry's append.
    WRITES_FIND_NOTHING_SENT,
    /// And only if that append is acknowledged (PROTOCOLS.md).
    WRITES_TAKE_WHAT_IS_ACKNOWLEDGED,
    // The control plane.
    /// When a key leaves its place to another one, nothing refers to the place any more.
    PLACES_ARE_LEFT_CLEAN,
    /// What is known of tails and outstanding entries is forgotten before a slot's number can come round.
    KNOWLEDGE_EXPIRES,
    /// An introduction that was under way when the switch died means nothing to the next one: the connection may have been used since.
    INTRODUCTIONS_NAME_THE_SWITCH,
}
