//! Words, and the operations on them.

use std::fmt;
use std::marker::PhantomData;

use live::memory::regions::{Missing, execute};
use live::networked::verbs::{Far, Opened};
use nic::words::{Operands, Operation, Request, Width};
use wire::GlobalAddr;

use super::pending::Place;
use super::{Pending, Word, WordOperation};
use crate::error::Error;
use crate::handle::NodeHandle;

/// Words in the memory of one node, for all threads of the rack. Cheap to clone.
///
/// Every operation names the calling thread's handle: whose node asks. It is one atomic change of its word, and all operations
/// on a word have one order. Forms that fetch return what the word was before; those that do not have taken effect when
/// [`NodeHandle::flush`] returns at the latest.
///
/// ```
/// # use rackmem::{Config, NodeId, Rack};
/// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
/// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
/// let counters = here.words::<u64>(100, NodeId(1))?;
/// assert_eq!(counters.fetch_add(&mut here, 7, 3)?, 0);
/// assert_eq!(counters.compare_exchange(&mut here, 7, 3, 40)?, Ok(3));
///
/// // Another thread, or a part of the program that knows the address only:
/// let same = there.words_at::<u64>(counters.addr())?;
/// same.add(&mut there, 7, 2)?;
/// there.flush()?;
/// assert_eq!(counters.load(&mut here, 7)?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Words<W: Word> {
    pub(super) region: Opened,
    of: PhantomData<fn(W) -> W>,
}

macro_rules! fetching {
    ($(#[$what:meta] $fetch:ident $plain:ident $operation:ident;)*) => {$(
        #[$what]
        /// Returns what the word was before.
        ///
        /// # Errors
        /// [`Error::OutOfBounds`]; [`Error::Unallocated`] if the words were freed.
        #[inline(always)]
        pub fn $fetch(&self, node: &mut NodeHandle, index: usize, operand: W) -> Result<W, Error> {
            self.run(node, index, WordOperation::$operation(operand))
        }

        #[$what]
        /// Fetches nothing, and may take effect as late as at [`NodeHandle::flush`].
        ///
        /// # Errors
        /// As for the form that fetches, if it is known at once; else `flush` says so.
        #[inline(always)]
        pub fn $plain(&self, node: &mut NodeHandle, index: usize, operand: W) -> Result<(), Error> {
            self.begin(node, index, WordOperation::$operation(operand))
        }
    )*};
}

impl<W: Word> Words<W> {
    /// Those of a region of words.
    pub(crate) const fn of(region: Opened) -> Self {
        Self { region, of: PhantomData }
    }

    /// Where the first word is.
    pub fn addr(&self) -> GlobalAddr {
        self.region.addr()
    }

    /// How many there are. An odd number of 32-bit words is rounded up.
    pub fn len(&self) -> usize {
        let doubles = self.region.shape().count();
        match W::WIDTH {
            Width::Double => doubles,
            Width::Word => doubles * 2,
        }
    }

    /// Never: there is at least one.
    pub const fn is_empty(&self) -> bool {
        false
    }

    fetching! {
        /// Adds, and wraps around.
        fetch_add add Add;
        /// Keeps the bits that both have.
        fetch_and and And;
        /// Sets bits.
        fetch_or or Or;
        /// Inverts bits.
        fetch_xor xor Xor;
        /// Keeps the smaller one, as signed numbers.
        fetch_min min Min;
        /// Keeps the larger one, as signed numbers.
        fetch_max max Max;
        /// Stores a value.
        swap store Swap;
    }

    /// Stores `new` if the word is `expected`. Returns what it was before: in `Ok` if it was that.
    ///
    /// # Errors
    /// As for [`Words::fetch_add`].
    #[inline(always)]
    pub fn compare_exchange(
        &self,
        node: &mut NodeHandle,
        index: usize,
        expected: W,
        new: W,
    ) -> Result<Result<W, W>, Error> {
        let old = self.run(node, index, WordOperation::CompareExchange { expected, new })?;
        Ok(if old == expected { Ok(old) } else { Err(old) })
    }

