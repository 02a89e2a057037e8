//! What the store needs of objects, however they are kept.

use rackmem::{Error, GlobalAddr, NodeHandle, NodeId};

/// A way to keep objects of one length in the memory of one node, so that others can read them one-sidedly.
pub trait Layout: Sized + Clone + Send + Sync {
    /// What it is called.
    const NAME: &'static str;

    /// New objects of zeroes.
    ///
    /// # Errors
    /// If the rack's memory fails, or is full.
    fn create(node: &mut NodeHandle, count: usize, len: usize, home: NodeId) -> Result<Self, Error>;

    /// Those that begin there.
    ///
    /// # Errors
    /// If there are none, or the rack's memory fails.
    fn open(node: &mut NodeHandle, addr: GlobalAddr, len: usize) -> Result<Self, Error>;

    /// Where they begin.
    fn addr(&self) -> GlobalAddr;

    /// Tries to read one, once: its version (0 where there are none), or nothing if a writer was there. Then what is in `into` does not count. `raw` is for
    /// whatever the layout needs besides.
    ///
    /// # Errors
    /// If the rack's memory fails.
    ///
    /// # Panics
    /// If `into` has another length than the objects.
    fn try_read(
        &self,
        node: &mut NodeHandle,
        index: usize,
        into: &mut [u8],
        raw: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error>;

    /// Writes all of one, whatever it was.
    ///
    /// # Errors
    /// If the rack's memory fails.
    fn write(
        &self,
        node: &mut NodeHandle,
        index: usize,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Gives them back.
    ///
    /// # Errors
    /// If the rack's memory fails.
    fn free(self, node: &mut NodeHandle) -> Result<(), Error>;
}

/// Objects whose version says whether they have changed.
pub trait Versioned: Layout {
    /// What tells stores of different layouts apart.
    const ID: u64;

    /// From now on, what is in one is nothing that anybody was sent to, also if whoever writes it next dies in that: before a bucket that
    /// was used for something else is written. Its first word, the tag, is none. Layouts in which a writer's death loses the object
    /// need not do anything.
    ///
    /// # Errors
    /// If the rack's memory fails.
    fn void(&self, _node: &mut NodeHandle, _index: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Writes all of one, if it still has this version. False: it has not, or somebody is writing it.
    ///
    /// # Errors
    /// If the rack's memory fails.
    fn write_if(
        &self,
        node: &mut NodeHandle,
        index: usize,
        version: u64,
        bytes: &[u8],
        raw: &mut Vec<u8>,
    ) -> Result<bool, Error>;
}
