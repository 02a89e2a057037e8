//! The metadata server and its backups, step by step: who hears of what before whom, and what a backup does that takes over.

use chain::metadata::{ClientId, Metadata, MetadataConfig};
use chain::server::{Batch, Followed, Input, Logged, Server, ServerId};
use chain::{Answer, Appended, Call, Outcome, Verb};
use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Word};
use wire::{AllRules, Nanos};

const CLIENT: ClientId = ClientId(7);
const KEY: u64 = 1;
const QUARANTINE: u64 = 100;

/// The servers of a store with so many copies of each slot.
fn servers(copies: u8) -> Vec<Server> {
    let config = MetadataConfig {
        units: 100,
        quarantine: Nanos(QUARANTINE),
        timeout: Nanos(50),
        decide_after: Nanos::ZERO,
    };
    let machine = Metadata::new(config).with_copies(copies);
    let backups: Vec<ServerId> = (1..u16::from(copies)).map(ServerId).collect();
    let mut all = vec![Server::primary(AllRules, machine.clone(), &backups)];
    all.extend(backups.iter().map(|_| Server::backup(AllRules, machine.clone())));
    all
}

/// Sends a backup what it lacks. False if that is nothing.
fn tell(servers: &mut [Server], from: usize, to: usize, now: u64) -> bool {
    let id = ServerId(to as u16);
    let Some(batch) = servers[from].for_backup(id, 100) else { return false };
    match servers[to].follow(Nanos(now), batch) {
        Followed::Has(inputs) => servers[from].backup_has(id, inputs),
        other => panic!("the backup says {other:?}"),
    }
    true
}

fn slots(answer: Option<Answer>) -> Vec<(Location, EntryVersion)> {
    match answer {
        Some(Answer::Slots(slots)) => slots,
        other => panic!("{other:?}"),
    }
}

const fn two_slots() -> Call {
    Call::Slots { class: Class::new(0).expect("the first one"), count: 2 }
}

#[test]
fn an_answer_leaves_when_all_backups_have_what_it_follows_from_and_the_second_one_hears_after_the_first() {
    let mut all = servers(3);
    assert_eq!(all[0].call(Nanos(1), CLIENT, 1, two_slots()), None);
    assert!(all[0].has_work(), "somebody waits");
    assert!(!tell(&mut all, 0, 2, 2), "the first backup does not have it");
    assert!(tell(&mut all, 0, 1, 2));
    assert_eq!(all[0].call(Nanos(3), CLIENT, 1, two_slots()), None);
    assert!(tell(&mut all, 0, 2, 3));
    let given = slots(all[0].call(Nanos(4), CLIENT, 1, two_slots()));
    assert_eq!((given.len(), all[0].happened()), (2, 1), "it was executed once");
    assert_eq!(all[0].call(Nanos(5), CLIENT, 1, two_slots()), Some(Answer::Slots(given.clone())));
    assert!(!all[0].has_work() && !tell(&mut all, 0, 1, 5));
    // The primary dies, and then who took over. Each gives the same answer once more, and other slots to others.
    for place in [1, 2] {
        assert_eq!(all[place].call(Nanos(6), CLIENT, 1, two_slots()), None, "it does not lead");
        all[place].lead(if place == 1 { &[ServerId(2)] } else { &[] });
        if place == 1 {
            assert_eq!(all[1].call(Nanos(6), CLIENT, 1, two_slots()), None, "what does the next one have?");
            assert!(tell(&mut all, 1, 2, 6));
        }
        assert_eq!(all[place].call(Nanos(6), CLIENT, 1, two_slots()), Some(Answer::Slots(given.clone())));
        let other = ClientId(8 + place as u64);
        if place == 1 {
            assert_eq!(all[1].call(Nanos(7), other, 1, two_slots()), None);
            assert!(tell(&mut all, 1, 2, 7));
        }
        let others = slots(all[place].call(Nanos(8), other, 1, two_slots()));
        assert!(others.iter().all(|slot| !given.contains(slot)));
    }
}

