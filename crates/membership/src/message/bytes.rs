//! Bytes from the network, read front to back. What must always hold: reading past the end gives nothing.

use wire::{NodeId, SwitchEpoch};

use super::{LAST_EPOCH, node_of};

/// What has not been read yet.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) const fn left(&self) -> usize {
        self.0.len()
    }

    /// Takes all that is left: it must begin with its length, which must be at most so much.
    pub(super) fn rest_of(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = usize::from(self.u16()?);
        (length <= most && length == self.0.len()).then(|| core::mem::take(&mut self.0))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn epoch(&mut self) -> Option<SwitchEpoch> {
        self.u32().map(SwitchEpoch).filter(|epoch| *epoch <= LAST_EPOCH)
    }

    pub(super) fn node(&mut self) -> Option<NodeId> {
        node_of(self.u16()?)
    }
}
