//! The rules, in the order of `wire::rules`; where each is kept; what catches its mutant; what goes wrong without it.

use check::coherence::Plan;
use wire::Faithful;
use wire::rules::without;

use crate::mutants::mutant::{Found, Mutant, scenario};
use crate::mutants::{changes_nothing, joint_scope, runs, scenarios, scope};

/// One way to catch a mutant: words for it, and the function that does it. Only the machines that keep the rule are
/// compiled without it.
macro_rules! by {
    ($rule:ident, nodes, scope($scope:literal)) => {
        (concat!("scope ", $scope), || scope::<without::$rule, Faithful>($scope))
    };
    ($rule:ident, switch, scope($scope:literal)) => {
        (concat!("scope ", $scope), || scope::<Faithful, without::$rule>($scope))
    };
    ($rule:ident, both, scope($scope:literal)) => {
        (concat!("scope ", $scope), || scope::<without::$rule, without::$rule>($scope))
    };
    ($rule:ident, nodes, joint($scope:literal)) => {
        (concat!("joint scope ", $scope), || joint_scope::<without::$rule>($scope))
    };
    ($rule:ident, nodes, subsumed($scope:literal)) => {
        (concat!("subsumed in ", $scope), || {
            changes_nothing::<without::$rule, Faithful>($scope).then(|| "the same states".to_owned())
        })
    };
    ($rule:ident, switch, subsumed($scope:literal)) => {
        (concat!("subsumed in ", $scope), || {
            changes_nothing::<Faithful, without::$rule>($scope).then(|| "the same states".to_owned())
        })
    };
    ($rule:ident, $where:ident, runs) => {
        ("random runs", || runs::<without::$rule>(Plan::from_seed, 0))
    };
    ($rule:ident, $where:ident, restarts($from:literal)) => {
        ("runs with restarts", || runs::<without::$rule>(Plan::with_restarts, $from))
    };
    ($rule:ident, $where:ident, scenario($scenario:ident)) => {
        (concat!("scenario ", stringify!($scenario)), || {
            scenario(scenarios::$scenario::<without::$rule>, scenarios::$scenario::<Faithful>)
        })
    };
}

macro_rules! mutants {
    ($($rule:ident, $where:ident, $by:ident $(($arg:tt))?, $without:literal;)*) => {
        pub(crate) const MUTANTS: &[Mutant] = &[$({
            const BY: (&str, fn() -> Found) = by!($rule, $where, $by $(($arg))?);
            Mutant { rule: stringify!($rule), without: $without, by: BY.0, check: BY.1 }
        }),*];
    };
}

