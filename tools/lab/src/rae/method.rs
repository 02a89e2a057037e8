//! What the figures are given, each constant with its source, and what is said of the method.

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

/// What the figures are given.
pub(crate) const INPUTS: &[&[Input]] = &[&CHIP, &FIXED];

/// What the page begins with.
pub(crate) const HEAD: &str = "\
# Figures of RAE

The figures of the RAE paper (remote atomics as instructions of RISC-V) again: programs on simulated cores, with the engine of
rackmem beside each memory and the paper's timing, against the same programs with a library's instructions. The machine is in
[rae.md](rae.md). This page is written by `rackmem-lab figure`; do not edit it.

```sh
cargo run --release -p rackmem-lab-cli --features plots -- figure rae --out docs/figures --page docs/rae-figures.md
```

";

/// What is said of the sizes.
pub(crate) fn sizes(sizes: &Sizes, seed: u64) -> String {
    format!(
        "CircusTent: {} iterations a node, arrays of {} elements of 8 B a node. Graphs: Kronecker, {} vertices, {DEGREE} times as many edges. \
         Seed {seed}, which changes nothing: programs have generators of their own.\n",
        iterations(sizes),
        elements(sizes, 6),
        1_u64 << scale(sizes),
    )
}

/// What is said of the method.
pub(crate) const METHOD: &str = "
- The same sources are compiled twice. On the software path each call of OpenSHMEM is the same operation on the same network, and
  before it one instruction that says what routine this is. The machine charges the instructions that this routine was counted to execute,
  one cycle each: an in-order core executes no more than one in a cycle, and none of them is made to wait for memory. So the library is charged the
  least that it can take on such a core. A barrier is charged what as many processes execute for one, or the next smaller
  number that was counted: six over shared memory; four over TCP, where the library starts with no more under valgrind.
- Counted: by callgrind, on the library of Debian, on x86-64 (`rackmem-lab routines`; `tools/riscv/libraries`). Estimated: that a RISC-V
  compiler makes as many instructions of it. The kernel's instructions are not among them, which over TCP are most of the work.
- Where a library waits it polls, and how often is up to its testbed. The fewest instructions of all rounds are charged. Over TCP some of
  these are polls still, on top of which the simulated network takes its time.
- `getmem` of a size between two that were counted takes the smaller one's instructions. Words are fetched one by one on
  both paths, where a library would fetch a list at once: in tc, which is that and little else, the library is slower here than it need be.
- Additions without a result block their core on both paths. Atomic minima, which OpenSHMEM does not have, are compare-and-swaps in a loop on
  the software path.
- Published (Table I): clock, caches, engine, flits, nodes. Estimated: see the constants, and `tools/riscv/src/timing/chip.rs` for why.
- *Met* allows 25 %. Causes given under a table are our reading; what was tested says so, or names the figure that tests it.
";