    /// Stores `new` if the word is `expected`. Fetches nothing, and may take effect as late as at [`NodeHandle::flush`].
    ///
    /// # Errors
    /// As for [`Words::add`].
    #[inline(always)]
    pub fn compare_store(
        &self,
        node: &mut NodeHandle,
        index: usize,
        expected: W,
        new: W,
    ) -> Result<(), Error> {
        self.begin(node, index, WordOperation::CompareExchange { expected, new })
    }

    /// The word.
    ///
    /// # Errors
    /// As for [`Words::fetch_add`].
    #[inline(always)]
    pub fn load(&self, node: &mut NodeHandle, index: usize) -> Result<W, Error> {
        self.run(node, index, WordOperation::Load)
    }

    /// Begins an operation, and waits for nothing. Thousands may be in flight.
    ///
    /// # Errors
    /// As for [`Words::fetch_add`], if it is known at once; else [`Pending::wait`] says so.
    #[inline(always)]
    pub fn post(
        &self,
        node: &mut NodeHandle,
        index: usize,
        operation: WordOperation<W>,
    ) -> Result<Pending<W>, Error> {
        match self.quick(node, index, operation) {
            Some(old) => Ok(Pending::done(old)),
            None => {
                let (operation, operands) = operation.parts();
                self.post_anyhow(node, index, operation, operands)
            }
        }
    }

    /// Executes it, where nothing is out of the ordinary: the words are within reach, there is such a one, and nobody has to look at
    /// the lease. All that is seldom is left to one call behind it, so that this is short wherever it is inlined.
    #[inline(always)]
    fn quick(&self, node: &NodeHandle, index: usize, operation: WordOperation<W>) -> Option<W> {
        // This process's, or another's of this machine: within reach of this processor, in any case.
        let Opened::Near(region) = &self.region else { return None };
        if node.watches() {
            return None;
        }
        let (at, is_upper) = Self::place_of(index);
        let double = region.word(at).ok()?;
        let (operation, operands): (Operation, Operands) = operation.parts();
        Some(W::of_bits(execute(double, W::WIDTH, is_upper, operation, operands)))
    }

    /// The same for bindings, which tell the ways apart: also None where memory is not in one piece. Then the operations themselves do
    /// it.
    #[inline(always)]
    pub fn run_here(&self, node: &NodeHandle, index: usize, operation: WordOperation<W>) -> Option<W> {
        let Opened::Near(region) = &self.region else { return None };
        if node.watches() {
            return None;
        }
        let (at, is_upper) = Self::place_of(index);
        let (operation, operands) = operation.parts();
        Some(W::of_bits(execute(region.word_in_first(at)?, W::WIDTH, is_upper, operation, operands)))
    }

    /// The double word that it lies in, and whether it is its upper half.
    #[inline(always)]
    fn place_of(index: usize) -> (usize, bool) {
        match W::WIDTH {
            Width::Double => (index, false),
            Width::Word => (index / 2, index % 2 == 1),
        }
    }

    /// Executes it, and waits for what the word was before.
    #[inline(always)]
    fn run(&self, node: &mut NodeHandle, index: usize, operation: WordOperation<W>) -> Result<W, Error> {
        match self.quick(node, index, operation) {
            Some(old) => Ok(old),
            None => {
                let (operation, operands) = operation.parts();
                self.run_anyhow(node, index, operation, operands)
            }
        }
    }

    /// Begins it; nobody asks how it ended, but [`NodeHandle::flush`].
    #[inline(always)]
    fn begin(&self, node: &mut NodeHandle, index: usize, operation: WordOperation<W>) -> Result<(), Error> {
        match self.quick(node, index, operation) {
            Some(_) => Ok(()),
            None => {
                let (operation, operands) = operation.parts();
                self.begin_anyhow(node, index, operation, operands)
            }
        }
    }