mutants! {
    ALL_SHARERS_ANSWER, nodes, runs, "a writer goes on while another node still has a copy";
    READ_WAITS_FOR_HOME, nodes, scope("switch-two-turns"), "the entry says Shared while the home's memory is stale";
    EVICTION_WAITS_FOR_HOME, nodes, scope("switch-evict"), "the next reader gets what the home had before the write-back";
    ONE_UNLOCK_A_PARITY, nodes, scope("home"), "an event begins whose parity still has an unlock under way";
    REFUSED_IS_UNLOCKED, nodes, scope("switch-in-order"), "a refused event's marks and locks stay for ever";
    REPEATED_READ_IS_CLOSED, nodes, scope("switch-3-late-read"), "a late copy of a request downgrades a later owner";
    COPY_BEFORE_CLOSE, nodes, scope("home-loss"), "the agent is closed before its copy is home, and none comes any more";
    SHARED_STANDS_FOR_COPY, nodes, runs, "a reader whose write-back was lost waits for it for ever";
    EVICT_WHERE_IT_IS, nodes, scenario(the_victim_has_moved), "another block is thrown out of its frame";
    REPEATS_CHOOSE_ALIKE, nodes, runs, "two copies of a request ask two providers";
    REQUESTS_ARE_REPEATED, nodes, runs, "a lost request is waited for for ever";
    UNLOCKS_ARE_REPEATED, nodes, runs, "a lost unlock leaves the entry locked";
    WAITS_ARE_BOUNDED, nodes, scenario(a_lock_holder_was_cut_off), "after a few losses a node sits on a lock for longer than all others can wait";
    PEEK_KNOWS_ITS_ANSWER, nodes, scope("peek-duplicate"), "a late answer to an earlier PEEK is read as one to this";
    HANDS_OVER_ONCE, nodes, scope("line-late-follow"), "a late word of a former follower hands the lock to nobody";
    HANDED_UNLOCK_SAYS_SO, nodes, scope("line"), "an unlock is answered \"followed\" for ever, though the lock went on";
    FOLLOWED_WAITS, nodes, scope("line"), "who stands behind is forgotten";
    REFUSED_IN_LINE_INSTALLS, nodes, scope("line-evict"), "what the one before has done is forgotten";
    UNLOCKS_KEEP_THEIR_PLACE, nodes, scope("line-duplicate"), "a late copy of a request takes the block from whoever stood behind";
    AGENT_IGNORES_OLD, nodes, scope("switch-late-read"), "a late copy of an old request takes a block away";
    AGENT_KNOWS_PARITIES, nodes, runs, "a request of one parity hides the repeated one of the other";
    AGENT_KEEPS_ANSWERS, nodes, runs, "the data of a lost answer is gone";
    AGENT_CHECKS_STATE, nodes, subsumed("switch-late-read"), "a request that names another state acts";
    AGENT_INVALIDATES, nodes, runs, "a copy stays beside a writer's";
    PEEK_IS_REFUSED_AGAIN, nodes, scope("peek-loss"), "a PEEK whose refusal was lost waits for ever";
    AGENT_DOWNGRADES, nodes, runs, "the owner goes on writing beside a reader";
    AGENT_WRITES_BACK, nodes, runs, "a reader waits for a copy that nobody sends home";
    AGENT_CLOSES, nodes, scope("switch-3-late-read"), "a late copy of a closed request downgrades a later owner";
    HOME_DECIDES_ONCE, nodes, runs, "a repeated request is refused by its own lock, or takes it twice";
    HOME_REMEMBERS_UNLOCKS, nodes, runs, "a late copy of a request takes a lock that nobody releases";
    HOME_KNOWS_KEEPER, nodes, runs, "the home and the switch both grant";
    WRITE_BACK_ONCE, nodes, scope("home-late-write-back"), "a late copy of a write-back brings old bytes back";
    CLOSED_TAKES_NO_WRITE_BACK, nodes, scenario(a_write_back_comes_after_its_close), "a write-back after its event is closed brings old bytes back";
    OWNER_ANSWERS_PEEK, nodes, scope("peek"), "a read is given what the home had before the write";
    ADD_LOCKS_AT_HOME, nodes, runs, "the home grants what the switch is told otherwise";
    LIFE_ENDS_BEFORE_PURGE, nodes, runs, "a late reader keeps a copy of a freed block";
    LOCK_SERIALIZES, both, runs, "two writers are granted at once";
    EVICTION_LOCKS_FOR_WRITING, both, runs, "an eviction runs beside a read of the same copy";
    CHECK_TABLE, both, runs, "a request that came too late is granted";
    READ_UNLOCK_MERGES, both, runs, "a reader's copy is forgotten by the directory";
    FORWARDER_SAYS_REPEATED, both, scope("switch-3-late-read"), "the requester does not know that it must close";
    LAST_UNLOCK_FILTERS_REQUESTS, switch, runs, "a late copy of a request takes a lock that nobody releases";
    LAST_UNLOCK_FILTERS_UNLOCKS, switch, scope("switch-duplicate"), "an old unlock releases somebody else's lock";
    SWITCH_RECORDS_ALL_UNLOCKS, switch, runs, "a late copy of a request that a home had decided is granted by the switch";
    SCOREBOARD, switch, runs, "a repeated request is refused by its own lock";
    REFUSAL_STICKS, switch, runs, "a copy of a refused request is granted, and nobody waits for it";
    HOME_MARK_STICKS, switch, scope("add-late-write"), "a copy of a request that went to the home is granted by the switch";
    UNLOCK_OF_NOTHING_IS_SHORT, switch, subsumed("switch-duplicate"), "a late second pass resets the score of a later event";
    CLAIM_IS_MARKED, switch, runs, "two copies of an ADD claim two ways";
    ADD_IS_IDEMPOTENT, switch, runs, "a tag stands in two ways";
    JOINS_ONCE, switch, scope("line-duplicate"), "a repeated request stands in line behind itself";
    REMOVE_COMMITS, switch, runs, "an entry goes whose home has not heard of it";
    EPOCHS_ARE_FENCED, both, restarts(0), "packets of the switch's former life act";
    LIVES_ARE_FENCED, nodes, scenario(a_packet_of_a_former_life_comes), "packets of a node's former life act";
    HOME_AWAITS_REPORTS, nodes, restarts(0), "a home decides without knowing who has copies";
    COPIES_ARE_REPORTED, nodes, restarts(0), "copies are forgotten";
    CUT_EVICTION_IS_UNDONE, nodes, restarts(0), "the only copy is thrown away";
    RETAINED_ANSWERS_ARE_REPORTED, nodes, restarts(0), "the only copy is forgotten";
    ONLY_CUT_EVENTS_COUNT, nodes, restarts(0), "an old answer counts as the latest copy";
    OLD_SAVINGS_ARE_DROPPED, nodes, scenario(what_was_saved_is_old), "old contents come home";
    VAIN_REQUESTS_ARE_FORGOTTEN, nodes, scenario(a_recovery_is_cut_short_again_and_again), "each recovery takes longer than the last, and where stops are frequent none ends";
    SAVINGS_ARE_KEPT, nodes, scenario(a_recovery_is_cut_short_again_and_again), "the only copy is lost in a second restart";
    STALE_HOME_IS_MENDED, nodes, restarts(320), "the home's memory stays stale";
    HELD_LOCKS_ARE_REPORTED, nodes, restarts(0), "a lock is given away twice";
    DEAD_WRITERS_LOSE, nodes, restarts(0), "stale contents are served as if nothing had been lost";
    ENDED_COPIES_ARE_DROPPED, nodes, joint("block-change-death"), "copies of freed blocks stay";
    ORPHANED_COPIES_ARE_DROPPED, nodes, restarts(0), "copies of a dead home's blocks stay";
    FREES_ARE_FOR_THEIR_ALLOCATOR, nodes, joint("block-free-death"), "an old FREE frees what the next owner gave out";
    KNOWLEDGE_IS_KEPT, nodes, scenario(a_recovery_after_a_death_is_cut_short), "what a home knew is forgotten by a second restart";
}
