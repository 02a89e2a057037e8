//! What runs are given besides points, sizes and seed: every constant of the models, and where it comes from.
//!
//! What must always hold: runs read constants from a value of [`Inputs`], so that one can be moved; each paper declares
//! those that its figures depend on, each with its source, and those that were fitted are called calibrated.

use node::Backoff;
use serde::{Deserialize, Serialize};
use sim::chains::Bench;
use sim::hardware::{Bandwidth, MessageRate, Testbed};
use sim::objects::{Chip, Software};
use sim::rack::Setup;
use sim::{coherence, locks};
use wire::Nanos;

use super::point::{Point, Subject};
use crate::load::graph::Work;
use crate::{gam, grappa, powergraph};

/// The constants of all models.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Links, NICs, PCIe, switch and cores of the rack.
    pub rack: Testbed,
    /// From one processor of a node to another.
    pub hand_over: Nanos,
    /// Processor times of FlowCC.
    pub flowcc: coherence::Costs,
    /// Processor times of GAM.
    pub gam: gam::Costs,
    /// Processor times of Grappa.
    pub grappa: grappa::Costs,
    /// What the transaction engine does besides, for each access.
    pub transactions: Nanos,
    /// What a processor does with edges and vertices of a graph, in every system.
    pub graph: Work,
    /// Processor times of PowerGraph.
    pub powergraph: powergraph::Costs,
    /// Processor times of locks in MIND's kernel.
    pub locks: locks::Costs,
    /// Processor times of FlowCC in the place of MIND's coherence.
    pub mind: coherence::Costs,
    /// How a fault waits that MIND's switch has refused.
    pub refused: Backoff,
    /// What a query of the GCS store takes besides its lock and its value.
    pub query: Nanos,
    /// The soNUMA chips.
    pub chip: Chip,
    /// What cores of these chips do besides asking for transfers.
    pub software: Software,
    /// The machines of the steering paper.
    pub chains: Bench,
    /// The RISC-V machine.
    pub riscv: riscv::timing::Chip,
    /// Cycles that a packet takes longer at each end on the slower network.
    pub far: u64,
}

impl Inputs {
    /// As declared.
    pub fn declared() -> Self {
        Self {
            rack: Testbed::CONCORDIA,
            hand_over: Setup::new(1).hand_over,
            flowcc: coherence::Costs::PAPER,
            gam: gam::Costs::PAPER,
            grappa: grappa::Costs::PAPER,
            transactions: Nanos(150),
            graph: Work::PUBLISHED,
            powergraph: powergraph::Costs::PUBLISHED,
            locks: locks::Costs::PAPER,
            mind: coherence::Costs::MIND,
            refused: crate::systems::locks::REFUSED,
            query: crate::systems::locks::QUERY,
            chip: Chip::PAPER,
            software: Software::PAPER,
            chains: Bench::PAPER,
            riscv: riscv::timing::Chip::PAPER,
            far: 360,
        }
    }

    /// A rack of so many nodes.
    pub fn setup(&self, nodes: usize) -> Setup {
        Setup { testbed: self.rack, hand_over: self.hand_over, ..Setup::new(nodes) }
    }
}

