//! Random numbers that are the same on every machine and in every release: one PCG stream per client, all
//! from the run's seed, and conversions of our own.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// Stream number `stream` of the run with this seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        // PCG streams of one state differ from the first number on, but neighbouring states are related for a
        // while: spread the seed over the state.
        let spread = |seed| random::Random::new(seed).bits();
        let state = u128::from(spread(seed)) << 64 | u128::from(spread(!seed));
        Self(Pcg64::new(state, u128::from(stream)))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, which must not be 0. Off from uniform by at most `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let product = u128::from(self.word()) * u128::from(bound);
        (product >> 64) as u64
    }

    /// A number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (-53_f64).exp2()
    }

    /// Fills a field with printable ASCII, from space to underscore as YCSB mostly does.
    pub fn printable(&mut self, field: &mut [u8]) {
        for chunk in field.chunks_mut(8) {
            let bytes = ((self.word() & 0x3f3f_3f3f_3f3f_3f3f) + 0x2020_2020_2020_2020).to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_in_every_release() {
        let mut random = Random::new(42, 3);
        assert_eq!(
            [random.word(), random.word(), random.below(1000)],
            [13_096_660_832_229_090_817, 8_547_226_297_208_948_080, 947]
        );
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream| Random::new(seed, stream).word();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
    }

    #[test]
    fn bounded_numbers_fill_their_range_evenly() {
        let mut random = Random::new(1, 0);
        let mut seen = [0_u32; 10];
        for _ in 0..100_000 {
            seen[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
    }

    #[test]
    fn unit_numbers_stay_below_one() {
        let mut random = Random::new(1, 0);
        let mean = (0..100_000)
            .map(|_| random.unit())
            .inspect(|unit| assert!((0.0..1.0).contains(unit)))
            .sum::<f64>()
            / 100_000.0;
        assert!((0.495..0.505).contains(&mean), "{mean}");
    }

    #[test]
    fn fields_are_printable_to_their_last_byte() {
        let mut random = Random::new(1, 0);
        for len in 0..40 {
            let mut field = vec![0; len];
            random.printable(&mut field);
            assert!(field.iter().all(|byte| (b' '..=b'_').contains(byte)), "{field:?}");
        }
    }
}
