//! Figure 6 of the paper: the global metadata that an event's unlock installs.

use wire::{Copyset, GlobalStatus, NodeId, PacketKind};

/// The state after an event of `me` that found `copyset` under its lock. `None`: the event changes nothing.
///
/// For READ-MISS the switch adds the copyset to the one that it has, instead of replacing it: other
/// READ-MISSes may have been unlocked meanwhile.
pub(crate) fn next_state(event: PacketKind, copyset: Copyset, me: NodeId) -> Option<(GlobalStatus, Copyset)> {
    match event {
        PacketKind::ReadMiss => Some((GlobalStatus::Shared, copyset.with(me))),
        PacketKind::WriteMiss | PacketKind::WriteShared => Some((GlobalStatus::Modified, Copyset::only(me))),
        PacketKind::EvictShared => {
            let rest = copyset.without(me);
            let status = if rest.is_empty() { GlobalStatus::Unshared } else { GlobalStatus::Shared };
            Some((status, rest))
        }
        PacketKind::EvictModified | PacketKind::Purge => Some((GlobalStatus::Unshared, Copyset::EMPTY)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(1);

    fn set(nodes: &[u16]) -> Copyset {
        nodes.iter().map(|n| NodeId(*n)).collect()
    }

    #[test]
    fn every_arrow_of_figure_6() {
        use GlobalStatus::{Modified, Shared, Unshared};
        for (event, before, after) in [
            (PacketKind::ReadMiss, &[][..], (Shared, &[1][..])),
            (PacketKind::ReadMiss, &[0, 2], (Shared, &[0, 1, 2])),
            (PacketKind::WriteMiss, &[], (Modified, &[1])),
            (PacketKind::WriteMiss, &[0, 2], (Modified, &[1])),
            (PacketKind::WriteShared, &[0, 1], (Modified, &[1])),
            (PacketKind::EvictShared, &[0, 1], (Shared, &[0])),
            (PacketKind::EvictShared, &[1], (Unshared, &[])),
            (PacketKind::EvictModified, &[1], (Unshared, &[])),
            (PacketKind::Purge, &[0, 1, 2], (Unshared, &[])),
        ] {
            assert_eq!(
                next_state(event, set(before), ME),
                Some((after.0, set(after.1))),
                "{event:?} {before:?}"
            );
        }
    }

    #[test]
    fn locks_and_migrations_install_nothing() {
        for event in [
            PacketKind::LockRead,
            PacketKind::LockWrite,
            PacketKind::AddToSwitch,
            PacketKind::RemoveFromSwitch,
        ] {
            assert_eq!(next_state(event, Copyset::EMPTY, ME), None);
        }
    }
}
