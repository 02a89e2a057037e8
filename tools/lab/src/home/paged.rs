//! A table over a large range of numbers of which parts are in use: an array in pages that appear when they are
//! first written.
//!
//! A baseline knows millions of blocks by their number. This finds one with two loads, costs nothing for memory
//! that nobody touches, and has no order of its own.

/// Entries on a page: the table of an 8 GiB range of 512 B blocks has 4096 of them.
const PAGE: usize = 4096;

/// The table. What was never written is `T::default()`.
#[derive(Debug)]
pub struct Paged<T> {
    pages: Vec<Option<Box<[T]>>>,
}

impl<T: Copy + Default> Default for Paged<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<T: Copy + Default> Paged<T> {
    /// Entry `index`.
    pub fn get(&self, index: usize) -> T {
        match self.pages.get(index / PAGE) {
            Some(Some(page)) => page[index % PAGE],
            _ => T::default(),
        }
    }

    /// Entry `index`, to be written.
    pub fn entry(&mut self, index: usize) -> &mut T {
        let page = index / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| vec![T::default(); PAGE].into_boxed_slice());
        &mut page[index % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_differs_from_the_default() {
        let mut table = Paged::<u32>::default();
        *table.entry(3 * PAGE + 5) = 7;
        assert_eq!(table.get(3 * PAGE + 5), 7);
        assert_eq!((table.get(0), table.get(3 * PAGE), table.get(usize::MAX)), (0, 0, 0));
    }
}
