//! One thing goes wrong at a time, and membership does what its front page says, in the time that it says.

use crate::rig;

use membership::coordinator::Phase;
use rig::{Faults, Rig};
use wire::{Copyset, Nanos, NodeId, SwitchEpoch};

const T: Nanos = Nanos::from_millis(1000);

const fn of_timeout(eighths: u64) -> Nanos {
    Nanos(T.0 / 8 * eighths)
}

/// All but this one have begun an epoch in which its node is down, or in another incarnation.
fn goes_on_without(rig: &Rig, gone: usize) -> bool {
    let session = rig.processes[gone].session;
    rig.running().filter(|it| it.session != session).all(|it| {
        let roster = it.member.roster();
        roster.epoch.0 > 0 && !roster.is_alive(rig.processes[gone].node, session)
    })
}

fn incarnations(rig: &Rig) -> Vec<u32> {
    rig.coordinator().roster().entries.iter().map(|entry| entry.incarnation.0).collect()
}

#[test]
fn a_rack_forms_at_once_when_every_node_is_there_and_alone() {
    let mut rig = Rig::new(1, 4);
    rig.start_coordinator();
    rig.fill();
    assert!(rig.run_until(of_timeout(1), Rig::is_settled));
    assert_eq!(rig.coordinator().counters().epochs, 1, "one epoch for all");
}

#[test]
fn a_rack_forms_without_a_node_that_does_not_come() {
    let mut rig = Rig::new(2, 3);
    rig.start_coordinator();
    rig.start(NodeId(0), true);
    rig.start(NodeId(2), true);
    assert!(!rig.run_until(of_timeout(15), Rig::is_settled), "it is waited for");
    assert!(rig.run_until(of_timeout(3), Rig::is_settled));
    assert_eq!(rig.coordinator().roster().live().len(), 2);
}

#[test]
fn nodes_that_come_later_together_share_an_epoch() {
    let mut rig = Rig::new(3, 4);
    rig.start_coordinator();
    rig.start(NodeId(0), true);
    rig.run_for(of_timeout(24));
    assert!(rig.is_settled());
    rig.fill();
    assert!(rig.run_until(of_timeout(3), Rig::is_settled));
    assert_eq!(rig.coordinator().counters().epochs, 2);
}

#[test]
fn a_killed_node_is_gone_everywhere_a_timeout_later() {
    let mut rig = Rig::formed(4, 4);
    rig.run_for(of_timeout(5));
    rig.processes[0].killed = true;
    assert!(!rig.run_until(of_timeout(6), |rig| goes_on_without(rig, 0)), "not in haste either");
    assert!(rig.run_until(Nanos(T.0 / 4 + 10_000_000), |rig| goes_on_without(rig, 0)));
    let roster = rig.coordinator().roster();
    assert_eq!(roster.view().shadow, NodeId(1), "the lowest live node is the shadow");
}

#[test]
fn a_killed_node_blocks_nobody_for_two_timeouts_on_a_network_that_loses_a_tenth() {
    for seed in 0..200 {
        let mut rig = Rig::formed(seed, 4);
        rig.faults = Faults { lose: 100, double: 100, late: 0 };
        rig.run_for(of_timeout(7));
        rig.processes[2].killed = true;
        assert!(rig.run_until(Nanos(2 * T.0), |rig| goes_on_without(rig, 2)), "seed {seed}");
    }
}

#[test]
fn a_new_process_that_is_alone_takes_the_place_of_the_killed_one_at_once_in_one_epoch() {
    let mut rig = Rig::formed(5, 3);
    let before = incarnations(&rig);
    rig.processes[1].killed = true;
    rig.start(NodeId(1), true);
    assert!(rig.run_until(of_timeout(1), Rig::is_settled));
    let after = incarnations(&rig);
    assert!(after[1] > before[1] && after[0] == before[0] && after[2] == before[2]);
    assert_eq!(rig.coordinator().counters().epochs, 2);
}

#[test]
fn a_new_process_that_may_not_be_alone_waits_until_the_old_lease_is_over() {
    let mut rig = Rig::formed(6, 3);
    rig.stop_for(1, Nanos(3 * T.0));
    rig.start(NodeId(1), false);
    assert!(!rig.run_until(of_timeout(6), |rig| rig.processes[3].member.epoch().0 > 0));
    assert!(rig.run_until(of_timeout(3), |rig| rig.processes[3].member.epoch().0 > 0));
    rig.run_for(Nanos(3 * T.0));
    assert!(rig.processes[1].fenced && rig.is_settled());
}

