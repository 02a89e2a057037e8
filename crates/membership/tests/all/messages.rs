//! Bytes to messages and back: nothing panics, nothing is lost, nothing wrong gets through.

use membership::message::{
    Beat, Drain, Know, LAST_EPOCH, MOST_STATISTICS, Message, PART, Pulse, Standing, ViewPart,
};
use membership::{Roster, RosterEntry, Session};
use node::Kept;
use proptest::prelude::*;
use wire::{Copyset, Incarnation, Nanos, NodeId, SwitchEpoch};

fn epoch() -> impl Strategy<Value = SwitchEpoch> {
    (0..=LAST_EPOCH.0).prop_map(SwitchEpoch)
}

fn beat() -> impl Strategy<Value = Message> {
    let numbers = (0u16..64, any::<[u64; 4]>(), epoch(), epoch(), any::<u32>());
    let rest = (any::<[bool; 4]>(), prop::collection::vec(any::<u8>(), 0..=MOST_STATISTICS));
    (numbers, rest).prop_map(|((node, wide, epoch, wants, part), (is, statistics))| {
        Message::Beat(Beat {
            node: NodeId(node),
            session: Session(wide[0]),
            number: wide[1],
            time: Nanos(wide[2]),
            epoch,
            wants: (wants, part),
            ticket: wide[3],
            leased: is[0],
            leaving: is[1],
            sole: is[2],
            draining: is[3],
            whole: Copyset::from_bits(wide[0] ^ wide[1]),
            statistics,
        })
    })
}

fn pulse() -> impl Strategy<Value = Message> {
    use Standing::{Admitted, Alive, Asked, Dead, Waiting};
    let standing = prop::sample::select(vec![Waiting, Asked, Admitted, Alive, Dead]);
    let drain = prop::option::of(any::<(u64, u8)>());
    (any::<[u64; 3]>(), epoch(), standing, drain).prop_map(|(wide, epoch, standing, drain)| {
        let (session, echo) = (Session(wide[0]), Nanos(wide[1]));
        let drain = drain.map(|(bits, staying)| Drain { missing: Copyset::from_bits(bits), staying });
        Message::Pulse(Pulse { session, echo, epoch, ticket: wide[2], standing, drain })
    })
}

fn know() -> impl Strategy<Value = Message> {
    let entries = prop::collection::vec(any::<(u32, u64, bool, bool)>(), 1..=64);
    (0u16..64, any::<u64>(), epoch(), entries, any::<bool>()).prop_map(
        |(node, session, epoch, entries, copies)| {
            let kept = |(life, sets, again, _): &(u32, u64, bool, bool)| {
                let all = u64::MAX >> (64 - entries.len());
                let (by, to) = (Copyset::from_bits(sets & all), Copyset::from_bits(sets.swap_bytes() & all));
                Kept { life: Incarnation(*life.min(&epoch.0)), again: *again, by, to: to.without_all(by) }
            };
            let founders = entries.len() - entries.len() / 3;
            let memories = entries[..founders].iter().filter(|_| copies).map(kept).collect();
            let entry = |(incarnation, session, alive, returned): (u32, u64, bool, bool)| RosterEntry {
                incarnation: Incarnation(incarnation.min(epoch.0)),
                session: Session(session),
                alive,
                returned,
            };
            let entries = entries.into_iter().map(entry).collect();
            let roster = Roster { epoch, entries, founders, memories };
            Message::Know(Know { node: NodeId(node), session: Session(session), roster })
        },
    )
}

fn view() -> impl Strategy<Value = Message> {
    let bytes = prop::collection::vec(any::<u8>(), 0..=PART);
    (any::<u64>(), epoch(), 1u32..100, 0u32..100, 1u32..100, bytes).prop_map(
        |(session, left, later, part, more, bytes)| {
            let epoch = SwitchEpoch((left.0 + later).min(LAST_EPOCH.0));
            let left = SwitchEpoch(left.0.min(epoch.0 - 1));
            let (session, of) = (Session(session), part + more);
            Message::View(ViewPart { session, epoch, left, part, of, bytes })
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![beat(), pulse(), know(), view()]
}

proptest! {
    #[test]
    fn a_message_parses_to_what_was_encoded(message in message()) {
        let bytes = message.encode();
        prop_assert!(bytes.len() <= 32 << 10);
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn a_message_cut_anywhere_is_refused(message in message()) {
        let bytes = message.encode();
        for length in 0..bytes.len() {
            prop_assert!(Message::parse(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
    }

    #[test]
    fn a_message_with_more_behind_it_is_refused(message in message(), more in 1usize..20) {
        let mut bytes = message.encode();
        bytes.resize(bytes.len() + more, 0);
        prop_assert!(Message::parse(&bytes).is_err());
    }

    #[test]
    fn damaged_bytes_are_refused_or_are_another_message(message in message(), at: usize, bit in 0u8..8) {
        let mut bytes = message.encode();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(other) = Message::parse(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }

    #[test]
    fn random_bytes_are_refused_or_encode_to_themselves(kind in 0u8..6, bytes: Vec<u8>) {
        let bytes = [&[kind, 1], &bytes[..]].concat();
        if let Ok(message) = Message::parse(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }
}

#[test]
fn an_epoch_that_leaves_no_room_for_later_ones_is_refused() {
    let pulse = |epoch| {
        Message::Pulse(Pulse {
            session: Session(1),
            echo: Nanos(2),
            epoch: SwitchEpoch(epoch),
            ticket: 3,
            standing: Standing::Alive,
            drain: None,
        })
    };
    assert!(Message::parse(&pulse(LAST_EPOCH.0).encode()).is_ok());
    assert!(Message::parse(&pulse(LAST_EPOCH.0 + 1).encode()).is_err());
}

#[test]
fn a_message_of_another_version_is_refused() {
    let message = Message::View(ViewPart {
        session: Session(1),
        epoch: SwitchEpoch(2),
        left: SwitchEpoch(1),
        part: 0,
        of: 1,
        bytes: vec![7],
    });
    let mut bytes = message.encode();
    bytes[1] += 1;
    assert!(Message::parse(&bytes).is_err());
}

#[test]
fn a_view_that_is_not_later_than_what_it_leaves_is_refused() {
    let view = |left| {
        let (session, epoch, left) = (Session(1), SwitchEpoch(5), SwitchEpoch(left));
        Message::View(ViewPart { session, epoch, left, part: 0, of: 1, bytes: vec![7] }).encode()
    };
    assert!(Message::parse(&view(4)).is_ok());
    assert!(Message::parse(&view(5)).is_err());
}
