//! What caches hold after the micro benchmark has run for long: drawn at random, not simulated.
//!
//! Every block is accessed at random times, as often by every node as the load says. Looking back from now, the
//! accesses to a block come after exponentially distributed times; the first of them that writes decides who has
//! which copy, and the nearest one of each node how long its copy lies unused. A cache keeps a copy until as many
//! other blocks as it has capacity for were used ("Hierarchical Web Caching Systems: Modeling, Design and Experimental
//! Results", 2002, section on LRU: this time is nearly the same for all blocks).
//!
//! Times are counted in operations of one node.
//!
//! What must always hold: a block is modified on one node or shared; blocks come in the order in which they were
//! last used, the latest last.

use node::Access;
use rackmem::{BlockSize, GlobalAddr, NodeId};
use sim::system::Random;
use wire::Copyset;

use super::math::{exp, ln};
use super::micro::Data;
use crate::figure::point::Micro;

/// A block that caches hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resident {
    /// The block.
    pub addr: GlobalAddr,
    /// Modified on one node, or shared.
    pub access: Access,
    /// Where.
    pub nodes: Copyset,
}

/// Chances and rates of a load on caches of so many blocks. Rates are for one thread's slot in one operation of a node.
struct Rates {
    /// Accesses to a slot by a thread that has it.
    rate: f64,
    reads: f64,
    /// A copy that was not used for this long is gone.
    lifetime: f64,
}

/// All blocks that caches hold. A cache has capacity for `room` blocks.
pub fn residents(
    data: &Data,
    nodes: usize,
    load: Micro,
    block: BlockSize,
    room: u64,
    seed: u64,
) -> impl Iterator<Item = Resident> + '_ {
    let mut random = Random::new(seed);
    let slots = data.pool.bytes() / block.bytes();
    let threads = data.own.len() / nodes;
    let rates = Rates::of(load, nodes, threads, slots, room);
    // Youth, and number: each thread's slots, then the pool's.
    let mut order: Vec<(u32, u32)> = Vec::with_capacity((data.own.len() as u64 * slots) as usize);
    let number = |number: u64| u32::try_from(number).expect("fewer than 2^32 blocks");
    let mut sharers = vec![[0_u8; Copyset::NODES]; slots as usize];
    for thread in 0..data.own.len() {
        for slot in 0..slots {
            if data.is_shared(thread, slot) {
                sharers[slot as usize][thread / threads] += 1;
            } else if let Some(youth) = rates.own_block(&mut random) {
                order.push((youth, number(thread as u64 * slots + slot)));
            }
        }
    }
    let pool = data.own.len() as u64 * slots;
    let mut copies: Vec<(Access, Copyset)> = Vec::with_capacity(slots as usize);
    for (index, sharers) in (pool..).zip(&sharers) {
        let drawn = rates.shared_block(&sharers[..nodes], &mut random);
        order.extend(drawn.map(|(age, ..)| (rates.youth(age), number(index))));
        copies.push(drawn.map_or((Access::Shared, Copyset::EMPTY), |(_, access, nodes)| (access, nodes)));
    }
    sort_by_youth(&mut order);
    let clean = rates.chance_of_clean();
    order.into_iter().map(move |(_, index)| {
        let index = u64::from(index);
        if let Some(index) = index.checked_sub(pool) {
            let (access, nodes) = copies[index as usize];
            Resident { addr: data.pool.at(index * block.bytes()), access, nodes }
        } else {
            let (thread, slot) = ((index / slots) as usize, index % slots);
            let unwritten = load.reads == 100 || chance(&mut random) < clean;
            Resident {
                addr: data.own[thread].at(slot * block.bytes()),
                access: if unwritten { Access::Shared } else { Access::Modified },
                nodes: Copyset::only(NodeId((thread / threads) as u16)),
            }
        }
    })
}

/// Sorts by the first of both. Equal ones stay in their order.
///
/// By digits, from the last to the first: caches of small blocks hold tens of millions.
fn sort_by_youth(order: &mut Vec<(u32, u32)>) {
    const DIGIT: u32 = 8;
    let mut sorted = vec![(0, 0); order.len()];
    for shift in (0..u32::BITS).step_by(DIGIT as usize) {
        let digit = |youth: u32| (youth >> shift) as usize % (1 << DIGIT);
        let mut slots = [0_usize; 1 << DIGIT];
        order.iter().for_each(|(youth, _)| slots[digit(*youth)] += 1);
        let mut before = 0;
        for slot in &mut slots {
            before += core::mem::replace(slot, before);
        }
        for it in &*order {
            let slot = &mut slots[digit(it.0)];
            sorted[*slot] = *it;
            *slot += 1;
        }
        core::mem::swap(order, &mut sorted);
    }
}