#[test]
fn a_second_process_of_a_node_is_not_let_in_while_the_first_incarnations() {
    let mut rig = Rig::formed(7, 2);
    rig.start(NodeId(1), false);
    rig.run_for(Nanos(5 * T.0));
    assert_eq!(rig.processes[2].member.epoch().0, 0);
    assert!(!rig.processes[1].fenced);
}

#[test]
fn a_node_that_leaves_is_let_go_at_once() {
    let mut rig = Rig::formed(8, 3);
    rig.leave(0);
    assert!(!rig.processes[0].member.holds(rig.processes[0].clock.at(rig.now)));
    assert!(rig.run_until(of_timeout(1), |rig| rig.processes[0].left && goes_on_without(rig, 0)));
    assert!(rig.is_settled());
}

#[test]
fn a_node_that_was_stopped_for_too_long_is_fenced_by_the_first_answer() {
    let mut rig = Rig::formed(9, 3);
    rig.stop_for(2, Nanos(3 * T.0));
    rig.run_for(Nanos(3 * T.0 - 1));
    assert!(goes_on_without(&rig, 2) && !rig.processes[2].fenced);
    rig.run_for(Nanos::from_millis(1));
    assert!(rig.processes[2].fenced);
}

#[test]
fn a_node_that_was_stopped_for_a_moment_incarnations_on() {
    let mut rig = Rig::formed(10, 3);
    let before = incarnations(&rig);
    rig.stop_for(2, of_timeout(6));
    rig.run_for(Nanos(3 * T.0));
    assert!(rig.is_settled());
    assert_eq!((incarnations(&rig), rig.coordinator().counters().epochs), (before, 1));
}

#[test]
fn a_node_that_hears_nothing_loses_its_lease_before_others_may_begin_without_it() {
    let mut rig = Rig::formed(11, 3);
    rig.cut(NodeId(1), true, Nanos(10 * T.0));
    rig.cut(NodeId(1), false, Nanos(10 * T.0));
    assert!(
        rig.run_until(Nanos(2 * T.0), |rig| !rig.processes[1]
            .member
            .holds(rig.processes[1].clock.at(rig.now)))
    );
    assert!(rig.coordinator().roster().live().contains(NodeId(1)));
    assert!(rig.run_until(of_timeout(1), |rig| goes_on_without(rig, 1)));
}

#[test]
fn a_node_that_is_heard_but_hears_nothing_does_not_block_an_epoch() {
    let mut rig = Rig::formed(12, 4);
    rig.cut(NodeId(1), false, Nanos(20 * T.0));
    rig.processes[3].killed = true;
    assert!(rig.run_until(Nanos(2 * T.0), |rig| rig.coordinator().counters().epochs == 2));
    assert!(rig.coordinator().roster().live().contains(NodeId(1)), "it is heard");
    assert!(rig.run_until(of_timeout(13), |rig| goes_on_without(rig, 1)));
    assert_eq!(rig.coordinator().counters().lost, 1);
}

#[test]
fn a_coordinator_that_is_restarted_under_leases_loses_nobody_and_no_time() {
    let mut rig = Rig::formed(13, 4);
    let before = incarnations(&rig);
    rig.control = None;
    rig.run_for(of_timeout(2));
    rig.start_coordinator();
    assert!(rig.run_until(of_timeout(2), Rig::is_settled));
    assert_eq!(incarnations(&rig), before);
}

#[test]
fn epochs_are_later_than_what_a_switch_that_outlived_its_coordinator_has_been_in() {
    let mut rig = Rig::formed(13, 4);
    rig.control = None;
    rig.start_coordinator();
    let latest = SwitchEpoch(1_000_000);
    rig.control.as_mut().unwrap().coordinator.hear_of(latest);
    assert!(rig.run_until(of_timeout(2), Rig::is_settled));
    assert!(rig.coordinator().roster().epoch > latest);
}

#[test]
fn a_coordinator_that_is_restarted_while_a_node_is_down_goes_on_with_the_others() {
    let mut rig = Rig::formed(14, 4);
    rig.processes[3].killed = true;
    rig.run_for(Nanos(2 * T.0));
    let before = incarnations(&rig);
    rig.control = None;
    rig.run_for(of_timeout(2));
    rig.start_coordinator();
    assert!(rig.run_until(of_timeout(2), Rig::is_settled));
    assert_eq!(incarnations(&rig), before, "also of the one that is down");
}

