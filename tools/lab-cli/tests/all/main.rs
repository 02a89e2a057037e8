//! The `rackmem-lab` command as a shell sees it.
//!
//! | file | scenarios |
//! | --- | --- |
//! | `bench`, `peers` | what is measured, on racks in one process and of processes |
//! | `dissector` | what tshark shows of datagrams |
//! | `graph` | graphs, on the same racks |
//! | `tpcc` | TPC-C, on the same racks |
//! | `racks` | what holds of both |
//! | `search` | random runs, soaks |
//! | `riscv` | programs for RISC-V |
//! | `unwritable` | results that cannot be written |
//! | `shell` | the command in a shell's hands |
//! | `documents` | what the Markdown files say is so |
//! | `tapped` | two UDP transports, for `documents` and `dissector` |

mod bench;
mod dissector;
mod documents;
mod graph;
mod peers;
mod racks;
mod riscv;
mod search;
#[path = "../../../../crates/cli/tests/all/shell.rs"]
mod shell;
#[path = "../../../../crates/transport/tests/all/tapped/mod.rs"]
mod tapped;
mod tpcc;
mod unwritable;

/// What is tested.
const COMMAND: &str = env!("CARGO_BIN_EXE_rackmem-lab");
