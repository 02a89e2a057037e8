//! The switch's program for a kernel beside its model, in every state that a search reaches.

use switch::ebpf::{KernelProgram, TooLong};
use wire::{AllRules, Rule, Rules, Without};

use super::Machine;
use super::model::{Model, Place as _, compare};

/// What runs beside the switch of an explored rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Its program: every packet is run by both.
    Program,
    /// The program without this rule: to see that it is told apart.
    ProgramWithout(Rule),
}

/// The program, if one runs.
pub(crate) struct Replay {
    machine: Machine,
    program: KernelProgram,
    state: Vec<u8>,
}

/// Makes the program of a switch that has some rules.
pub(crate) trait Made {
    fn made<R: Rules>(&self, rules: R) -> Result<KernelProgram, TooLong>;
}

impl Replay {
    pub(crate) fn of(beside: Beside, made: &impl Made) -> Option<Self> {
        let whole = || made.made(AllRules).expect("its jumps are short enough");
        let program = match beside {
            Beside::Nothing => return None,
            Beside::Program => whole(),
            Beside::ProgramWithout(rule) => {
                let without = made.made(Without(rule)).expect("no jump is longer");
                // The same program does the same: that it does what its model does is found out without this.
                if without == whole() {
                    return None;
                }
                without
            }
        };
        Some(Self { machine: Machine::new(&program), program, state: Vec::new() })
    }

    /// Runs a packet through the program and through the model, whose state the program takes on before.
    ///
    /// # Panics
    /// If they differ.
    pub(crate) fn run<M: Model>(&mut self, model: &mut M, epoch: u32, packet: &[u8]) {
        self.machine.begin(epoch, 0);
        self.machine.take_on(model);
        let compared = compare(model, &mut self.machine, &self.program, (0, packet), &mut self.state);
        compared.unwrap_or_else(|how| panic!("{how}"));
    }
}