#[test]
fn a_coordinator_that_comes_back_late_goes_on_when_all_leases_must_have_run_out() {
    let mut rig = Rig::formed(15, 3);
    let before = incarnations(&rig);
    rig.control = None;
    rig.run_for(Nanos(5 * T.0));
    rig.start_coordinator();
    assert!(!rig.run_until(of_timeout(7), Rig::is_settled));
    assert!(rig.run_until(of_timeout(3), Rig::is_settled));
    assert_eq!(incarnations(&rig), before);
}

#[test]
fn switch_and_node_killed_together_cost_the_others_one_timeout() {
    let mut rig = Rig::formed(16, 4);
    rig.control = None;
    rig.processes[2].killed = true;
    rig.run_for(of_timeout(1));
    rig.start_coordinator();
    assert!(rig.run_until(of_timeout(10), |rig| goes_on_without(rig, 2)));
    assert!(rig.run_until(of_timeout(1), Rig::is_settled));
}

#[test]
fn a_coordinator_that_was_stopped_declares_nobody_dead_for_it() {
    let mut rig = Rig::formed(17, 4);
    if let Some(control) = &mut rig.control {
        control.stopped_until = rig.now + 3 * T.0;
    }
    rig.run_for(Nanos(5 * T.0));
    assert!(rig.is_settled());
    assert_eq!(rig.coordinator().counters().epochs, 1);
}

#[test]
fn a_coordinator_that_is_late_every_time_finds_the_dead_and_blames_nobody_else() {
    let mut rig = Rig::formed(21, 3);
    rig.processes[1].killed = true;
    for _ in 0..16 {
        // No processor for three heartbeats, then one for a moment: that counts as one heartbeat each.
        let control = rig.control.as_mut().unwrap();
        control.stopped_until = rig.now + of_timeout(3).0;
        rig.run_for(of_timeout(3) + Nanos::from_millis(10));
    }
    assert!(goes_on_without(&rig, 1));
    assert_eq!(rig.coordinator().counters().silent, 1, "the others were heard now and then");
    assert_eq!(rig.coordinator().roster().live().len(), 2);
}

#[test]
fn a_rack_whose_nodes_all_died_begins_anew_when_new_processes_come() {
    let mut rig = Rig::formed(18, 2);
    let before = incarnations(&rig);
    rig.processes.iter_mut().for_each(|it| it.killed = true);
    rig.run_for(Nanos(3 * T.0));
    assert_eq!(rig.coordinator().counters().epochs, 1, "nobody is there who would wait for the dead");
    rig.fill();
    assert!(rig.run_until(of_timeout(3), Rig::is_settled));
    assert!(incarnations(&rig).iter().zip(before).all(|(new, old)| *new > old));
}

#[test]
fn of_nodes_that_all_died_those_that_do_not_come_back_are_declared_dead() {
    let mut rig = Rig::formed(27, 3);
    rig.processes.iter_mut().for_each(|it| it.killed = true);
    rig.run_for(Nanos(3 * T.0));
    rig.start(NodeId(1), true);
    assert!(rig.run_until(of_timeout(10), |rig| goes_on_without(rig, 0) && goes_on_without(rig, 2)));
    assert!(rig.run_until(of_timeout(1), Rig::is_settled));
    assert_eq!(rig.coordinator().roster().live().len(), 1);
}

#[test]
fn a_coordinator_that_is_cut_off_from_all_declares_nobody_dead_for_it() {
    for eighths in [6, 8, 9, 30] {
        let mut rig = Rig::formed(28, 4);
        for node in 0..4 {
            rig.cut(NodeId(node), true, of_timeout(eighths));
            rig.cut(NodeId(node), false, of_timeout(eighths));
        }
        rig.run_for(of_timeout(eighths));
        assert!(
            rig.run_until(of_timeout(2), |rig| rig.running().all(|it| it.member.holds(it.clock.at(rig.now))))
        );
        rig.run_for(Nanos(2 * T.0));
        let counters = rig.coordinator().counters();
        assert_eq!((counters.epochs, counters.silent), (1, 0), "{eighths} eighths");
        assert_eq!(counters.cut_off, u64::from(eighths >= 8), "{eighths} eighths");
    }
}

