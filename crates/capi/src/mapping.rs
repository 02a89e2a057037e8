//! Mapped memory: coherent memory behind pointers.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use rackmem::{Error, GlobalAddr, MapError, Mapping, PinnedRange};

use crate::handles::{Align64, Slot, close_shared, kind, look};
use crate::pointer::To;
use crate::rack::{OpenRack, RackmemRack};
use crate::status::{Failure, RackmemStatus};

/// A range of coherent memory that is mapped into this process. All OS threads may use it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemMapping {
    /// 0: null.
    pub id: u64,
}

/// Blocks of a mapping that stay where they are.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemPinned {
    /// 0: null.
    pub id: u64,
}

/// An open mapping.
pub(crate) struct Mapped(Arc<Mapping>);
/// An open pin. That it is dropped is all that is done with it.
pub(crate) struct Pinned {
    _range: PinnedRange<Arc<Mapping>>,
}

kind!(Mapped, 10, Align64, 1 << 12);
kind!(Pinned, 11, Align64, 1 << 16);

impl From<MapError> for Failure {
    #[cold]
    fn from(error: MapError) -> Self {
        match error {
            MapError::Memory(why) => why.into(),
            MapError::Unaligned { .. } | MapError::NoPages { .. } => {
                Self::new(RackmemStatus::InvalidArgument, error)
            }
            _ => Self::new(RackmemStatus::CannotOpen, error),
        }
    }
}

/// Maps `len` bytes of coherent memory (`rackmem_alloc`) from `address` on, a multiple of 8, into this process, which has joined
/// the rack. `rackmem_mapping_data` says where: at the same address in every process of the rack. What a program may rely on is in
/// docs/mapped.md. Any OS thread.
///
/// # Safety
/// `mapping` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_map(
    rack: RackmemRack,
    address: u64,
    len: usize,
    mapping: *mut RackmemMapping,
) -> RackmemStatus {
    look::<OpenRack>(rack.id, |rack| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(mapping, "mapping", RackmemMapping { id: 0 }) }?;
        let mapped = rack.rack().map(GlobalAddr::from_bits(address), len)?;
        to.set(RackmemMapping { id: Slot::open(Mapped(Arc::new(mapped)), None)? });
        Ok(RackmemStatus::Ok)
    })
}

/// Ends a mapping: an access through a pointer into it ends the process from now on. What is pinned of it stays mapped until it is
/// unpinned. Of null, nothing. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_unmap(mapping: RackmemMapping) -> RackmemStatus {
    close_shared::<Mapped>(mapping.id)
}

/// Where the bytes of a mapping begin, in every process that maps them; null if the handle is not open. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_mapping_data(mapping: RackmemMapping) -> *mut c_void {
    let mut data = std::ptr::null_mut();
    look::<Mapped>(mapping.id, |mapped| {
        data = mapped.0.as_ptr().cast();
        Ok(RackmemStatus::Ok)
    });
    data
}

/// Gets the blocks of `len` bytes of a mapping from byte `offset` on, to be read, or also written: then accesses that follow at once
/// wait for nothing, unless another node has taken a block back meanwhile. Says what would end the process if a pointer were
/// followed. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_touch(
    mapping: RackmemMapping,
    offset: usize,
    len: usize,
    write: bool,
) -> RackmemStatus {
    on_range(mapping, offset, len, |mapping, range| mapping.touch(range, write))
}

/// Gets the same together, many at a time, as a hint that they will be used; what cannot be had is left out. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_prefetch(
    mapping: RackmemMapping,
    offset: usize,
    len: usize,
    write: bool,
) -> RackmemStatus {
    on_range(mapping, offset, len, |mapping, range| mapping.prefetch(range, write))
}

/// Gets the same, and keeps them until `rackmem_unpin`: no other node gets them meanwhile to write, nor any call of this process. For
/// system calls that must not be cut short, and for what must be seen as a whole. At most a quarter of what a node caches can be
/// pinned. Who pins several ranges can wait for somebody who waits for him. Any OS thread.
///
/// # Safety
/// `pin` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_pin(
    mapping: RackmemMapping,
    offset: usize,
    len: usize,
    write: bool,
    pin: *mut RackmemPinned,
) -> RackmemStatus {
    on_range(mapping, offset, len, |mapping, range| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(pin, "pin", RackmemPinned { id: 0 }) }?;
        let range = mapping.pin_shared(range, write)?;
        to.set(RackmemPinned { id: Slot::open(Pinned { _range: range }, None)? });
        Ok::<_, Failure>(())
    })
}

/// Lets others have what was pinned. Of null, nothing. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_unpin(pin: RackmemPinned) -> RackmemStatus {
    close_shared::<Pinned>(pin.id)
}

/// The address of the rack that a pointer into mapped memory stands for, in any process; 0 if it is none. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_address_of(rack: RackmemRack, pointer: *const c_void) -> u64 {
    let mut address = 0;
    look::<OpenRack>(rack.id, |rack| {
        address = rack.rack().addr_of(pointer.cast()).map_or(0, GlobalAddr::bits);
        Ok(RackmemStatus::Ok)
    });
    address
}

/// Where an address of the rack is in every process that maps it; null if this process cannot map memory, or the address is
/// further into its node's memory than can be mapped. Any OS thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_pointer_to(rack: RackmemRack, address: u64) -> *mut c_void {
    let mut pointer = std::ptr::null_mut();
    look::<OpenRack>(rack.id, |rack| {
        let found = rack.rack().pointer_to(GlobalAddr::from_bits(address));
        pointer = found.map_or(pointer, <*mut u8>::cast);
        Ok(RackmemStatus::Ok)
    });
    pointer
}

/// Does something with bytes of a mapping.
fn on_range<E: Into<Failure>>(
    mapping: RackmemMapping,
    offset: usize,
    len: usize,
    work: impl FnOnce(&Arc<Mapping>, Range<usize>) -> Result<(), E>,
) -> RackmemStatus {
    look::<Mapped>(mapping.id, |mapped| {
        let end = offset.checked_add(len);
        let end = end.ok_or(Error::OutOfRange { addr: mapped.0.addr(), len: len as u64 })?;
        work(&mapped.0, offset..end).map_err(Into::into)?;
        Ok(RackmemStatus::Ok)
    })
}
