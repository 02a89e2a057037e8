//! Objects as the rack has them: read whole where the memory is, and whole after any writer's death.

use rackmem::{ByteObjects, Error, GlobalAddr, NodeHandle, NodeId, ReadError, Retry};

use super::layout::{Layout, Versioned};

/// The rack's own objects.
#[derive(Clone, Debug)]
pub struct Sabres(ByteObjects);

impl Layout for Sabres {
    const NAME: &'static str = "sabre";

    fn create(node: &mut NodeHandle, count: usize, len: usize, home: NodeId) -> Result<Self, Error> {
        node.byte_objects_front_last(count, len, home).map(Self)
    }

    fn open(node: &mut NodeHandle, addr: GlobalAddr, len: usize) -> Result<Self, Error> {
        let objects = node.byte_objects_at(addr)?;
        if objects.object_len() == len {
            Ok(Self(objects))
        } else {
            Err(Error::WrongLength { addr, len: len as u64 })
        }
    }

    fn addr(&self) -> GlobalAddr {
        self.0.addr()
    }

    #[inline(always)]
    fn try_read(
        &self,
        node: &mut NodeHandle,
        index: usize,
        into: &mut [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        match self.0.read(node, index, into, Retry::Never) {
            Ok(version) => Ok(Some(version)),
            Err(ReadError::Torn { .. }) => Ok(None),
            Err(ReadError::Failed(why)) => Err(why),
        }
    }

    fn write(&self, node: &mut NodeHandle, index: usize, bytes: &[u8], _: &mut Vec<u8>) -> Result<(), Error> {
        self.0.write(node, index, 0, bytes).map(drop)
    }

    fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        self.0.free(node)
    }
}

impl Versioned for Sabres {
    const ID: u64 = 1;

    fn void(&self, node: &mut NodeHandle, index: usize) -> Result<(), Error> {
        self.0.write(node, index, 0, &[0; 8]).map(drop)
    }

    fn write_if(
        &self,
        node: &mut NodeHandle,
        index: usize,
        version: u64,
        bytes: &[u8],
        _: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        self.0.write_if(node, index, version, bytes).map(|written| written.is_some())
    }
}
