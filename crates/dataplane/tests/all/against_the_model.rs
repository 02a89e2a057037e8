//! Random and hostile packets through the model and through the kernel: every verdict, every packet that goes out, every
//! counter and every register array must be the same.

use dataplane::Loaded;
use random::Dice;
use switch::ebpf::{KernelProgram, verdict};
use wire::{AllRules, Rule, Rules, Without};

use crate::{blocks::Blocks, locks::Locks};

/// Where headers begin in the frames of these tests: behind Ethernet, IP and UDP.
pub(crate) const HEADER_AT: usize = 42;

/// A program of the switch, as the model runs it.
pub(crate) trait Model {
    /// Of what there are several sizes.
    type Config: Copy + std::fmt::Debug;
    /// Bytes of a header.
    const BYTES: usize;
    /// Its rules.
    const RULES: &'static [Rule];

    fn program<R: Rules>(rules: R, config: Self::Config) -> KernelProgram;

    fn new(config: Self::Config) -> Self;

    /// Begins an incarnation, in both.
    fn begin(&mut self, loaded: &mut Loaded, dice: &mut Dice);

    /// Some packet that a rack may see.
    fn packet(&self, dice: &mut Dice) -> Vec<u8>;

    /// Runs a packet through all of its passes: the verdict, and what goes out. None: these are no bytes of a packet.
    fn run(&mut self, bytes: &[u8]) -> Option<Vec<Vec<u8>>>;

    fn arrays(&self) -> Vec<Vec<u64>>;

    /// In the order of the program's counters.
    fn counters(&self) -> Vec<u64>;
}

/// None, and it is said, if this machine lets nobody load programs.
pub(crate) fn loaded(program: &KernelProgram) -> Option<Loaded> {
    match Loaded::load(program) {
        Ok(loaded) => Some(loaded),
        Err(refused) if refused.for_lack_of_rights() => {
            assert!(std::env::var_os("RACKMEM_NEEDS_KERNEL").is_none(), "{refused}");
            eprintln!("not run: {refused}");
            None
        }
        Err(refused) => panic!("{refused}"),
    }
}

/// A packet's bytes, of which some are not what anybody writes.
fn hostile(dice: &mut Dice, bytes: &mut [u8]) {
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(bytes.len() as u64) as usize;
        bytes[at] = match dice.below(3) {
            0 => bytes[at] ^ 1 << dice.below(8),
            1 => dice.next() as u8,
            _ => [0, 1, 63, 64, 0x7f, 0xff][dice.below(6) as usize],
        };
    }
}

/// Runs packets through both until they differ. Says how.
fn compare<M: Model>(
    config: M::Config,
    of_kernel: &KernelProgram,
    loaded: &mut Loaded,
    seed: u64,
    packets: usize,
) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let (mut model, mut state) = (M::new(config), Vec::new());
    for at in 0..packets {
        // A new incarnation now and then, so that the switch is not full for ever.
        if at % 400 == 0 {
            model.begin(loaded, &mut dice);
        }
        let mut bytes = model.packet(&mut dice);
        if dice.below(6) == 0 {
            hostile(&mut dice, &mut bytes);
        }
        let frame = [&[0; HEADER_AT][..], &bytes].concat();
        let differs = |what: &str, model: &dyn std::fmt::Debug, kernel: &dyn std::fmt::Debug| {
            Err(format!(
                "seed {seed}, packet {at}: {what}: {model:?} in the model, {kernel:?} in the kernel; {bytes:?}"
            ))
        };

        let expected = model.run(&bytes);
        loaded.forget_log();
        let run = loaded.test_run(&frame, 1).map_err(|error| error.to_string())?;
        loaded.state(&mut state);
        let layout = &of_kernel.layout;
        let found: Vec<_> = layout.logged(&state, M::BYTES).map(<[u8]>::to_vec).collect();
        let verdict = if expected.is_some() { verdict::TAKEN } else { verdict::PASSED };
        if run.verdict != verdict {
            return differs("verdict", &verdict, &run.verdict);
        }
        let expected = expected.unwrap_or_default();
        if found != expected {
            return differs("sent", &expected, &found);
        }
        for (array, cells) in model.arrays().into_iter().enumerate() {
            for (index, cell) in cells.into_iter().enumerate() {
                let kernel = layout.cell(&state, array, index);
                if kernel != cell {
                    return differs(&format!("array {array}, cell {index}"), &cell, &kernel);
                }
            }
        }
        let counters = model.counters();
        let kernel: Vec<_> = (0..counters.len()).map(|at| layout.counter(&state, at)).collect();
        if counters != kernel {
            return differs("counters", &counters, &kernel);
        }
    }
    Ok(())
}

fn packets(most: usize) -> usize {
    std::env::var("RACKMEM_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(most)
}

pub(crate) fn seed() -> u64 {
    let given = std::env::var("RACKMEM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::process::id().into());
    println!("seed {seed}: again with RACKMEM_SEED={seed}");
    seed
}

fn the_kernel_does_what_the_model_does<M: Model>(configs: &[M::Config]) {
    let seed = seed();
    for config in configs {
        let program = M::program(AllRules, *config);
        println!("{config:?}: {} instructions", program.code.instructions.len());
        let Some(mut loaded) = loaded(&program) else { return };
        let compared = compare::<M>(*config, &program, &mut loaded, seed, packets(20_000));
        compared.unwrap_or_else(|how| panic!("{how}"));
    }
}

/// What these rules forbid happens between a packet's two passes. Here nothing does: both run under one lock.
const BETWEEN_PASSES: [Rule; 2] = [Rule::ClaimIsMarked, Rule::OneMoveAtATime];

/// A rule that changes the program must show: its mutant in the kernel is told from the model that keeps the rule.
fn every_mutant_is_told_apart<M: Model>(configs: &[M::Config], at_least: usize) {
    let seed = seed();
    let mut told_apart = Vec::new();
    for config in configs {
        let whole = M::program(AllRules, *config);
        for rule in M::RULES.iter().filter(|rule| !BETWEEN_PASSES.contains(rule)) {
            let mutant = M::program(Without(*rule), *config);
            if mutant == whole {
                continue;
            }
            let Some(mut loaded) = loaded(&mutant) else { return };
            let Err(how) = compare::<M>(*config, &mutant, &mut loaded, seed, packets(500_000)) else {
                panic!("seed {seed}: without {rule:?} ({config:?}) nothing differs")
            };
            println!("{rule:?}: {}", how.lines().next().unwrap_or_default());
            told_apart.push(*rule);
        }
    }
    assert!(told_apart.len() >= at_least, "rules that change the program: {told_apart:?}");
}

#[test]
fn blocks_in_the_kernel_are_those_of_the_model() {
    the_kernel_does_what_the_model_does::<Blocks>(&[(2, false), (3, true), (8, false), (8, true)]);
}

#[test]
fn every_mutant_of_the_program_for_blocks_is_told_apart() {
    every_mutant_is_told_apart::<Blocks>(&[(3, false), (3, true)], 12);
}

#[test]
fn locks_in_the_kernel_are_those_of_the_model() {
    the_kernel_does_what_the_model_does::<Locks>(&[2, 3, 8]);
}

#[test]
fn every_mutant_of_the_program_for_locks_is_told_apart() {
    every_mutant_is_told_apart::<Locks>(&[3], 5);
}