#[test]
fn where_a_backup_is_gone_nobody_waits_for_it_and_what_is_told_twice_counts_once() {
    let mut all = servers(3);
    assert_eq!(all[0].call(Nanos(1), CLIENT, 1, two_slots()), None);
    let batch = all[0].for_backup(ServerId(1), 100).unwrap();
    assert_eq!(all[1].follow(Nanos(2), batch.clone()), Followed::Has(1));
    // Its answer was lost.
    assert_eq!(all[1].follow(Nanos(3), batch.clone()), Followed::Has(1));
    // What comes too early is not taken.
    let early = Batch { from: 5, ..batch.clone() };
    assert_eq!(all[1].follow(Nanos(3), early), Followed::Has(1));
    // An outcome of nothing is no input of this store's primary.
    let wrong = Input::Outcome(KEY, Outcome::Unknown);
    let wrong = Batch { from: 1, inputs: vec![Logged { at: Nanos(3), input: wrong }], ..batch.clone() };
    assert_eq!(all[1].follow(Nanos(3), wrong), Followed::Refused);
    all[0].backup_is_gone(ServerId(1));
    assert_eq!(all[0].call(Nanos(4), CLIENT, 1, two_slots()), None, "there is another one");
    assert!(tell(&mut all, 0, 2, 4));
    assert!(all[0].call(Nanos(5), CLIENT, 1, two_slots()).is_some());
    all[0].backup_is_gone(ServerId(2));
    assert!(all[0].call(Nanos(6), CLIENT, 2, two_slots()).is_some(), "it is alone");
    all[2].lead(&[]);
    assert_eq!(all[2].follow(Nanos(7), batch), Followed::Leads);
}

/// A chain of one entry, which all servers know, at the first slot of two.
fn with_a_chain(all: &mut [Server]) -> [(Location, EntryVersion); 2] {
    let tell_all = |all: &mut [Server], now| (1..all.len()).all(|to| tell(all, 0, to, now));
    assert_eq!(all[0].call(Nanos(1), CLIENT, 1, two_slots()), None);
    assert!(tell_all(all, 1));
    let given = slots(all[0].call(Nanos(2), CLIENT, 1, two_slots()));
    let (at, version) = given[0];
    let create = Call::Create { key: KEY, at, version };
    assert_eq!(all[0].call(Nanos(3), CLIENT, 2, create), None);
    assert!(tell_all(all, 3));
    assert_eq!(all[0].call(Nanos(4), CLIENT, 2, create), Some(Answer::Created));
    [given[0], given[1]]
}

#[test]
fn where_a_chain_is_everybody_is_told_at_once_if_backups_know_that_there_is_one() {
    let mut all = servers(2);
    let find = Call::Find { key: KEY };
    let some = Call::FindSome { key: KEY, more: 9 };
    assert_eq!(all[0].call(Nanos(1), ClientId(8), 1, find), Some(Answer::Absent));
    assert_eq!(all[0].call(Nanos(1), CLIENT, 1, two_slots()), None);
    assert!(tell(&mut all, 0, 1, 1));
    let given = slots(all[0].call(Nanos(2), CLIENT, 1, two_slots()));
    let [(first, version), (second, its)] = given[..] else { panic!("two") };
    let create = Call::Create { key: KEY, at: first, version };
    assert_eq!(all[0].call(Nanos(3), CLIENT, 2, create), None);
    // Whoever reads what nobody else knows of makes it last.
    for call in [find, some] {
        assert_eq!(all[0].call(Nanos(4), ClientId(8), 2, call), None);
    }
    let other = all[0].call(Nanos(4), ClientId(8), 2, Call::FindSome { key: 2, more: 9 });
    assert_eq!(other, Some(Answer::Absent));
    assert!(tell(&mut all, 0, 1, 5));
    assert_eq!(all[0].call(Nanos(6), ClientId(8), 2, find), Some(Answer::Found(first, version)));
    // What follows is in memory: whoever takes over finds it there.
    let told = Appended { key: KEY, behind: first, at: second, version: its, kind: EntryKind::Value };
    let before = all[0].happened();
    all[0].told(Nanos(7), CLIENT, told);
    assert_eq!(all[0].call(Nanos(8), ClientId(8), 3, find), Some(Answer::Found(second, its)));
    assert_eq!(all[0].call(Nanos(8), ClientId(8), 3, some), Some(Answer::FoundSome(second, its, vec![])));
    assert_eq!(all[0].happened(), before + 1, "that somebody asks is no news");
}

