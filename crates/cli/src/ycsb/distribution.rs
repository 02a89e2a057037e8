//! Which record a request asks for: YCSB's own generators, so that a workload file means here what it means
//! there.
//!
//! - `uniform`: every loaded record alike.
//! - `zipfian`: popularity falls with rank as 1 / rank^0.99; ranks are those of ten thousand million items, and
//!   an FNV hash scatters them over the records, so that the popular ones are not neighbours
//!   (YCSB's `ScrambledZipfianGenerator`).
//! - `latest`: the same law over age; the newest record is the most popular (`SkewedLatestGenerator`).

use super::keys::fnv_hash;
use super::random::Random;
use super::workload::{Requests, Workload};

/// YCSB's skew for all of its Zipf distributions.
const THETA: f64 = 0.99;
/// Items whose ranks are scattered over the records (`ScrambledZipfianGenerator.ITEM_COUNT`; its generator
/// includes both ends).
const SCRAMBLED_ITEMS: u64 = 10_000_000_000 + 1;
/// The sum of 1 / rank^0.99 over that many ranks, which would take minutes to compute.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Ranks with Zipf probabilities, by the approximation of Gray et al., "Quickly Generating Billion-Record
/// Synthetic Databases" (SIGMOD 1994): exact for the first two ranks, a power law fitted to the rest.
#[derive(Clone, Debug)]
struct Zipf {
    items: u64,
    /// Sum of 1 / rank^THETA over all items.
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// Over `items` ranks; takes time in proportion to them.
    fn new(items: u64) -> Self {
        let mut zipf = Self { items: 0, zeta: 0.0, eta: 0.0 };
        zipf.grow(items);
        zipf
    }

    /// Over `items` ranks whose sum is known.
    fn with_zeta(items: u64, zeta: f64) -> Self {
        let mut zipf = Self { items, zeta, eta: 0.0 };
        zipf.fit();
        zipf
    }

    /// Extends the distribution to `items` ranks, at the cost of the new ones only. (YCSB fits `eta` with the
    /// item count that it started with, an oversight that shifts the tail a little; we use the present one.)
    fn grow(&mut self, items: u64) {
        if items <= self.items {
            return;
        }
        self.zeta += (self.items..items).map(|index| real(index + 1).powf(-THETA)).sum::<f64>();
        self.items = items;
        self.fit();
    }

    fn fit(&mut self) {
        let zeta_of_two = 1.0 + 0.5_f64.powf(THETA);
        self.eta = (1.0 - (2.0 / real(self.items)).powf(1.0 - THETA)) / (1.0 - zeta_of_two / self.zeta);
    }

    /// A rank, from 0.
    fn next(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let at = unit * self.zeta;
        if at < 1.0 {
            return 0;
        }
        if at < 1.0 + 0.5_f64.powf(THETA) {
            return 1.min(self.items - 1);
        }
        let share = hundredth_power(self.eta * unit - self.eta + 1.0);
        let rank = (real(self.items) * share) as u64;
        rank.min(self.items - 1)
    }
}

/// `base` to the power of 1 / (1 - THETA) = 100: by multiplications, which give the same on every machine, and sooner
/// than the power of any two numbers.
fn hundredth_power(base: f64) -> f64 {
    const { assert!(THETA == 0.99) };
    let square = base * base;
    let fourth = square * square;
    let eighth = fourth * fourth;
    let sixteenth = eighth * eighth;
    let thirty_second = sixteenth * sixteenth;
    thirty_second * thirty_second * thirty_second * fourth
}

fn real(count: u64) -> f64 {
    count as f64
}

/// Remainders by one divisor, with multiplications: a division of 64 bits takes as long as all else in a draw.
#[derive(Clone, Copy, Debug)]
struct Modulus {
    divisor: u64,
    /// 2^64 / divisor, rounded down (2^64 - 1 for 1).
    inverse: u64,
}

impl Modulus {
    fn new(divisor: u64) -> Self {
        assert!(divisor > 0, "nothing is divided by 0");
        let inverse = u64::try_from((1_u128 << 64) / u128::from(divisor)).unwrap_or(u64::MAX);
        Self { divisor, inverse }
    }

    /// `number % divisor`.
    fn remainder(self, number: u64) -> u64 {
        // The inverse is too small by less than 1, the quotient hence by less than 1 before and 2 after rounding.
        let quotient = ((u128::from(number) * u128::from(self.inverse)) >> 64) as u64;
        let rest = number - quotient * self.divisor;
        if rest >= self.divisor { rest - self.divisor } else { rest }
    }
}

/// Chooses the records of one client's requests.
#[derive(Clone, Debug)]
pub struct Chooser(Shape);

#[derive(Clone, Debug)]
enum Shape {
    Uniform { records: u64 },
    Zipfian { ranks: Zipf, span: Modulus },
    Latest { ages: Zipf },
}

