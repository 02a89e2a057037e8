//! What caches hold after the micro benchmark has run for long: drawn at random, not simulated.
//!
//! Every block is accessed at random times, as often by every node as the load says. Looking back from now, the
//! accesses to a block come after exponentially distributed times; the first of them that writes decides who has
//! which copy, and the nearest one of each node how long its copy lies unused. A cache keeps a copy until as many
//! other blocks as it has room for were used ("Hierarchical Web Caching Systems: Modeling, Design and Experimental
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

/// Chances and rates of a load on caches of so many blocks. Rates are for one thread's place in one operation of a node.
struct Rates {
    /// Accesses to a place by a thread that has it.
    rate: f64,
    reads: f64,
    /// A copy that was not used for this long is gone.
    lifetime: f64,
}

/// Calls `hold` for every block that a cache holds. A cache has room for `room` blocks.
pub fn residents(
    data: &Data,
    nodes: usize,
    load: Micro,
    block: BlockSize,
    room: u64,
    seed: u64,
    mut hold: impl FnMut(Resident),
) {
    let mut random = Random::new(seed);
    let places = data.pool.bytes() / block.bytes();
    let threads = data.own.len() / nodes;
    let rates = Rates::of(load, nodes, threads, places, room);
    // Age, and number: each thread's places, then the pool's.
    let mut order: Vec<(u64, u32)> = Vec::new();
    let number = |number: u64| u32::try_from(number).expect("fewer than 2^32 blocks");
    let mut sharers = vec![[0_u8; Copyset::NODES]; places as usize];
    for thread in 0..data.own.len() {
        for place in 0..places {
            if data.is_shared(thread, place) {
                sharers[place as usize][thread / threads] += 1;
            } else if let Some(age) = rates.own_block(&mut random) {
                order.push((age, number(thread as u64 * places + place)));
            }
        }
    }
    let pool = data.own.len() as u64 * places;
    let mut copies: Vec<(Access, Copyset)> = Vec::with_capacity(places as usize);
    for (index, sharers) in (pool..).zip(&sharers) {
        let drawn = rates.shared_block(&sharers[..nodes], &mut random);
        order.extend(drawn.map(|(age, ..)| (age, number(index))));
        copies.push(drawn.map_or((Access::Shared, Copyset::EMPTY), |(_, access, nodes)| (access, nodes)));
    }
    order.sort_unstable();
    let clean = rates.chance_of_clean();
    for (_, index) in order.iter().rev() {
        let index = u64::from(*index);
        hold(if let Some(index) = index.checked_sub(pool) {
            let (access, nodes) = copies[index as usize];
            Resident { addr: data.pool.at(index * block.bytes()), access, nodes }
        } else {
            let (thread, place) = ((index / places) as usize, index % places);
            let unwritten = load.reads == 100 || chance(&mut random) < clean;
            Resident {
                addr: data.own[thread].at(place * block.bytes()),
                access: if unwritten { Access::Shared } else { Access::Modified },
                nodes: Copyset::only(NodeId((thread / threads) as u16)),
            }
        });
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
    fn of(load: Micro, nodes: usize, threads: usize, places: u64, room: u64) -> Self {
        let (all, sharing) = ((threads as u64 * places) as f64, f64::from(load.sharing) / 100.0);
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
            places as f64 * of_pool + all * (1.0 - sharing) * within(rates.rate, lifetime)
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

    /// How long ago a thread's own block was used, if it is held.
    fn own_block(&self, random: &mut Random) -> Option<u64> {
        let age = wait(random, self.rate);
        (age < self.lifetime).then_some(age as u64)
    }

    /// How long ago a block was used that so many threads of each node share, and its copies, if there are any.
    fn shared_block(&self, sharers: &[u8], random: &mut Random) -> Option<(u64, Access, Copyset)> {
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
        latest.map(|latest| (latest as u64, access, seen))
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

    type Drawn = Option<(u64, Access, Copyset)>;

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
        let (places, room) = (2000, 4000);
        let rates = Rates::of(Micro { sharing: 20, reads: 100, locality: 0 }, 1, 4, places, room);
        let mut random = Random::new(9);
        let own = (0..places * 4 * 8 / 10).filter(|_| rates.own_block(&mut random).is_some()).count();
        // So many blocks of the pool have no, one, two, ... sharers of four.
        let sharers = [0.4096, 0.4096, 0.1536, 0.0256, 0.0016].map(|share| (share * places as f64) as usize);
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
    fn where_everything_fits_everything_is_held() {
        let rates = Rates::of(Micro::sharing(0), 8, 4, 1000, 4000);
        assert!((0..1000).all(|_| rates.own_block(&mut Random::new(1)).is_some()));
    }
}
