//! The inputs of all figures, with their sources, and the page's text about the method.

use crate::figure::input::{Input, Source, fixed, inputs};
use crate::sizes::Sizes;
use crate::systems::programs::{DEGREE, elements, iterations, scale};

const CHIP: [Input; 9] = inputs![
    "second-level cache, cycles": riscv.second_level_cycles; Source::Estimated("10 ns, as 8 MB of SRAM take"),
    "memory, cycles": riscv.memory_cycles; Source::Published("DDR4-2400 at 17-17-17 (JESD79-4), and 10 ns for the controller (estimated)"),
    "a line on the memory's channel, cycles": riscv.channel_cycles; Source::Published("64 B at 19.2 GB/s"),
    "multiplication, and division, beyond the first cycle": riscv.division, and riscv.multiplication;
        Source::Estimated("a pipelined multiplier, four bits a cycle"),
    "packetizer, cycles": riscv.packetizer; Source::Estimated("to pack, and to unpack"),
    "the engine's operation, cycles": riscv.operation; Source::Estimated("load, operate, store"),
    "hop on the mesh, cycles": riscv.hop; Source::Published("soNUMA's mesh at the same clock (SABRes, Table 2)"),
    "header of a packet, bytes": riscv.header; Source::Estimated("route, nodes, operation, ticket"),
    "slower network: cycles more at each end of a packet": far;
        Source::Calibrated("17.61 %: what a library's instructions weigh in the paper's Figure 7"),
];

const FIXED: [Input; 4] = [
    fixed(
        "clock, caches, flits, nodes",
        |it| {
            let chip = &it.riscv;
            format!(
                "{} MHz, {} KiB and {} MiB in {} ways, {} B, 6",
                chip.cycles_per_microsecond,
                chip.first_level >> 10,
                chip.second_level >> 20,
                chip.ways,
                chip.flit
            )
        },
        Source::Paper("Table I"),
    ),
    fixed(
        "engine: miss-status registers, subentries, lines",
        |_| {
            let engine = riscv::machine::EngineConfig::PAPER;
            format!("{}, {}, {}", engine.entries, engine.subentries, engine.lines)
        },
        Source::Paper("Table I"),
    ),
    fixed(
        "instructions of a library's routines",
        |_| "see rae-3".to_owned(),
        Source::Counted("callgrind on Debian's Open MPI, x86-64, without the kernel's"),
    ),
    fixed(
        "sizes of arrays and graphs",
        |_| "see below; rae-sizes varies them".to_owned(),
        Source::Chosen("the paper does not say; rae-sizes fits one to 85.05 %, which is calibrated"),
    ),
];

/// The inputs of the figures.
pub(crate) const INPUTS: &[&[Input]] = &[&CHIP, &FIXED];

/// The beginning of the page.
pub(crate) const HEAD: &str = "\
# Figures of RAE

The figures of the RAE paper (remote atomics as RISC-V instructions): programs on simulated cores, with
rackmem's engine beside each memory and the paper's timing, against the same programs with a library's
instructions. [rae.md](rae.md) describes the machine. `rackmem-lab figure` writes this page; do not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure rae --out docs/figures --page docs/rae-figures.md
```

";

/// The text about sizes.
pub(crate) fn sizes(sizes: &Sizes, seed: u64) -> String {
    format!(
        "CircusTent: {} iterations a node, arrays of {} elements of 8 B a node. Graphs: Kronecker, {} \
         vertices, {DEGREE} times as many edges. Seed {seed}, which changes nothing.\n",
        iterations(sizes),
        elements(sizes, 6),
        1_u64 << scale(sizes),
    )
}

/// The text about the method.
pub(crate) const METHOD: &str = "
- *What runs*: the same sources, compiled twice. On the software path an OpenSHMEM call is the same operation on
  the same network, and is charged the instructions counted for its routine, one cycle each: the least on an
  in-order core.
- *Counted*: by callgrind on Debian's Open MPI on x86-64 (`rackmem-lab routines`), without the kernel's
  instructions, which over TCP are most of the work. A library that waits polls, so the fewest of all rounds are
  charged.
- *Estimated*: RISC-V takes as many instructions. Sizes and barriers that were not counted take the next smaller
  count. Timing that Table I does not give is explained in `tools/riscv/src/timing/chip.rs`.
- *Calibrated*, so no results: the slower network of rae-7, and array sizes and passes in rae-sizes, were fitted
  to the paper's numbers.
- *Limits*: words are fetched one by one on both paths, which makes the library slower in tc than it need be.
  Additions without a result block their core. Atomic minima are compare-and-swap loops on the software path.
- Causes under a table are our reading and were not tested unless they say so, or name the figure that tests
  them.
";