impl Chooser {
    /// For a workload. `latest` sums over all records, so make one and clone it.
    pub fn new(workload: &Workload) -> Self {
        let records = workload.records;
        Self(match workload.requests {
            Requests::Uniform => Shape::Uniform { records },
            Requests::Zipfian => {
                // YCSB scatters over twice the inserts that it expects, and draws again while it hits a record
                // that is not there yet: so inserts do not move the popular records. One too many is its own.
                let expected = (real(workload.operations) * workload.mix.insert_share() * 2.0) as u64;
                let ranks = Zipf::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA);
                Shape::Zipfian { ranks, span: Modulus::new(records + expected + 1) }
            }
            Requests::Latest => Shape::Latest { ages: Zipf::new(records) },
        })
    }

    /// The record of the next request, when records 0 to `last` are there.
    pub fn next(&mut self, random: &mut Random, last: u64) -> u64 {
        match &mut self.0 {
            Shape::Uniform { records } => random.below(*records),
            Shape::Zipfian { ranks, span } => loop {
                let record = span.remainder(fnv_hash(ranks.next(random)));
                if record <= last {
                    return record;
                }
            },
            Shape::Latest { ages } => {
                // All records from the first on: YCSB leaves out record 0, which matters to nobody but to a
                // data set of one record.
                ages.grow(last + 1);
                last - ages.next(random).min(last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ycsb::workload::Mix;

    const DRAWS: u64 = 1_000_000;

    fn workload(requests: Requests, records: u64) -> Workload {
        Workload { requests, records, ..Workload::letter('C').unwrap() }
    }

    fn zeta(items: u64) -> f64 {
        (1..=items).map(|rank| real(rank).powf(-THETA)).sum()
    }

    /// How often each of `records` was chosen in [`DRAWS`] draws.
    fn counts(workload: &Workload) -> Vec<u64> {
        let (mut chooser, mut random) = (Chooser::new(workload), Random::new(11, 0));
        let mut counts = vec![0; usize::try_from(workload.records).unwrap()];
        for _ in 0..DRAWS {
            counts[usize::try_from(chooser.next(&mut random, workload.records - 1)).unwrap()] += 1;
        }
        counts
    }

    /// Whether a count is within five standard deviations (of a Poisson count) plus `slack` of what it should be.
    fn near(count: u64, probability: f64, slack: f64) -> bool {
        let expected = probability * real(DRAWS);
        (real(count) - expected).abs() <= 5.0 * expected.sqrt() + slack * expected
    }

    #[test]
    fn uniform_requests_pass_a_chi_square_test() {
        let counts = counts(&workload(Requests::Uniform, 1000));
        let expected = real(DRAWS) / 1000.0;
        let chi_square: f64 = counts.iter().map(|count| (real(*count) - expected).powi(2) / expected).sum();
        // 999 degrees of freedom: mean 999, standard deviation 44.7; five of them either way.
        assert!((775.0..1223.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn the_power_of_a_draw_is_that_of_the_skew() {
        for share in [0.0_f64, 0.3, 0.9, 0.99, 0.999_99, 1.0] {
            let power = share.powf(1.0 / (1.0 - THETA));
            assert!((hundredth_power(share) - power).abs() <= power * 1e-10, "{share}");
        }
    }

    #[test]
    fn remainders_by_multiplication_are_remainders() {
        let numbers = |divisor: u64| {
            let multiples = [1, 2, 3, 1000, u64::MAX / divisor - 1, u64::MAX / divisor];
            let around = multiples.into_iter().map(move |times| times.wrapping_mul(divisor));
            around.flat_map(|at| [at.wrapping_sub(1), at, at.wrapping_add(1)]).chain([0, u64::MAX])
        };
        let mut random = Random::new(9, 0);
        let drawn: Vec<u64> = (0..1000).map(|_| random.word() >> (random.word() % 64)).collect();
        for divisor in [1, 2, 3, 7, 40_001, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX - 1, u64::MAX] {
            let modulus = Modulus::new(divisor);
            for number in numbers(divisor).chain(drawn.iter().copied()) {
                assert_eq!(modulus.remainder(number), number % divisor, "{number} % {divisor}");
            }
        }
    }

    #[test]
    fn the_first_two_ranks_have_exactly_their_zipf_probability() {
        let (zipf, mut random) = (Zipf::new(1000), Random::new(5, 0));
        let mut counts = [0; 2];
        for _ in 0..DRAWS {
            if let Some(count) = counts.get_mut(usize::try_from(zipf.next(&mut random)).unwrap()) {
                *count += 1;
            }
        }
        assert!(near(counts[0], 1.0 / zeta(1000), 0.0), "{counts:?}");
        assert!(near(counts[1], 0.5_f64.powf(THETA) / zeta(1000), 0.0), "{counts:?}");
    }

    #[test]
    fn the_tail_follows_the_power_law_decade_by_decade() {
        let (zipf, mut random) = (Zipf::new(100_000), Random::new(5, 0));
        let mut decades = [0_u64; 5];
        for _ in 0..DRAWS {
            let rank = zipf.next(&mut random) + 1;
            assert!(rank <= 100_000);
            decades[usize::try_from(rank.ilog10().min(4)).unwrap()] += 1;
        }
        for (decade, count) in (0_u32..).zip(decades) {
            let (from, to) =
                (10_u64.pow(decade), if decade == 4 { 100_000 } else { 10_u64.pow(decade + 1) - 1 });
            let probability = (zeta(to) - zeta(from - 1)) / zeta(100_000);
            // The fit of Gray et al. is off by some per cent between rank 3 and 100.
            assert!(near(count, probability, 0.06), "decade {decade}: {count} of {probability}");
        }
    }

    #[test]
    fn growing_step_by_step_gives_the_distribution_that_starts_large() {
        let (mut grown, whole) = (Zipf::new(10), Zipf::new(5000));
        for items in 11..=5000 {
            grown.grow(items);
        }
        assert!((grown.zeta - whole.zeta).abs() < 1e-9 && (grown.eta - whole.eta).abs() < 1e-9);
    }

    #[test]
    fn the_constant_of_the_scrambled_generator_is_the_sum_that_it_stands_for() {
        // Euler-Maclaurin for the ranks past the first 100,000.
        let (from, to) = (100_000.0_f64, 1e10_f64);
        let integral = (to.powf(1.0 - THETA) - from.powf(1.0 - THETA)) / (1.0 - THETA);
        let estimate = zeta(100_000) + integral - from.powf(-THETA) / 2.0 + to.powf(-THETA) / 2.0;
        assert!((estimate - SCRAMBLED_ZETA).abs() < 1e-6, "{estimate}");
    }

    #[test]
    fn scrambled_requests_scatter_the_popular_records_and_keep_their_share() {
        let workload = workload(Requests::Zipfian, 10_000);
        let counts = counts(&workload);
        // The span is one record too long, as YCSB's is, and what falls there is drawn again.
        let place = |rank: u64| usize::try_from(fnv_hash(rank) % 10_001).unwrap();
        let rest = 1.0 / 10_000.0;
        for (rank, share) in [(0, 1.0), (1, 0.5_f64.powf(THETA))] {
            // A record has its rank's share, and its even part of all the ranks that fall anywhere.
            let probability = share / SCRAMBLED_ZETA + rest * (1.0 - 1.5 / SCRAMBLED_ZETA);
            assert!(near(counts[place(rank)], probability, 0.03), "rank {rank}: {}", counts[place(rank)]);
        }
        assert!(place(0).abs_diff(place(1)) > 1);
        assert!(counts.iter().all(|count| *count > 0), "every record is asked for now and then");
    }

    #[test]
    fn popular_records_stay_popular_while_others_are_inserted() {
        let mix = Mix::new(0.5, 0.0, 0.5, 0.0);
        let workload = Workload { mix, operations: 1000, ..workload(Requests::Zipfian, 1000) };
        let (mut chooser, mut random) = (Chooser::new(&workload), Random::new(3, 0));
        let favourite = |chooser: &mut Chooser, random: &mut Random, last: u64| {
            let mut counts = vec![0_u64; 2001];
            for _ in 0..100_000 {
                let record = chooser.next(random, last);
                assert!(record <= last);
                counts[usize::try_from(record).unwrap()] += 1;
            }
            (0..).zip(counts).max_by_key(|(_, count)| *count).map(|(record, _): (u64, u64)| record)
        };
        let popular = fnv_hash(0) % 2001;
        assert!(
            (1000..1600).contains(&popular),
            "the most popular record of this workload is one that is inserted"
        );
        assert_ne!(favourite(&mut chooser, &mut random, popular - 1), Some(popular));
        for last in [popular, 1600, 1999] {
            assert_eq!(favourite(&mut chooser, &mut random, last), Some(popular));
        }
    }

    #[test]
    fn latest_requests_prefer_the_newest_record_and_follow_inserts() {
        let workload = workload(Requests::Latest, 1000);
        let counts_at_rest = counts(&workload);
        for (age, share) in [(0_u32, 1.0), (1, 0.5_f64.powf(THETA))] {
            let count = counts_at_rest[999 - age as usize];
            assert!(near(count, share / zeta(1000), 0.0), "age {age}: {count}");
        }
        let (mut chooser, mut random) = (Chooser::new(&workload), Random::new(1, 0));
        let newest = (0..DRAWS).filter(|_| chooser.next(&mut random, 1499) == 1499).count();
        assert!(near(newest as u64, 1.0 / zeta(1500), 0.0), "{newest}");
    }

    #[test]
    fn data_sets_of_one_and_two_records_work_with_every_distribution() {
        for requests in [Requests::Uniform, Requests::Zipfian, Requests::Latest] {
            for records in [1, 2] {
                let workload = workload(requests, records);
                let (mut chooser, mut random) = (Chooser::new(&workload), Random::new(1, 0));
                let seen: std::collections::BTreeSet<u64> =
                    (0..1000).map(|_| chooser.next(&mut random, records - 1)).collect();
                assert_eq!(seen, (0..records).collect(), "{requests:?}");
            }
        }
    }
}