/// Between 0 and 1, never 0.
fn chance(random: &mut Random) -> f64 {
    ((random.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// A time until something happens that happens at this rate.
fn wait(random: &mut Random, rate: f64) -> f64 {
    -ln(chance(random)) / rate
}

impl Rates {
    fn of(load: Micro, nodes: usize, threads: usize, slots: u64, room: u64) -> Self {
        let (all, sharing) = ((threads as u64 * slots) as f64, f64::from(load.sharing) / 100.0);
        let mut rates =
            Self { rate: 1.0 / all, reads: f64::from(load.reads) / 100.0, lifetime: f64::INFINITY };
        // How likely a node has so many threads that have a block of the pool.
        let likely = |sharers: usize| {
            let ways =
                (0..sharers).fold(1.0, |ways, chosen| ways * (threads - chosen) as f64 / (chosen + 1) as f64);
            let raised = |base: f64, power: usize| (0..power).fold(1.0, |product, _| product * base);
            ways * raised(sharing, sharers) * raised(1.0 - sharing, threads - sharers)
        };
        let others = sharing * ((nodes - 1) * threads) as f64;
        let held = |rates: &Self, lifetime: f64| {
            let of_pool: f64 = (1..=threads)
                .map(|sharers| likely(sharers) * rates.share_held(sharers as f64, others, lifetime))
                .sum();
            slots as f64 * of_pool + all * (1.0 - sharing) * within(rates.rate, lifetime)
        };
        if held(&rates, 1e15) > room as f64 {
            let (mut low, mut high) = (1.0, 1e15);
            for _ in 0..100 {
                let middle = (low + high) / 2.0;
                if held(&rates, middle) > room as f64 { high = middle } else { low = middle }
            }
            rates.lifetime = low;
        }
        rates
    }

    /// The chance that a node holds a block that so many of its threads share with so many others.
    fn share_held(&self, sharers: f64, others: f64, lifetime: f64) -> f64 {
        let used = self.rate * sharers;
        let lost = used + self.rate * others * (1.0 - self.reads);
        used / lost * within(lost, lifetime)
    }

    /// The chance that a thread's own block in the cache was never written since it came there.
    fn chance_of_clean(&self) -> f64 {
        let missing = 1.0 - within(self.rate, self.lifetime);
        missing * self.reads / (1.0 - (1.0 - missing) * self.reads)
    }

    /// How lately a block was used that was used so long ago: the chance that a thread's own block is older.
    fn youth(&self, age: f64) -> u32 {
        let chance = 1.0 - within(self.rate, age);
        (chance * f64::from(u32::MAX)) as u32
    }

    /// How lately a thread's own block was used, if it is held. Its age is exponentially distributed, so the chance of an
    /// older one is as likely to be any number: it is drawn, and no logarithm taken.
    fn own_block(&self, random: &mut Random) -> Option<u32> {
        let youth = (random.bits() >> 32) as u32;
        (youth >= self.youth(self.lifetime)).then_some(youth)
    }

    /// How long ago a block was used that so many threads of each node share, and its copies, if there are any.
    fn shared_block(&self, sharers: &[u8], random: &mut Random) -> Option<(f64, Access, Copyset)> {
        let all: u64 = sharers.iter().map(|count| u64::from(*count)).sum();
        let everybody = sharers.iter().filter(|count| **count > 0).count();
        let (mut age, mut seen) = (0.0, Copyset::EMPTY);
        let mut latest = None;
        let mut access = Access::Shared;
        while seen.len() < everybody {
            age += wait(random, self.rate * all as f64);
            if age >= self.lifetime {
                break;
            }
            let mut lot = random.below(all);
            let who = sharers.iter().position(|count| {
                let here = lot < u64::from(*count);
                lot = lot.saturating_sub(u64::from(*count));
                here
            });
            let who = NodeId(who.expect("a lot is below the sum") as u16);
            let wrote = chance(random) > self.reads;
            if wrote && (seen.is_empty() || seen == Copyset::only(who)) {
                access = Access::Modified;
            }
            latest.get_or_insert(age);
            seen = seen.with(who);
            if wrote {
                break;
            }
        }
        latest.map(|latest| (latest, access, seen))
    }
}

/// The chance that something that happens at this rate has happened in this time.
fn within(rate: f64, time: f64) -> f64 {
    let expected = rate * time;
    if expected > 600.0 { 1.0 } else { 1.0 - exp(-expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Drawn = Option<(f64, Access, Copyset)>;

    /// How blocks of the pool are held that two threads of each of eight nodes share.
    fn drawn(reads: u8, room: u64) -> Vec<Drawn> {
        let rates = Rates::of(Micro { sharing: 50, reads, locality: 0 }, 8, 4, 1000, room);
        let mut random = Random::new(3);
        (0..20_000).map(|_| rates.shared_block(&[2; 8], &mut random)).collect()
    }

    #[test]
    fn what_only_is_read_is_everywhere_while_there_is_room() {
        assert!(drawn(100, 4000).iter().all(|block| {
            block.is_some_and(|(_, access, nodes)| access == Access::Shared && nodes.len() == 8)
        }));
    }

    #[test]
    fn what_only_is_written_has_one_copy() {
        assert!(drawn(0, 4000).iter().all(|block| {
            block.is_some_and(|(_, access, nodes)| access == Access::Modified && nodes.len() == 1)
        }));
    }

    #[test]
    fn half_and_half_is_as_the_chain_of_states_says() {
        // Looking back: the last access wrote, or it read on the node whose access before wrote, and so on.
        let blocks = drawn(50, 4000);
        let modified = blocks.iter().flatten().filter(|(_, access, _)| *access == Access::Modified).count();
        let expected = (1..20).map(|back| 0.5_f64.powi(back) * 0.125_f64.powi(back - 1)).sum::<f64>();
        assert!((modified as f64 / 20_000.0 - expected).abs() < 0.015, "{modified} {expected}");
    }

    #[test]
    fn nodes_without_a_sharer_hold_nothing() {
        let rates = Rates::of(Micro::sharing(50), 8, 4, 1000, 4000);
        let mut random = Random::new(3);
        let held: Vec<Drawn> = (0..1000).map(|_| rates.shared_block(&[0, 3, 0, 1], &mut random)).collect();
        let allowed = Copyset::only(NodeId(1)).with(NodeId(3));
        assert!(held.iter().flatten().all(|(.., nodes)| nodes.without_all(allowed).is_empty()));
        assert!(rates.shared_block(&[0; 8], &mut random).is_none());
    }

    #[test]
    fn the_caches_are_as_full_as_they_can_be() {
        let (slots, room) = (2000, 4000);
        let rates = Rates::of(Micro { sharing: 20, reads: 100, locality: 0 }, 1, 4, slots, room);
        let mut random = Random::new(9);
        let own = (0..slots * 4 * 8 / 10).filter(|_| rates.own_block(&mut random).is_some()).count();
        // So many blocks of the pool have no, one, two, ... sharers of four.
        let sharers = [0.4096, 0.4096, 0.1536, 0.0256, 0.0016].map(|share| (share * slots as f64) as usize);
        let of_pool: usize = (0..)
            .zip(sharers)
            .map(|(count, blocks)| {
                (0..blocks).filter(|_| rates.shared_block(&[count], &mut random).is_some()).count()
            })
            .sum();
        let held = own + of_pool;
        assert!((held as f64 / room as f64 - 1.0).abs() < 0.03, "{held} of {room}");
    }

    #[test]
    fn blocks_come_by_youth_and_equals_in_their_order() {
        let mut random = Random::new(4);
        let mut order: Vec<(u32, u32)> =
            (0..5000).map(|at| (random.below(1000) as u32 * 4_000_037, at)).collect();
        let mut expected = order.clone();
        expected.sort();
        sort_by_youth(&mut order);
        assert_eq!(order, expected);
    }

    #[test]
    fn a_block_is_as_young_as_few_are_younger() {
        let rates = Rates::of(Micro::sharing(0), 8, 4, 1000, 4000);
        let (half, mut random) = (core::f64::consts::LN_2 / rates.rate, Random::new(2));
        let younger = (0..10_000).filter(|_| rates.own_block(&mut random) > Some(rates.youth(half))).count();
        assert!((4800..5200).contains(&younger), "{younger}");
    }

    #[test]
    fn where_everything_fits_everything_is_held() {
        let rates = Rates::of(Micro::sharing(0), 8, 4, 1000, 4000);
        assert!((0..1000).all(|_| rates.own_block(&mut Random::new(1)).is_some()));
    }
}
