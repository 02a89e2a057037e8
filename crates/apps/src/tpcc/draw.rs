//! What the specification draws (clauses 2.1.6, 4.3.2 and 4.3.3).

use random::Random;

use super::schema::{DISTRICTS, Scale};

/// The constants of NURand (clause 2.1.6.1): those of last names differ between loading and running by 66, as they must.
const C_LAST_LOAD: u64 = 157;
const C_LAST_RUN: u64 = 223;
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 7911;

/// The parts of last names.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Draws.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    random: Random,
    scale: Scale,
}

impl Draw {
    pub(super) const fn new(seed: u64, scale: Scale) -> Self {
        Self { random: Random::new(seed), scale }
    }

    /// One of `from` to `to`.
    pub(super) const fn number(&mut self, from: u64, to: u64) -> u64 {
        from + self.random.below(to - from + 1)
    }

    pub(super) const fn percent(&mut self, chance: u64) -> bool {
        self.random.below(100) < chance
    }

    /// Not uniform.
    const fn nurand(&mut self, (a, c): (u64, u64), from: u64, to: u64) -> u64 {
        let drawn = self.number(0, a) | self.number(from, to);
        (drawn + c) % (to - from + 1) + from
    }

    pub(super) const fn customer(&mut self) -> u64 {
        let customers = self.scale.customers();
        self.nurand((1023, C_CUSTOMER), 1, customers)
    }

    pub(super) const fn item(&mut self) -> u64 {
        let items = self.scale.items();
        self.nurand((8191, C_ITEM), 1, items)
    }

    pub(super) const fn district(&mut self) -> u64 {
        self.number(1, DISTRICTS)
    }

    /// The number of the last name of a customer that is looked for.
    pub(super) fn last_to_find(&mut self) -> u64 {
        let names = self.scale.customers().min(1000);
        self.nurand((255, C_LAST_RUN), 0, names - 1)
    }

    /// That of a customer who is loaded.
    pub(super) fn last_of(&mut self, customer: u64) -> u64 {
        if customer <= 1000 { customer - 1 } else { self.nurand((255, C_LAST_LOAD), 0, 999) }
    }

    /// Another warehouse than this one; this one if there is no other.
    pub(super) const fn other(&mut self, warehouse: u64) -> u64 {
        if self.scale.warehouses < 2 {
            return warehouse;
        }
        let drawn = self.number(1, self.scale.warehouses - 1);
        if drawn >= warehouse { drawn + 1 } else { drawn }
    }

    /// Letters and digits, as many as `len` has room for and at least `least`, with zeroes behind.
    pub(super) fn text(&mut self, into: &mut [u8], least: usize) {
        let len = self.number(least as u64, into.len() as u64) as usize;
        into.fill(0);
        let mut bits = 0;
        for (at, byte) in into[..len].iter_mut().enumerate() {
            // Ten letters of each random word.
            if at % 10 == 0 {
                bits = self.random.bits();
            }
            *byte = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[(bits & 63) as usize];
            bits >>= 6;
        }
    }

    /// The same, with ORIGINAL inside one in ten times.
    pub(super) fn data(&mut self, into: &mut [u8], least: usize) {
        self.text(into, least);
        if self.percent(10) {
            let at = self.number(0, least as u64 - 8) as usize;
            into[at..at + 8].copy_from_slice(b"ORIGINAL");
        }
    }

    /// Numbers from 1 to `count` in random order.
    pub(super) fn permutation(&mut self, count: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (1..=count).collect();
        for at in (1..all.len()).rev() {
            all.swap(at, self.random.below(at as u64 + 1) as usize);
        }
        all
    }
}

/// A last name by its number, from 0 to 999.
pub(super) fn last_name(number: u64) -> String {
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_the_specifications() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
    }

    #[test]
    fn what_is_drawn_is_in_range_and_not_uniform() {
        let scale = Scale { warehouses: 3, shrink: 1 };
        let mut draw = Draw::new(1, scale);
        let mut hits = vec![0_u32; 100_001];
        for _ in 0..100_000 {
            hits[draw.item() as usize] += 1;
            assert!((1..=3000).contains(&draw.customer()));
            assert!(draw.last_to_find() < 1000);
            assert_ne!(draw.other(2), 2);
        }
        assert_eq!(hits[0], 0);
        // Uniform, no item would be drawn much more often than once.
        assert!(hits.iter().max() > Some(&12), "{:?}", hits.iter().max());
        let mut all = draw.permutation(500);
        all.sort_unstable();
        assert_eq!(all, (1..=500).collect::<Vec<_>>());
    }
}