#[test]
fn a_node_that_dies_while_the_coordinator_is_cut_off_is_declared_dead_a_timeout_after_it_hears_again() {
    let mut rig = Rig::formed(29, 4);
    for node in 0..4 {
        rig.cut(NodeId(node), true, of_timeout(16));
        rig.cut(NodeId(node), false, of_timeout(16));
    }
    rig.processes[2].killed = true;
    rig.run_for(of_timeout(16));
    assert!(!goes_on_without(&rig, 2));
    assert!(rig.run_until(of_timeout(10), |rig| goes_on_without(rig, 2)));
    assert!(rig.run_until(of_timeout(1), Rig::is_settled));
    assert_eq!(rig.coordinator().roster().live().len(), 3);
}

#[test]
fn a_home_that_missed_an_epoch_gets_what_the_switch_knew_when_it_left_its_own() {
    let mut rig = Rig::formed(19, 4);
    // It hears nothing while one node leaves and then another does. The rig checks which dump it gets.
    rig.cut(NodeId(0), false, of_timeout(3));
    rig.leave(2);
    rig.run_for(of_timeout(1));
    rig.leave(3);
    rig.run_for(of_timeout(1));
    assert_eq!(rig.coordinator().counters().epochs, 3);
    let before = rig.seen.dumps;
    assert!(
        rig.run_until(of_timeout(3), |rig| rig.processes[0].member.roster() == rig.coordinator().roster())
    );
    assert_eq!((rig.processes[0].begun.len(), rig.seen.dumps), (2, before + 1));
}

#[test]
fn a_duplicate_of_a_first_beat_brings_nobody_back() {
    let mut rig = Rig::new(20, 3);
    rig.faults = Faults { lose: 0, double: 1000, late: 300 };
    rig.start_coordinator();
    rig.fill();
    rig.run_for(of_timeout(2));
    rig.processes[..2].iter_mut().for_each(|it| it.killed = true);
    // Whatever of them is still in flight arrives meanwhile.
    rig.run_for(Nanos(6 * T.0));
    assert_eq!(rig.coordinator().roster().live().iter().collect::<Vec<_>>(), [NodeId(2)]);
}

#[test]
fn a_last_beat_that_comes_again_and_again_keeps_nobody_alive() {
    let mut rig = Rig::formed(21, 3);
    rig.processes[1].killed = true;
    for _ in 0..20 {
        rig.repeat(NodeId(1));
        rig.run_for(of_timeout(1));
    }
    assert!(goes_on_without(&rig, 1));
}

#[test]
fn a_node_that_nobody_remembers_is_fenced_and_costs_no_epoch() {
    let mut rig = Rig::formed(22, 2);
    rig.stop_for(1, Nanos(10 * T.0));
    rig.control = None;
    rig.processes[0].killed = true;
    rig.start_coordinator();
    rig.start(NodeId(0), true);
    rig.run_for(Nanos(9 * T.0));
    assert!(rig.coordinator().roster().live().contains(NodeId(0)));
    rig.run_for(Nanos(2 * T.0));
    assert!(rig.processes[1].fenced && rig.is_settled());
    assert_eq!(rig.coordinator().counters().epochs, 1);
}

#[test]
fn a_leaver_that_is_not_heard_has_no_lease_all_the_same() {
    let mut rig = Rig::formed(23, 2);
    rig.run_for(of_timeout(2));
    rig.cut(NodeId(1), true, Nanos(T.0 / 2));
    rig.leave(1);
    let holds = |rig: &Rig| rig.processes[1].member.holds(rig.processes[1].clock.at(rig.now));
    assert!(!rig.run_until(Nanos(2 * T.0), holds));
    assert!(rig.processes[1].left);
}

#[test]
fn a_node_that_views_do_not_reach_is_declared_dead_after_its_last_lease() {
    let mut rig = Rig::formed(24, 3);
    rig.narrow.insert(NodeId(1), u64::MAX);
    rig.leave(2);
    // The rig checks at every step that it has no lease when it is declared dead.
    assert!(!rig.run_until(of_timeout(11), |rig| rig.processes[1].fenced));
    assert!(rig.run_until(of_timeout(3), |rig| rig.processes[1].fenced));
    assert_eq!(rig.coordinator().counters().lost, 1);
}

