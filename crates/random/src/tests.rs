//! Numbers as the generators drew them that stood all over the project before this one.

use super::*;

#[test]
fn words_are_those_of_splitmix64() {
    for (seed, words) in [
        (0, [16_294_208_416_658_607_535, 7_960_286_522_194_355_700, 487_617_019_471_545_679]),
        (42, [13_679_457_532_755_275_413, 2_949_826_092_126_892_291, 5_139_283_748_462_763_858]),
        (u64::MAX, [16_490_336_266_968_443_936, 16_834_447_057_089_888_969, 4_048_727_598_324_417_001]),
    ] {
        let (mut random, mut dice) = (Random::new(seed), Dice::new(seed));
        assert_eq!([(); 3].map(|()| random.bits()), words);
        assert_eq!([(); 3].map(|()| dice.next()), words);
        assert_eq!(mix(seed.wrapping_add(GOLDEN)), words[0], "a stream is the finalizer over a counter");
    }
}

#[test]
fn bounded_numbers_are_scaled_or_remainders() {
    let mut random = Random::new(42);
    assert_eq!([(); 8].map(|()| random.below(1000)), [741, 159, 278, 344, 38, 868, 218, 800]);
    let mut dice = Dice::new(42);
    assert_eq!([(); 8].map(|()| dice.below(1000)), [413, 291, 858, 764, 250, 62, 925, 908]);
    let mut dice = Dice::new(42);
    assert_eq!([(); 4].map(|()| dice.pick(1000)), [413, 291, 858, 764]);
}

#[test]
fn chances_are_bounded_numbers_below_them() {
    let mut random = Random::new(42);
    assert_eq!([742, 159, 279, 344].map(|times| random.per_mille(times)), [true, false, true, false]);
    let mut dice = Dice::new(42);
    assert_eq!([414, 291, 859, 764].map(|chance| dice.per_mille(chance)), [true, false, true, false]);
    let mut dice = Dice::new(42);
    assert_eq!([14, 91, 59, 64].map(|chance| dice.percent(chance)), [true, false, true, false]);
}
