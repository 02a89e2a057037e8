//! Random and hostile packets through the model and through the program: every verdict, every packet that goes out, every
//! counter and every register array must be the same.
//!
//! The program runs in the kernel, and on a machine of our own ([`check::bytecode`]), which also says what a kernel does not:
//! how many instructions a packet takes. Where nobody may load programs, only there.

use check::bytecode::Machine;
use check::bytecode::model::{self, Model, Place};
use dataplane::Loaded;
use random::Dice;
use switch::ebpf::{Hook, KernelProgram};
use wire::{AllRules, Rule, Rules, Without};

use crate::{blocks::Blocks, locks::Locks};

/// Where headers begin in the frames of these tests: behind Ethernet, IP and UDP.
pub(crate) const HEADER_AT: usize = 42;

/// A program of the switch, its model, and packets for both.
pub(crate) trait Packets {
    /// Of what there are several sizes.
    type Config: Copy + std::fmt::Debug;
    type Model: Model;
    /// Its rules.
    const RULES: &'static [Rule];

    fn program<R: Rules>(rules: R, hook: Hook, config: Self::Config) -> KernelProgram;

    fn new(config: Self::Config) -> Self;

    fn model(&mut self) -> &mut Self::Model;

    /// Begins an incarnation, in both.
    fn begin(&mut self, program: &mut dyn Place, dice: &mut Dice);

    /// Some packet that a rack may see.
    fn packet(&self, dice: &mut Dice) -> Vec<u8>;
}

/// A loaded program, as a place where one runs.
struct InKernel(Loaded);

impl Place for InKernel {
    fn begin(&mut self, epoch: u32, shadow: u16) {
        self.0.set_epoch(epoch);
        self.0.clear(shadow);
    }

    fn set_cell(&mut self, array: usize, index: usize, value: u64) {
        self.0.set_cell(array, index, value);
    }

    fn verdict_on(&mut self, frame: &[u8]) -> Result<u32, String> {
        self.0.forget_log();
        self.0.test_run(frame, 1).map(|run| run.verdict).map_err(|error| error.to_string())
    }

    fn state(&mut self, to: &mut Vec<u8>) {
        self.0.state(to);
    }
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
fn compare<P: Packets>(
    config: P::Config,
    of_kernel: &KernelProgram,
    program: &mut dyn Place,
    seed: u64,
    packets: usize,
) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let (mut both, mut state) = (P::new(config), Vec::new());
    for at in 0..packets {
        // A new incarnation now and then, so that the switch is not full for ever.
        if at % 400 == 0 {
            both.begin(program, &mut dice);
        }
        let mut bytes = both.packet(&mut dice);
        if dice.below(6) == 0 {
            hostile(&mut dice, &mut bytes);
        }
        let compared = model::compare(both.model(), program, of_kernel, (HEADER_AT, &bytes), &mut state);
        compared.map_err(|how| format!("seed {seed}, packet {at}: {how}"))?;
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

fn the_kernel_does_what_the_model_does<P: Packets>(configs: &[P::Config]) {
    let seed = seed();
    let all = configs.iter().flat_map(|config| [(config, Hook::TrafficControl), (config, Hook::Driver)]);
    for (config, hook) in all {
        let program = P::program(AllRules, hook, *config);
        let mut our_own = Machine::new(&program);
        let mut loaded = loaded(&program).map(InKernel);
        let in_kernel = loaded.as_mut().map(|loaded| loaded as &mut dyn Place);
        for place in [&mut our_own as &mut dyn Place].into_iter().chain(in_kernel) {
            let compared = compare::<P>(*config, &program, place, seed, packets(20_000));
            compared.unwrap_or_else(|how| panic!("{how}"));
        }
        let (all, longest) = (program.code.instructions.len(), our_own.longest());
        println!("{config:?}, {hook:?}: {all} instructions, at most {longest} for a packet");
    }
}

/// What these rules forbid happens between a packet's two passes. Here nothing does: both run under one lock.
const BETWEEN_PASSES: [Rule; 2] = [Rule::ClaimIsMarked, Rule::OneMoveAtATime];

/// A rule that changes the program must show: its mutant in the kernel is told from the model that keeps the rule.
fn every_mutant_is_told_apart<P: Packets>(configs: &[P::Config], at_least: usize) {
    let seed = seed();
    let mut told_apart = Vec::new();
    for config in configs {
        let whole = P::program(AllRules, Hook::TrafficControl, *config);
        for rule in P::RULES.iter().filter(|rule| !BETWEEN_PASSES.contains(rule)) {
            let mutant = P::program(Without(*rule), Hook::TrafficControl, *config);
            if mutant == whole {
                continue;
            }
            let mut place: Box<dyn Place> = match loaded(&mutant) {
                Some(loaded) => Box::new(InKernel(loaded)),
                None => Box::new(Machine::new(&mutant)),
            };
            let Err(how) = compare::<P>(*config, &mutant, &mut *place, seed, packets(500_000)) else {
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