    /// Operation and operands by themselves, so that they are in registers, and not in memory for a call that is not made.
    #[cold]
    #[inline(never)]
    fn run_anyhow(
        &self,
        node: &mut NodeHandle,
        index: usize,
        operation: Operation,
        operands: Operands,
    ) -> Result<W, Error> {
        let region = match &self.region {
            Opened::Near(region) => region,
            Opened::Far(far) => {
                let place = self.push(node, far, index, (operation, operands), false)?;
                let place = match place.expect("whoever fetches has a place") {
                    Place::Far(place) => place,
                    Place::Asked(place) => return place.wait().map(W::of_bits),
                };
                return node.sent(|joined, context, pipeline| {
                    // With everything before it to this home, in the order in which it was begun.
                    pipeline.send(joined, context, far.home());
                    place.wait(joined, context).map(W::of_bits)
                });
            }
        };
        node.permitted()?;
        let (at, is_upper) = Self::place_of(index);
        match region.word(at) {
            Ok(double) => {
                let old = execute(double, W::WIDTH, is_upper, operation, operands);
                node.confirmed(W::of_bits(old))
            }
            Err(why) => Err(self.missing(why, index)),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_anyhow(
        &self,
        node: &mut NodeHandle,
        index: usize,
        operation: Operation,
        operands: Operands,
    ) -> Result<(), Error> {
        match &self.region {
            Opened::Far(far) => self.push(node, far, index, (operation, operands), true).map(drop),
            Opened::Near(_) => self.run_anyhow(node, index, operation, operands).map(drop),
        }
    }

    /// Begins it, whatever it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn post_anyhow(
        &self,
        node: &mut NodeHandle,
        index: usize,
        operation: Operation,
        operands: Operands,
    ) -> Result<Pending<W>, Error> {
        match &self.region {
            Opened::Far(far) => {
                let place = self.push(node, far, index, (operation, operands), false)?;
                Ok(Pending::begun(place.expect("whoever fetches has a place")))
            }
            Opened::Near(_) => self.run_anyhow(node, index, operation, operands).map(Pending::done),
        }
    }

    #[inline]
    fn push(
        &self,
        node: &mut NodeHandle,
        far: &Far,
        index: usize,
        (operation, operands): (Operation, Operands),
        silent: bool,
    ) -> Result<Option<Place>, Error> {
        if index >= self.len() {
            return Err(self.missing(Missing::Beyond, index));
        }
        if node.is_attached() {
            let asked = node.ask_on_word((far, index), W::WIDTH, (operation, operands), silent)?;
            return Ok(Some(Place::Asked(asked)));
        }
        node.permitted()?;
        let address = far.addr.offset() + index as u64 * W::WIDTH.bytes();
        let request = Request { ticket: 0, address, width: W::WIDTH, operation, operands };
        let pushed =
            node.sent(|joined, context, pipeline| pipeline.push(joined, context, far, &request, silent));
        Ok(pushed.map(Place::Far))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn missing(&self, why: Missing, index: usize) -> Error {
        match why {
            Missing::Ended => Error::Unallocated { addr: self.addr() },
            Missing::HomeDied => Error::NodeDown { addr: self.addr() },
            Missing::Lost => Error::HalfWritten { addr: self.addr(), index },
            Missing::Beyond => Error::OutOfBounds { index, count: self.len() },
        }
    }

    /// The same memory as words of another width.
    pub fn of_width<V: Word>(&self) -> Words<V> {
        Words::of(self.region.clone())
    }

    /// Gives the words back. All operations on them are refused from now on, through whichever `Words`, also when the memory
    /// is used anew. Operations that other threads have in flight may still take effect: free what nobody uses any more.
    ///
    /// # Errors
    /// If they were freed already.
    pub fn free(self, node: &mut NodeHandle) -> Result<(), Error> {
        node.free_of(self.addr(), self.region.incarnation())
    }
}

impl<W: Word> Clone for Words<W> {
    fn clone(&self) -> Self {
        Self { region: self.region.clone(), of: PhantomData }
    }
}

impl<W: Word> fmt::Debug for Words<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").field("addr", &self.addr()).field("len", &self.len()).finish()
    }
}
