//! What cores do besides asking for transfers, and how long it takes.
//!
//! What must always hold: all methods run on the same cores; a method pays for what it does.

use super::chip::{BLOCK, Chip};
use super::load::{Method, Work};
use crate::hardware::Picos;

/// Costs of software, in cycles of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Software {
    /// To compare and strip the version of a block, and copy the rest, besides waiting for the first block of a chunk. *The
    /// declared calibration*: with it the check is half of a look-up of 8 KB (section 2.3, Figure 1).
    pub strip: u64,
    /// To begin stripping and to end it, whatever the size. Estimated: a call, and the rest of a loop that is unrolled.
    pub enter: u64,
    /// Blocks that the stripping loop asks for together. Section 7.3: chunks of 1 KB.
    pub chunk: u32,
    /// To use or copy a block that is in the first-level cache. Estimated from section 7.2: throughput follows from latency there, so 16
    /// readers of 8 KB do not reach the 80 GB/s of four R2P2s; each takes 1.64 us or more, 0.6 us of them for the transfer.
    pub look: u64,
    /// Blocks that an ordinary loop over an object has asked for at the same time: a reorder buffer of 128 entries (Table 2) over
    /// the twelve instructions of eight loads and a loop. Estimated.
    pub window: u32,
    /// CRC64, for a byte. Section 2.1: "about a dozen".
    pub crc: u64,
    /// The look-up and the application around it: the phase of little parallelism (section 7.3: 0.8 to 1 instructions a cycle). *Calibrated*:
    /// with the next it makes the check a tenth of a look-up of 128 B (Figure 1), and alone the 35 % of Figure 9a at 128 B.
    pub lookup: u64,
    /// What FaRM does besides for a buffer between transfer and application, and what its larger code costs the instruction cache: SABRes do
    /// without (section 7.3). *Calibrated* with the one before.
    pub buffering: u64,
}

impl Software {
    /// After the paper.
    pub const PAPER: Self =
        Self { strip: 25, enter: 40, chunk: 16, look: 16, window: 10, crc: 12, lookup: 350, buffering: 380 };

    /// Before the transfer.
    pub(super) const fn before(&self, chip: &Chip, method: Method, work: Work, is_remote: bool) -> Picos {
        match (work, method) {
            (Work::Lookup, Method::LineVersions) if is_remote => chip.cycles(self.lookup + self.buffering),
            (Work::Lookup, _) => chip.cycles(self.lookup),
            _ => Picos::ZERO,
        }
    }

    /// After it: finding out whether the object, which is in the last-level cache, is whole. The stripping loop is tuned for parallelism, and
    /// decides at the end: a torn object costs as much (section 7.2: detection in software grows with the object).
    pub(super) fn check(&self, chip: &Chip, method: Method, bytes: u32) -> Picos {
        match method {
            Method::LineVersions => {
                let blocks = method.blocks(bytes);
                let chunks = u64::from(blocks.div_ceil(self.chunk));
                let cycles = self.enter + u64::from(blocks) * self.strip;
                Picos(chunks * chip.cached().0).plus(chip.cycles(cycles))
            }
            Method::Checksum => chip.cached().plus(chip.cycles(self.crc * u64::from(bytes))),
            _ => Picos::ZERO,
        }
    }

    /// And using it, from wherever the check has left it.
    pub(super) fn application(&self, chip: &Chip, method: Method, work: Work, bytes: u32) -> Picos {
        let blocks = u64::from(bytes).div_ceil(BLOCK);
        let near = chip.cycles(self.look);
        let is_near = matches!(method, Method::LineVersions | Method::Checksum);
        match work {
            Work::Transfer => Picos::ZERO,
            // Whoever checks has read what is clean.
            Work::Clean if is_near => Picos::ZERO,
            Work::Lookup if is_near => Picos(blocks * near.0),
            Work::Clean | Work::Lookup => {
                let rate = near.max(chip.flits()).max(Picos(chip.cached().0 / u64::from(self.window)));
                chip.cached().plus(Picos((blocks - 1) * rate.0)).plus(near)
            }
        }
    }
}