/// Where an input comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The paper says it.
    Paper(&'static str),
    /// Somebody else has published it: a data sheet, a measurement, source code.
    Published(&'static str),
    /// Counted or measured on our own code.
    Counted(&'static str),
    /// Nobody says it: our estimate, from this.
    Estimated(&'static str),
    /// A choice that the paper leaves open.
    Chosen(&'static str),
    /// Fitted to a claim of the paper, which is therefore no result.
    Calibrated(&'static str),
}

impl Source {
    fn text(self) -> String {
        match self {
            Self::Paper(place) => format!("the paper, {place}"),
            Self::Published(place) => place.to_owned(),
            Self::Counted(how) => format!("counted: {how}"),
            Self::Estimated(from) => format!("estimated: {from}"),
            Self::Chosen(why) => format!("our choice: {why}"),
            Self::Calibrated(claim) => format!("**calibrated** to {claim}"),
        }
    }
}

/// One input of a paper's figures. Several constants that have one source and are of one kind are one input.
pub struct Input {
    /// What it is.
    pub name: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// Its value, with its unit.
    pub value: fn(&Inputs) -> String,
    /// Makes it so many times as large; without it, it cannot be moved by a share.
    pub scale: Option<fn(&mut Inputs, f64)>,
    /// Whether a run of this system can depend on it.
    pub concerns: fn(Subject) -> bool,
}

impl Input {
    /// The same, of some systems only.
    #[must_use]
    pub const fn of(mut self, concerns: fn(Subject) -> bool) -> Self {
        self.concerns = concerns;
        self
    }

    /// Whether a point's run can depend on it.
    pub fn reaches(&self, point: &Point) -> bool {
        (self.concerns)(point.subject)
    }
}

/// Declares inputs: a name, the fields of [`Inputs`] that it is, and its source. Text in place of fields is a value that
/// cannot be moved by a share.
macro_rules! inputs {
    ($($name:literal: $($field:ident).+ $(, and $($more:ident).+)*; $source:expr $(; $of:expr)?),* $(,)?) => {
        [$($crate::figure::input::Input {
            name: $name,
            source: $source,
            value: |it| $crate::figure::input::Quantity::shown(&it.$($field).+),
            scale: Some(|it, by| {
                it.$($field).+ = $crate::figure::input::Quantity::scaled(it.$($field).+, by);
                $(it.$($more).+ = $crate::figure::input::Quantity::scaled(it.$($more).+, by);)*
            }),
            concerns: |_| true,
        }$(.of($of))?),*]
    };
}
pub(crate) use inputs;

/// An input whose value is no number, or none that a share more or less makes sense of.
pub(crate) const fn fixed(name: &'static str, value: fn(&Inputs) -> String, source: Source) -> Input {
    Input { name, source, value, scale: None, concerns: |_| true }
}

/// Something that can be so many times as large.
pub(crate) trait Quantity {
    /// So many times as large. What was something stays something.
    fn scaled(self, by: f64) -> Self;

    /// With its unit, if it has one.
    fn shown(&self) -> String;
}

impl Quantity for u64 {
    fn scaled(self, by: f64) -> Self {
        ((self as f64 * by).round() as Self).max(Self::from(self > 0))
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Quantity for u32 {
    fn scaled(self, by: f64) -> Self {
        u64::from(self).scaled(by) as Self
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Quantity for Nanos {
    fn scaled(self, by: f64) -> Self {
        Self(self.0.scaled(by))
    }

    fn shown(&self) -> String {
        format!("{} ns", self.0)
    }
}

impl Quantity for Bandwidth {
    fn scaled(self, by: f64) -> Self {
        Self::megabits(self.to_megabits().scaled(by))
    }

    fn shown(&self) -> String {
        format!("{:.1} Gb/s", self.to_megabits() as f64 / 1e3)
    }
}

impl Quantity for MessageRate {
    fn scaled(self, by: f64) -> Self {
        Self::millions(self.to_millions().scaled(by))
    }

    fn shown(&self) -> String {
        format!("{} million/s", self.to_millions())
    }
}

impl Quantity for Backoff {
    fn scaled(self, by: f64) -> Self {
        Self { first: self.first.scaled(by), most: self.most.scaled(by) }
    }

    fn shown(&self) -> String {
        format!("{} ns, growing to {} ns", self.first.0 / 2, self.most.0 / 2)
    }
}

/// An input as it stands in a figure's document and on its page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Declared {
    /// What it is.
    pub what: String,
    /// How much, with its unit.
    pub value: String,
    /// Where that comes from.
    pub source: String,
}

/// These inputs with their declared values.
pub fn declared(inputs: impl Iterator<Item = &'static Input>) -> Vec<Declared> {
    let all = Inputs::declared();
    let of = |input: &'static Input| Declared {
        what: input.name.to_owned(),
        value: (input.value)(&all),
        source: input.source.text(),
    };
    inputs.map(of).collect()
}