#[test]
fn a_node_that_older_ones_have_not_heard_of_has_no_lease_that_a_new_coordinator_would_break() {
    let mut rig = Rig::new(25, 2);
    rig.start_coordinator();
    rig.start(NodeId(0), true);
    rig.run_for(of_timeout(24));
    assert!(rig.is_settled());
    // Node 1 joins, and node 0 does not hear of it. The coordinator dies, and the next one hears node 0 alone.
    rig.cut(NodeId(0), false, of_timeout(3));
    rig.start(NodeId(1), true);
    rig.run_for(of_timeout(3));
    assert!(rig.processes[1].member.epoch().0 > 0);
    rig.control = None;
    rig.cut(NodeId(1), true, of_timeout(4));
    rig.start_coordinator();
    // The rig checks at every step that nobody who is declared dead has a lease.
    assert!(rig.run_until(of_timeout(2), |rig| rig.coordinator().phase() == Phase::Running));
    assert!(!rig.coordinator().roster().live().contains(NodeId(1)));
    rig.run_for(Nanos(2 * T.0));
    assert!(rig.processes[1].fenced);
}

#[test]
fn a_view_arrives_at_once_on_a_network_that_doubles_everything() {
    let mut rig = Rig::formed(26, 4);
    rig.faults.double = 1000;
    rig.leave(2);
    // Three parts take five messages there and back, of at most 0.1 ms each.
    assert!(rig.run_until(Nanos::from_millis(2), |rig| goes_on_without(rig, 2)));
    let most = rig.processes.iter().map(|it| it.member.dropped()).max();
    assert!(
        most.is_some_and(|dropped| (1..=10).contains(&dropped)),
        "not by trying again and again: {most:?}"
    );
}

#[test]
fn what_a_node_has_copied_counts_in_its_epoch_and_the_next_one() {
    let mut rig = Rig::formed(41, 4);
    let nodes = |ids: &[u16]| ids.iter().map(|id| NodeId(*id)).collect::<Copyset>();
    // Of the first memory: who has it, and who is getting it.
    let first = |rig: &Rig| rig.coordinator().memories().next().unwrap();
    assert_eq!(first(&rig), (nodes(&[0, 1]), nodes(&[])));
    rig.processes[0].killed = true;
    assert!(rig.run_until(Nanos(2 * T.0), |rig| goes_on_without(rig, 0)));
    assert_eq!(first(&rig), (nodes(&[1]), nodes(&[2])));
    let epoch = rig.processes[2].member.epoch();
    rig.processes[2].member.set_whole((SwitchEpoch(epoch.0 - 1), nodes(&[0])));
    rig.run_for(of_timeout(6));
    assert_eq!(first(&rig), (nodes(&[1]), nodes(&[2])), "that was before");
    rig.processes[2].member.set_whole((epoch, nodes(&[0])));
    rig.run_for(of_timeout(6));
    assert_eq!(first(&rig), (nodes(&[1, 2]), nodes(&[])));
    assert_eq!(
        rig.coordinator().roster().memories[0].by,
        nodes(&[1]),
        "the roster of an epoch stays as it is"
    );
    rig.processes[1].killed = true;
    assert!(rig.run_until(Nanos(2 * T.0), |rig| goes_on_without(rig, 1)));
    let life = rig.coordinator().roster().memories[0].life;
    assert!(!rig.coordinator().roster().memories[0].again);
    assert_eq!(first(&rig), (nodes(&[2]), nodes(&[3])));
    // With the last one that has it, it is gone, and begins anew.
    rig.processes[2].killed = true;
    assert!(rig.run_until(Nanos(2 * T.0), |rig| goes_on_without(rig, 2)));
    assert_eq!(first(&rig), (nodes(&[3]), nodes(&[])));
    let kept = rig.coordinator().roster().memories[0];
    assert!(kept.life > life && kept.again);
}