#[test]
fn a_walk_reads_at_once_changes_memory_when_backups_know_and_is_taken_over() {
    let mut all = servers(2);
    let [(first, version), (second, its)] = with_a_chain(&mut all);
    // Somebody asks, whom nothing was told of what follows: the chain is walked.
    assert_eq!(all[0].call(Nanos(10), CLIENT, 3, Call::Finish { key: KEY }), None);
    let [(KEY, _, Verb::Read(at))] = all[0].verbs(9)[..] else { panic!("it reads") };
    assert_eq!(at, first);
    let word = Word { next: Next::Entry(second, its), entry: version, transaction: 0 };
    let head = EntryHead { word, key: KEY, at: first, len: 1, kind: EntryKind::Value };
    all[0].ended(Nanos(11), KEY, Outcome::Read(Some(head)));
    // It is to stand in the second copy, too: not before the backup knows.
    assert_eq!(all[0].verbs(9), []);
    assert!(all[0].has_work() && tell(&mut all, 0, 1, 12));
    let links = all[0].verbs(9);
    assert!(matches!(links[..], [(KEY, _, Verb::CompareSwap { .. })]), "{links:?}");
    // It dies in the middle of that: it is done again.
    assert_eq!(all[1].verbs(9), [], "a backup does nothing");
    all[1].lead(&[]);
    assert_eq!(all[1].verbs(9), links);
    all[1].ended(Nanos(13), KEY, Outcome::Swapped(word.to_bits()));
    let [(KEY, _, Verb::Read(at))] = all[1].verbs(9)[..] else { panic!("it goes on") };
    assert_eq!(at, second);
    let word = Word { next: Next::Tail, entry: its, transaction: 0 };
    let head = EntryHead { word, key: KEY, at: second, len: 1, kind: EntryKind::Value };
    all[1].ended(Nanos(14), KEY, Outcome::Read(Some(head)));
    let found = all[1].call(Nanos(15), CLIENT, 3, Call::Finish { key: KEY });
    assert_eq!(found, Some(Answer::Found(second, its)));
}

#[test]
fn a_backup_s_clock_goes_on_from_the_primary_s_so_that_what_rests_rests_no_shorter() {
    let mut all = servers(2);
    let [(first, _), (second, its)] = with_a_chain(&mut all);
    let told = Appended { key: KEY, behind: first, at: second, version: its, kind: EntryKind::Value };
    // The first slot rests from 1000 on. The backup's clock says 50 when it hears of that, and runs as fast.
    all[0].told(Nanos(1000), CLIENT, told);
    assert!(!all[0].has_work(), "nobody waits for that");
    assert!(tell(&mut all, 0, 1, 50));
    all[1].lead(&[]);
    let free = |server: &mut Server, now| {
        server.wake(Nanos(now));
        server.machine().memory().1
    };
    assert_eq!(free(&mut all[1], 50 + QUARANTINE - 1), 0);
    assert_eq!(free(&mut all[1], 50 + QUARANTINE), 1);
}

#[test]
fn who_takes_over_tells_of_no_chain_that_the_next_one_may_not_know() {
    let mut all = servers(3);
    assert_eq!(all[0].call(Nanos(1), CLIENT, 1, two_slots()), None);
    assert!(tell(&mut all, 0, 1, 1) && tell(&mut all, 0, 2, 1));
    let (at, version) = slots(all[0].call(Nanos(2), CLIENT, 1, two_slots()))[0];
    let create = Call::Create { key: KEY, at, version };
    assert_eq!(all[0].call(Nanos(3), CLIENT, 2, create), None);
    assert!(tell(&mut all, 0, 1, 3), "only the first one hears of it");
    all[1].lead(&[ServerId(2)]);
    let find = Call::Find { key: KEY };
    assert_eq!(all[1].call(Nanos(4), ClientId(8), 1, find), None);
    assert!(tell(&mut all, 1, 2, 5));
    assert_eq!(all[1].call(Nanos(6), ClientId(8), 1, find), Some(Answer::Found(at, version)));
    assert_eq!(all[1].call(Nanos(6), CLIENT, 2, create), Some(Answer::Created));
}

