//! Coherent memory of any length, under a name: to be mapped.

use wire::{Discipline, GlobalAddr};

use super::kinds::Nameable;
use super::making::VALUE_HEADER;
use super::spec::{NamedInfo, NamedSpec};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::mapping::{MapError, Mapping};
use crate::rack::Rack;

/// Coherent memory that has a name, of any length. It begins with a block, so it is mapped alone; calls reach it, too.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (rack, _processes) = rackmem::Rack::up(2, None)?;
/// use rackmem::Region;
/// use std::sync::atomic::Ordering::SeqCst;
///
/// let table = rack.here().named::<Region>("table").open_or(|| 1 << 20)?;
/// let map = table.map(&rack)?;
/// map.words()[7].fetch_add(1, SeqCst);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Region {
    /// In front of it is a block that says under which number it was made.
    header: GlobalAddr,
    making: u64,
    addr: GlobalAddr,
    len: usize,
}

impl Region {
    /// Its tag. Who says more of what is in it (`Named::tag`) says that behind this and a space.
    pub const TAG: &str = "rackmem::Region";

    /// Where it begins.
    pub const fn addr(&self) -> GlobalAddr {
        self.addr
    }

    /// How many bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Maps it.
    ///
    /// # Errors
    /// [`MapError`]; [`Error::Lost`] in it if something else has its name by now.
    pub fn map(&self, rack: &Rack) -> Result<Mapping, MapError> {
        if rack.inner.joined().is_some() && rack.here().read_word(self.header)? != self.making {
            return Err(Error::Lost { addr: self.addr }.into());
        }
        rack.map(self.addr, self.len)
    }
}

/// Something new has so many bytes of zero.
impl Nameable for Region {
    type Init = usize;

    fn spec(init: Option<&usize>) -> NamedSpec {
        let len = init.map_or(0, |bytes| (bytes + VALUE_HEADER) as u64);
        NamedSpec { discipline: Discipline::Coherent, len, count: 1, tag: Self::TAG.to_owned(), version: 0 }
    }

    fn contents(_: &usize) -> Vec<u8> {
        Vec::new()
    }

    fn found(handle: &mut NodeHandle, info: &NamedInfo) -> Result<Self, Error> {
        let len = usize::try_from(info.spec.value_len()).expect("it fits memory");
        let addr = info.addr + handle.block_size().bytes();
        Ok(Self { header: info.addr, making: info.making, addr, len })
    }
}
