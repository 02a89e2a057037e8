//! Nodes that have memory and nodes that use it, with the directory in the switch, in the kernel, and at the homes.

use rackmem::BlockSize;

use super::node::{Order, Taken, Use, User};
use super::report::Apart;
use super::{Args, in_turns};
use crate::bench::nodes::{Nodes, spec};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::ycsb::Directory;

const HOMES: u16 = 2;
const USERS: u16 = 2;
/// Blocks of each region: few enough to be cached whole.
const REGION: u64 = 128;

/// What users do, in per cent of their accesses.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// To what all share.
    pub(super) sharing: u64,
    /// That read.
    pub(super) reads: u64,
}

impl Load {
    /// Half of the accesses read.
    pub(super) const fn half(sharing: u64) -> Self {
        Self { sharing, reads: 50 }
    }
}

/// Both racks, which take turns.
pub(super) struct Racks {
    /// The directory is in the switch, and at the homes.
    both: [Rack; 2],
}

impl Racks {
    pub(super) fn start(interrupt: &Interrupt) -> Result<Self, Fault> {
        let rack = |directory| Rack::start(directory, interrupt);
        Ok(Self { both: [rack(Directory::Switch)?, rack(Directory::Home)?] })
    }

    /// The first round warms up.
    pub(super) fn measure(&mut self, args: &Args, load: Load, interrupt: &Interrupt) -> Result<Apart, Fault> {
        let [rate, messages, processor_ns] =
            in_turns(args.rounds, interrupt, &mut self.both, |rack, round| {
                rack.use_for_a_while(args, load, round)
            })?;
        Ok(Apart { sharing: load.sharing, rate, messages, processor_ns })
    }
}

/// A rack whose memory is at nodes that use none.
struct Rack {
    nodes: Nodes<User>,
    shared: Vec<u64>,
    own: Vec<Vec<u64>>,
}

impl Rack {
    fn start(directory: Directory, interrupt: &Interrupt) -> Result<Self, Fault> {
        let spec = RackSpec { nodes: usize::from(HOMES + USERS), directory, ..spec(BlockSize::DEFAULT) };
        let mut nodes = Nodes::start(TransportKind::Wire, &spec, &(), interrupt)?;
        let mut region = || nodes.ask_each((0..HOMES).map(|home| (home, Order::Allocate(REGION))));
        let (shared, own) = (region()?, (0..USERS).map(|_| region()).collect::<Result<_, _>>()?);
        Ok(Self { nodes, shared, own })
    }

    /// Operations a second of all users if each got on as the slowest, and what the homes have taken for one operation.
    fn use_for_a_while(&mut self, args: &Args, load: Load, seed: u64) -> Result<[f64; 3], Fault> {
        let users: Vec<(u16, Order)> = (0..USERS)
            .zip(&self.own)
            .map(|(user, own)| {
                let (shared, own) = (self.shared.clone(), own.clone());
                let seed = seed * u64::from(USERS) + u64::from(user);
                let Load { sharing, reads } = load;
                let how = Use { shared, own, blocks: REGION, sharing, reads, millis: args.millis, seed };
                (HOMES + user, Order::Use(how))
            })
            .collect();
        let before = self.taken()?;
        let rates: Vec<f64> = self.nodes.ask_each(users)?;
        let taken = self.taken()?.since(before);
        let operations = rates.iter().sum::<f64>() * args.millis as f64 / 1e3;
        // Who has most blocks takes the others the faster, where most accesses write: the one who gets on least counts.
        let rate = rates.into_iter().fold(f64::INFINITY, f64::min) * f64::from(USERS);
        Ok([rate, taken.messages as f64 / operations, taken.processor_ns as f64 / operations])
    }

    fn taken(&mut self) -> Result<Taken, Fault> {
        let homes: Vec<Taken> = self.nodes.ask_each((0..HOMES).map(|home| (home, Order::Tell)))?;
        Ok(homes.into_iter().fold(Taken::default(), Taken::and))
    }
}