#[test]
fn a_new_backup_joins_when_it_has_what_others_may_act_on_and_those_before_it_have_what_it_has() {
    let mut all = servers(3);
    assert_eq!(all[0].call(Nanos(1), CLIENT, 1, two_slots()), None);
    assert!(tell(&mut all, 0, 1, 1));
    // The second backup is gone; another one is given what the primary knows, which is more than the first one has by then.
    all[0].backup_is_gone(ServerId(2));
    assert_eq!(all[0].call(Nanos(2), ClientId(8), 1, two_slots()), None);
    let words = all[0].add_backup(ServerId(2));
    let config = MetadataConfig {
        units: 100,
        quarantine: Nanos(QUARANTINE),
        timeout: Nanos(50),
        decide_after: Nanos::ZERO,
    };
    let nothing = || (AllRules, Metadata::new(config).with_copies(3));
    for cut in 0..words.len() {
        assert!(Server::from_words(nothing(), (Nanos(3), Nanos(2)), &words[..cut]).is_none(), "{cut}");
    }
    all[2] = Server::from_words(nothing(), (Nanos(3), Nanos(2)), &words).unwrap();
    assert!(!all[0].backup_joins(ServerId(2)), "the first one lacks something");
    assert!(tell(&mut all, 0, 1, 3));
    // Nobody waits for it meanwhile.
    assert!(all[0].call(Nanos(4), ClientId(8), 1, two_slots()).is_some());
    assert!(all[0].backup_joins(ServerId(2)));
    // Now somebody does.
    assert_eq!(all[0].call(Nanos(5), ClientId(9), 1, two_slots()), None);
    assert!(tell(&mut all, 0, 1, 5));
    assert_eq!(all[0].call(Nanos(6), ClientId(9), 1, two_slots()), None);
    assert!(tell(&mut all, 0, 2, 6));
    let given = all[0].call(Nanos(7), ClientId(9), 1, two_slots());
    // It knows what was asked before it was there, too.
    all[2].lead(&[]);
    assert!(all[2].call(Nanos(8), CLIENT, 1, two_slots()).is_some());
    assert_eq!(all[2].call(Nanos(8), ClientId(9), 1, two_slots()), given);
}

#[test]
fn a_new_backup_knows_of_what_is_not_decided_yet_and_decides_it_when_it_has_taken_over() {
    let (units, quarantine, timeout, decide_after) = (100, Nanos(QUARANTINE), Nanos(50), Nanos(40));
    let machine = Metadata::new(MetadataConfig { units, quarantine, timeout, decide_after }).with_copies(2);
    let mut primary = Server::primary(AllRules, machine.clone(), &[]);
    let [(at, version), _] = slots(primary.call(Nanos(1), CLIENT, 1, two_slots()))[..] else { panic!() };
    let settle = |is_in_flight| Call::Settle { is_in_flight, key: KEY, at, version };
    assert_eq!(primary.call(Nanos(10), CLIENT, 2, settle(true)), None, "something may be in flight");
    let (now, words) = (Nanos(20), primary.add_backup(ServerId(1)));
    let mut backup = Server::from_words((AllRules, machine), (now, primary.clock(now)), &words).unwrap();
    backup.lead(&[]);
    backup.wake(Nanos(49));
    assert_eq!(backup.call(Nanos(49), CLIENT, 2, settle(true)), None, "still");
    backup.wake(Nanos(50));
    assert_eq!(backup.call(Nanos(50), CLIENT, 2, settle(true)), Some(Answer::Free(version.next())));
    // Of what is not, it says so at once.
    assert_eq!(primary.call(Nanos(21), CLIENT, 3, settle(false)), Some(Answer::Free(version.next())));
}