#[test]
fn a_node_that_comes_back_has_nothing_and_gets_its_memory_again() {
    let mut rig = Rig::formed(42, 3);
    let nodes = |ids: &[u16]| ids.iter().map(|id| NodeId(*id)).collect::<Copyset>();
    let memories = |rig: &Rig| rig.coordinator().memories().collect::<Vec<_>>();
    rig.processes[1].killed = true;
    let back = rig.start(NodeId(1), true);
    assert!(rig.run_until(of_timeout(4), Rig::is_settled));
    let now = [(nodes(&[0]), nodes(&[1])), (nodes(&[2]), nodes(&[1])), (nodes(&[0, 2]), nodes(&[]))];
    assert_eq!(memories(&rig), now);
    // It has both again; who has the third is as it was.
    let epoch = rig.processes[back].member.epoch();
    rig.processes[back].member.set_whole((epoch, nodes(&[0, 1])));
    rig.run_for(of_timeout(6));
    rig.processes[0].killed = true;
    assert!(rig.run_until(Nanos(2 * T.0), |rig| goes_on_without(rig, 0)));
    let now = [(nodes(&[1]), nodes(&[2])), (nodes(&[1, 2]), nodes(&[])), (nodes(&[2]), nodes(&[1]))];
    assert_eq!(memories(&rig), now);
}

#[test]
fn of_more_copies_than_there_are_to_be_the_first_ones_stay() {
    let mut rig = Rig::formed(43, 4);
    let nodes = |ids: &[u16]| ids.iter().map(|id| NodeId(*id)).collect::<Copyset>();
    let first = |rig: &Rig| rig.coordinator().memories().next().unwrap();
    let says = |rig: &mut Rig, process: usize| {
        let epoch = rig.processes[process].member.epoch();
        rig.processes[process].member.set_whole((epoch, nodes(&[0])));
        rig.run_for(of_timeout(6));
    };
    rig.processes[0].killed = true;
    assert!(rig.run_until(Nanos(2 * T.0), |rig| goes_on_without(rig, 0)));
    says(&mut rig, 2);
    let back = rig.start(NodeId(0), true);
    assert!(rig.run_until(Nanos(2 * T.0), Rig::is_settled));
    assert_eq!(first(&rig), (nodes(&[1, 2]), nodes(&[0])));
    says(&mut rig, back);
    assert_eq!(first(&rig), (nodes(&[0, 1, 2]), nodes(&[])));
    // The next epoch: node 3 dies, which has nothing to do with it.
    rig.processes[3].killed = true;
    assert!(rig.run_until(Nanos(2 * T.0), |rig| goes_on_without(rig, 3)));
    assert_eq!(rig.coordinator().roster().memories[0].by, nodes(&[0, 1]));
}

#[test]
fn a_node_joins_a_running_rack_once_it_is_listed() {
    let mut rig = Rig::new(31, 4);
    rig.listed = 2;
    rig.start_coordinator();
    rig.start(NodeId(0), true);
    rig.start(NodeId(1), true);
    assert!(rig.run_until(of_timeout(1), Rig::is_settled), "nobody waits for who is not listed");
    let added = rig.start(NodeId(2), true);
    rig.run_for(of_timeout(24));
    assert!(rig.processes[added].member.is_unlisted() && rig.processes[added].member.epoch().0 == 0);
    let status = |rig: &Rig| rig.coordinator().status(NodeId(2), Nanos(rig.now)).is_some();
    assert!(!status(&rig), "a place where there never was a node is no node");
    rig.list(3);
    assert!(rig.run_until(of_timeout(3), Rig::is_settled));
    let roster = rig.processes[added].member.roster();
    assert_eq!((roster.live().len(), roster.founders, roster.memories.len()), (3, 2, 2));
    // It gets copies, too: memory 1 is to be on the two nodes from node 1 on.
    assert!(roster.memories[1].to.contains(NodeId(2)), "{roster:?}");
    assert!(status(&rig) && !rig.processes[added].member.is_unlisted());
}

#[test]
fn a_node_that_was_added_is_known_to_a_switch_with_the_old_list() {
    let mut rig = Rig::new(32, 3);
    rig.listed = 2;
    rig.start_coordinator();
    rig.start(NodeId(0), true);
    rig.start(NodeId(1), true);
    assert!(rig.run_until(of_timeout(1), Rig::is_settled));
    rig.list(3);
    let added = rig.start(NodeId(2), true);
    assert!(rig.run_until(of_timeout(3), Rig::is_settled));
    rig.control = None;
    rig.run_for(of_timeout(2));
    rig.listed = 2;
    rig.start_coordinator();
    assert!(rig.run_until(of_timeout(16), Rig::is_settled));
    let process = &rig.processes[added];
    assert!(!process.fenced && rig.coordinator().roster().is_alive(process.node, process.session));
    assert_eq!(rig.coordinator().roster().founders, 2, "a rack that goes on counts as it did");
}
