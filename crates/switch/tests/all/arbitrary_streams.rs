//! Whatever arrives, in whatever order: the switch does not panic, and its arrays stay in order.

use crate::rig;

use proptest::prelude::*;
use rig::{EPOCH, NODES, tag};
use switch::coherence::{Effect, Resubmit, Switch, SwitchConfig};
use wire::{
    BlockTag, Copyset, Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId, Seq, SlotId,
    Status, SwitchEpoch,
};

/// Few blocks, requesters and numbers, so that packets meet; and a few that are from nowhere.
fn packet() -> impl Strategy<Value = Packet> {
    let kinds = prop_oneof![
        4 => prop::sample::select(vec![PacketKind::Unlock]),
        6 => prop::sample::select(PacketKind::ALL[..10].to_vec()),
        1 => prop::sample::select(PacketKind::ALL.to_vec()),
    ];
    let tags = prop_oneof![
        8 => (0u16..2, 0u64..6).prop_map(|(home, n)| tag(home, n)),
        1 => any::<u64>().prop_map(BlockTag::from_bits),
    ];
    let requesters = (0u16..5, prop::sample::select(vec![0u16, 1, 63, 64]))
        .prop_map(|(node, slot)| RequesterId { node: NodeId(node), slot: SlotId(slot) });
    let what = (kinds, prop::sample::select(PacketKind::ALL[..11].to_vec()), 0u8..3, any::<bool>());
    let refused = prop::option::of(prop::sample::select(Refusal::ALL.to_vec()));
    let numbers = (0u64..6, any::<u64>(), prop_oneof![9 => Just(EPOCH.0), 1 => Just(0)]);
    (what, refused, tags, requesters, numbers).prop_map(|(what, refused, tag, requester, numbers)| Packet {
        kind: what.0,
        event: if what.0.is_request() { what.0 } else { what.1 },
        status: refused.map_or(Status::Granted, Status::Refused),
        provider: false,
        in_switch: what.3,
        repeated: false,
        global_status: GlobalStatus::from_wire(what.2).unwrap(),
        tag,
        copyset: Copyset::from_bits(numbers.1),
        requester,
        seq: Seq(numbers.0),
        from: Endpoint::Requester(requester.node),
        to: Endpoint::Switch,
        epoch: SwitchEpoch(numbers.2),
        ..Packet::request(what.0, tag, requester, Seq(numbers.0))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_stream_breaks_the_switch(
        stream in prop::collection::vec((packet(), any::<u32>(), 0usize..4), 1..120),
    ) {
        // Two sets: everything collides.
        let config = SwitchConfig { entries: 14, epoch: EPOCH, peeks: true, ..SwitchConfig::for_nodes(NODES) };
        let mut switch = Switch::new(&config).unwrap();
        let mut waiting: Vec<Resubmit> = Vec::new();
        let (mut effects, mut resubmitted) = (Vec::new(), 0);
        for (packet, random, second_passes) in &stream {
            switch.on_packet(&Packet { arg: u64::from(*random), ..*packet }, &mut effects);
            // Second passes come at once, later, or not at all, in any order.
            for _ in 0..*second_passes {
                if !waiting.is_empty() {
                    let again = waiting.swap_remove(*random as usize % waiting.len());
                    switch.on_resubmit(again, &mut effects);
                }
            }
            for effect in effects.drain(..) {
                match effect {
                    Effect::Resubmit(again) => {
                        resubmitted += 1;
                        waiting.push(again);
                    }
                    Effect::Send(sent) => {
                        prop_assert_eq!(sent.from, Endpoint::Switch);
                        let node = sent.to.node().expect("nothing is sent to the switch");
                        prop_assert!(node.index() < NODES, "{:?}", sent);
                    }
                }
            }
            switch.invariants_of_any_stream();
        }
        prop_assert_eq!(switch.counters().resubmits, resubmitted);
        prop_assert_eq!(PacketKind::ALL.map(|kind| switch.counters().packets(kind)).iter().sum::<u64>(), stream.len() as u64);
    }
}
