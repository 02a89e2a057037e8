//! The edges into a worker's vertices, in its node's memory: 4 bytes an edge.
//!
//! Compressed sparse rows, cut by segments of their sources: a superstep then looks at one segment of values after
//! the other, which was read with one call and fits into the processor's cache. Cut like that, most rows are short,
//! and the usual array of row offsets would take more than the edges. So an edge says itself how far its row lies
//! behind that of the edge before it:
//!
//! ```text
//! bits 31..16   rows to go forward; 65535: go so far, and this is no edge
//! bits 15..0    the source, in its segment
//! ```
//!
//! What must always hold: within a segment, rows only go forward.

use rackmem::{Discipline, GlobalAddr, Memory, NodeId};

use super::error::Error;
use super::layout::PIECE;

/// As far as one code goes forward.
const FAR: u64 = 0xffff;

/// An edge before it is written: sorted, these are in the order of codes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key(u64);

impl Key {
    /// From a source in its segment to a row.
    pub(super) fn new(segment: u64, row: u64, source: u64) -> Self {
        Self(segment << 48 | row << 16 | source)
    }

    fn segment(self) -> usize {
        (self.0 >> 48) as usize
    }

    fn row(self) -> u64 {
        self.0 >> 16 & 0xffff_ffff
    }
}

/// Where a worker's edges are.
#[derive(Debug)]
pub(super) struct Edges {
    /// None if there are none.
    at: Option<GlobalAddr>,
    /// Where the codes of each segment begin; one more says where the last ones end.
    begins: Vec<u64>,
    piece: Vec<u8>,
}

impl Edges {
    /// Writes sorted edges into the memory of a node.
    pub(super) async fn write<M: Memory>(
        mem: &mut M,
        home: NodeId,
        segments: usize,
        keys: &[Key],
    ) -> Result<Self, Error> {
        let mut begins = vec![0; segments + 1];
        encode(keys, |segment, _| begins[segment + 1] += 1);
        (1..=segments).for_each(|at| begins[at] += begins[at - 1]);
        let count = begins[segments];
        let mut this = Self { at: None, begins, piece: vec![0; PIECE] };
        if count == 0 {
            return Ok(this);
        }
        let at = mem.alloc(4 * count, home, Discipline::Coherent).await?;
        this.at = Some(at);
        // Sorted keys are encoded piece by piece: codes of all would be there twice.
        let (mut codes, mut written, mut row) = (Vec::with_capacity(PIECE + 64), 0, (0, 0));
        for keys in keys.chunks(PIECE / 4) {
            row = encode_from(row, keys, |_, code| codes.extend_from_slice(&code.to_le_bytes()));
            mem.write(at + written, &codes).await?;
            written += codes.len() as u64;
            codes.clear();
        }
        Ok(this)
    }

    /// True if no edge comes from this segment.
    pub(super) fn none_from(&self, segment: usize) -> bool {
        self.begins[segment] == self.begins[segment + 1]
    }

    /// Shows the codes of all edges from a segment, piece by piece. `show` gets the row after which they begin, and
    /// gives the one at which they end: what [`Code`] says.
    pub(super) async fn each<M: Memory>(
        &mut self,
        mem: &mut M,
        segment: usize,
        mut show: impl FnMut(&[[u8; 4]], usize) -> usize,
    ) -> Result<(), Error> {
        let (mut from, until, mut row) = (self.begins[segment], self.begins[segment + 1], 0);
        while from < until {
            let at = self.at.expect("there are edges");
            let piece = &mut self.piece[..(4 * (until - from)).min(PIECE as u64) as usize];
            mem.read(at + 4 * from, piece).await?;
            row = show(piece.as_chunks().0, row);
            from += piece.len() as u64 / 4;
        }
        Ok(())
    }
}

/// An edge as it is stored.
#[derive(Clone, Copy)]
pub(super) struct Code(u32);

impl Code {
    #[inline]
    pub(super) fn new(bytes: [u8; 4]) -> Self {
        Self(u32::from_le_bytes(bytes))
    }

    /// How many rows it goes forward.
    #[inline]
    pub(super) fn forward(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// False if it only goes forward.
    #[inline]
    pub(super) fn is_edge(self) -> bool {
        self.forward() as u64 != FAR
    }

    /// Its source in the segment.
    #[inline]
    pub(super) fn source(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

fn encode(keys: &[Key], put: impl FnMut(usize, u32)) {
    encode_from((0, 0), keys, put);
}

/// Encodes after an edge of this segment and row; gives those of the last one.
fn encode_from(after: (usize, u64), keys: &[Key], mut put: impl FnMut(usize, u32)) -> (usize, u64) {
    let (mut segment, mut row) = after;
    for key in keys {
        if key.segment() != segment {
            (segment, row) = (key.segment(), 0);
        }
        while key.row() - row >= FAR {
            put(segment, (FAR as u32) << 16);
            row += FAR;
        }
        put(segment, ((key.row() - row) as u32) << 16 | (key.0 & 0xffff) as u32);
        row = key.row();
    }
    (segment, row)
}

#[cfg(test)]
mod tests {
    use rackmem::{Config, Rack, block_on};

    use super::*;

    #[test]
    fn edges_are_read_as_they_were_written() {
        let config = Config { nodes: 1, memory: 4 << 20, cache: 1 << 20, ..Config::default() };
        let rack = Rack::embedded(config).unwrap();
        let mut mem = rack.node(NodeId(0));
        // Rows that are far behind others, by one code exactly and by several; a segment without edges; more than a
        // piece.
        let mut edges =
            vec![(0, 0, 5), (0, 65_534, 1), (0, 131_069, 2), (0, 400_000, 65_535), (2, 65_535, 0)];
        edges.extend((0..40_000).map(|row| (3, row * 3, row % 65_536)));
        let keys: Vec<Key> =
            edges.iter().map(|(segment, row, source)| Key::new(*segment, *row, *source)).collect();
        assert!(keys.is_sorted());
        let mut written = block_on(Edges::write(&mut mem, NodeId(0), 4, &keys)).unwrap();
        assert!(written.none_from(1) && !written.none_from(2));
        let mut read = Vec::new();
        for segment in 0..4 {
            let show = |codes: &[[u8; 4]], mut row| {
                for code in codes.iter().copied().map(Code::new) {
                    row += code.forward();
                    if code.is_edge() {
                        read.push((segment as u64, row as u64, code.source() as u64));
                    }
                }
                row
            };
            block_on(written.each(&mut mem, segment, show)).unwrap();
        }
        assert_eq!(read, edges);
    }

    #[test]
    fn a_worker_without_edges_needs_no_memory() {
        let rack = Rack::embedded(Config { nodes: 1, ..Config::default() }).unwrap();
        let mut mem = rack.node(NodeId(0));
        let mut none = block_on(Edges::write(&mut mem, NodeId(0), 2, &[])).unwrap();
        block_on(none.each(&mut mem, 1, |_, _| panic!("there is none"))).unwrap();
    }
}
