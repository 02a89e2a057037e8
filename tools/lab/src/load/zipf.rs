//! Popularity by rank: how skewed requests are drawn.
//!
//! The approximation of Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), that YCSB
//! uses, too: exact for the first two ranks, a power law fitted to the rest.
//!
//! What must always hold: one stream of random numbers gives one stream of ranks, on every machine.

use sim::system::Random;

use super::math::{exp, ln, pow};

/// Ranks from a Zipf distribution.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: u64,
    theta: f64,
    /// Sum of 1 / rank^theta over all items.
    zeta: f64,
    eta: f64,
}

/// Ranks that are summed one by one; the rest of the sum is an integral, which is as good from here on.
const SUMMED: u64 = 10_000;

impl Zipf {
    /// Over `items` ranks.
    ///
    /// # Panics
    /// If there are no items, or `theta` is not between 0 and 1.
    pub fn new(items: u64, theta: f64) -> Self {
        assert!(items > 0 && theta > 0.0 && theta < 1.0, "{items} items, theta {theta}");
        let zeta = zeta(items, theta);
        let of_two = 1.0 + pow(0.5, theta);
        let eta = (1.0 - pow(2.0 / items as f64, 1.0 - theta)) / (1.0 - of_two / zeta);
        Self { items, theta, zeta, eta }
    }

    /// The next rank, from 0.
    pub fn next(&self, random: &mut Random) -> u64 {
        let unit = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let at = unit * self.zeta;
        if at < 1.0 {
            return 0;
        }
        if at < 1.0 + pow(0.5, self.theta) {
            return 1.min(self.items - 1);
        }
        let share = exp(ln(self.eta * unit - self.eta + 1.0) / (1.0 - self.theta));
        ((self.items as f64 * share) as u64).min(self.items - 1)
    }

    /// The probability of a rank.
    pub fn probability(&self, rank: u64) -> f64 {
        pow((rank + 1) as f64, -self.theta) / self.zeta
    }
}

fn zeta(items: u64, theta: f64) -> f64 {
    let term = |rank: u64| pow(rank as f64, -theta);
    let summed: f64 = (1..=items.min(SUMMED)).map(term).sum();
    if items <= SUMMED {
        return summed;
    }
    // Euler-Maclaurin, to its second term.
    let integral = (pow(items as f64, 1.0 - theta) - pow(SUMMED as f64, 1.0 - theta)) / (1.0 - theta);
    summed + integral + (term(items) - term(SUMMED)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_right_where_it_is_an_integral() {
        let exact: f64 = (1..=1_000_000_u64).map(|rank| (rank as f64).powf(-0.99)).sum();
        assert!((zeta(1_000_000, 0.99) - exact).abs() < 1e-6, "{} {exact}", zeta(1_000_000, 0.99));
    }

    #[test]
    fn the_first_ranks_come_as_often_as_they_should() {
        let (zipf, mut random) = (Zipf::new(64_000_000, 0.99), Random::new(7));
        let mut counts = [0_u32; 2];
        for _ in 0..200_000 {
            let rank = zipf.next(&mut random);
            assert!(rank < 64_000_000);
            if let Some(count) = usize::try_from(rank).ok().and_then(|rank| counts.get_mut(rank)) {
                *count += 1;
            }
        }
        for (rank, count) in (0..).zip(counts) {
            let expected = zipf.probability(rank) * 200_000.0;
            assert!(
                (f64::from(count) - expected).abs() < 5.0 * expected.sqrt(),
                "rank {rank}: {count} of {expected}"
            );
        }
    }

    #[test]
    fn one_and_two_items_are_enough() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| Zipf::new(1, 0.99).next(&mut random) == 0));
        assert!((0..1000).all(|_| Zipf::new(2, 0.99).next(&mut random) < 2));
    }
}
