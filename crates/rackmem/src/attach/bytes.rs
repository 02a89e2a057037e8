//! Bytes of messages, front to back: in the byte order of little endians.
//!
//! What must always hold: taking takes any bytes whatever, and never panics.

use live::networked::verbs::RegionName;
use wire::roce::Key;
use wire::{GlobalAddr, Incarnation, Nanos, NodeId};

use super::message::{MOST_BYTES, MOST_OPERATIONS, Malformed};

/// Bytes that are taken from the front.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Malformed> {
        self.take(LEN).map(|bytes| bytes.try_into().expect("as long as was asked for"))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn addr(&mut self) -> Result<GlobalAddr, Malformed> {
        self.u64().map(GlobalAddr::from_bits)
    }

    /// A number of bytes that a message may carry.
    pub(super) fn len(&mut self) -> Result<usize, Malformed> {
        let len = self.u32()? as usize;
        if len <= MOST_BYTES { Ok(len) } else { Err(Malformed) }
    }

    /// The length of a lock's region, as it is said between places.
    pub(super) fn region_len(&mut self) -> Result<usize, Malformed> {
        let len = self.u32()?;
        if wire::region_bytes(len) as usize <= MOST_BYTES { Ok(len as usize) } else { Err(Malformed) }
    }

    pub(super) fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.len()?;
        self.take(len)
    }

    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::from(self.u16()?);
        if count <= MOST_OPERATIONS { Ok(count) } else { Err(Malformed) }
    }

    pub(super) const fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    pub(super) fn node(&mut self) -> Result<NodeId, Malformed> {
        self.u16().map(NodeId)
    }

    /// A number of things in this process.
    pub(super) fn size(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.u64()?).map_err(|_| Malformed)
    }

    pub(super) fn nanos(&mut self) -> Result<Nanos, Malformed> {
        self.u64().map(Nanos)
    }

    pub(super) fn name(&mut self) -> Result<RegionName, Malformed> {
        Ok(RegionName { addr: self.addr()?, incarnation: Incarnation(self.u32()?), key: Key(self.u32()?) })
    }

    /// What may be there.
    pub(super) fn option<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.flag()? { take(self).map(Some) } else { Ok(None) }
    }

    /// What one byte says: the number of one of these.
    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> Result<T, Malformed> {
        all.get(usize::from(self.byte()?)).copied().ok_or(Malformed)
    }
}

pub(super) fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    // Whoever makes a message keeps within its bounds.
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

pub(super) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

pub(super) fn put_addr(out: &mut Vec<u8>, addr: GlobalAddr) {
    put_u64(out, addr.bits());
}

pub(super) fn put_name(out: &mut Vec<u8>, name: &RegionName) {
    put_addr(out, name.addr);
    out.extend(name.incarnation.0.to_le_bytes());
    out.extend(name.key.0.to_le_bytes());
}

pub(super) fn put_option<T>(out: &mut Vec<u8>, what: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(what.is_some()));
    if let Some(what) = what {
        put(out, what);
    }
}
