//! Event numbers made small.
//!
//! Numbers of one requester only count for what they are compared with, so a state with other numbers in the same
//! order is the same state. What must always hold: the order of all numbers that packets carry or may carry is
//! kept, and their parity; a remembered number keeps its place among those; the next number is above all of them.
//! A remembered number with none below or equal to it that a packet could bring might as well be none at all.

use node::coherence::canonical::Use;
use wire::{RequesterId, Seq};

use crate::explore::world::NODES;

const REQUESTERS: usize = NODES * wire::SlotId::PER_NODE;
const OF_PARITY: [u64; 2] = [0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa];

/// The numbers in flight of every requester, as bits.
pub(super) struct InFlight {
    sets: [u64; REQUESTERS],
    /// The switch, or a packet about who waits for whom, has something of an event of theirs, by parity.
    scored: [bool; REQUESTERS],
    /// Remembered numbers are compared with others of the same parity only.
    knows_parities: bool,
}

impl InFlight {
    pub(super) fn new(knows_parities: bool) -> Self {
        Self { sets: [0; REQUESTERS], scored: [false; REQUESTERS], knows_parities }
    }

    pub(super) fn add(&mut self, requester: usize, seq: u64) {
        self.sets[requester] |= 1 << seq;
    }

    pub(super) fn keep_parity(&mut self, requester: usize) {
        self.scored[requester] = true;
    }

    /// The small number in place of this one.
    pub(super) fn small(&self, requester: usize, seq: u64, how: Use) -> u64 {
        let set = self.sets[requester];
        let (below, parity) = (set & ((1 << seq) - 1), seq & 1);
        let rank = u64::from(below.count_ones()) + 1;
        if set >> seq & 1 == 1 {
            return 4 * rank + parity;
        }
        match how {
            Use::Last if set == 0 && self.scored[requester] => parity,
            _ if set == 0 => 0,
            Use::Last | Use::InFlight => 4 * (u64::from(set.count_ones()) + 1) + parity,
            Use::Remembered => {
                let compared =
                    if self.knows_parities { below & OF_PARITY[(seq & 1) as usize] } else { below };
                if compared == 0 {
                    return 0;
                }
                let highest = u64::from(compared.ilog2());
                let rank = u64::from((set & ((1 << highest) - 1)).count_ones()) + 1;
                4 * rank + 2 + parity
            }
        }
    }

    /// The same, as the machines' states want to be told.
    pub(super) fn of(&self) -> impl Fn(RequesterId, Seq, Use) -> Seq {
        |requester, seq, how| Seq(self.small(requester.index(), seq.0, how))
    }
}
