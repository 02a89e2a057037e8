//! Our own programs, as they are committed: `programs/build` makes them from the sources beside them.

/// Additions to words, some of them to one.
pub const HOT_WORD: &[u8] = include_bytes!("../programs/prebuilt/hot_word.elf");
/// CircusTent's patterns.
pub const CIRCUSTENT: &[u8] = include_bytes!("../programs/prebuilt/circustent.elf");
/// The same on the software path.
pub const CIRCUSTENT_SOFTWARE: &[u8] = include_bytes!("../programs/prebuilt/circustent-software.elf");
/// Graph kernels.
pub const GRAPH: &[u8] = include_bytes!("../programs/prebuilt/graph.elf");
/// The same on the software path.
pub const GRAPH_SOFTWARE: &[u8] = include_bytes!("../programs/prebuilt/graph-software.elf");
/// The same in one address space, for one node: with the processor's own atomics.
pub const GRAPH_LOCAL: &[u8] = include_bytes!("../programs/prebuilt/graph-local.elf");
