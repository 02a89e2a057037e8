//! Batches of remote atomics, as far as they can be judged without touching memory.
//!
//! At the NIC of the node whose memory it is, called by the driver. What must always hold: a batch is refused before the first of
//! its operations is executed, or all of them are executed.

use wire::roce::Key;
use wire::roce::batch::{Batch, Entry};

use super::effect::{Refused, Span};
use super::region::{Access, Regions};

impl Regions {
    /// Looks at every entry of a batch: its form, its alignment, its key, its extent, its permission.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn check_batch<'a>(&self, payload: &'a [u8]) -> Result<Batch<'a>, Refused> {
        let batch = Batch::parse(payload).map_err(|_| Refused::Invalid)?;
        batch.entries().try_for_each(|(key, entry)| self.check_entry(key, &entry))?;
        Ok(batch)
    }

    fn check_entry(&self, key: Key, entry: &Entry) -> Result<(), Refused> {
        let len = if entry.is_wide { 8 } else { 4 };
        if !entry.address.is_multiple_of(u64::from(len)) {
            return Err(Refused::Invalid);
        }
        let word = Span { key, address: entry.address, len };
        if self.allow(word, Access::REMOTE_ATOMIC) { Ok(()) } else { Err(Refused::Access) }
    }
}

#[cfg(test)]
mod tests {
    use wire::roce::batch::{Operation, Writer};

    use super::super::region::Region;
    use super::*;

    const BASE: u64 = 4096;

    fn add(address: u64, is_wide: bool) -> Entry {
        let operation = Operation::Add;
        Entry { address, operation, is_wide, fetches: true, operand: 1, expected: 0 }
    }

    fn check(access: Access, entry: &Entry) -> Result<usize, Refused> {
        let mut regions = Regions::new(2);
        let key = regions.register(Region { base: BASE, len: 20, access }).unwrap();
        let mut writer = Writer::new(100);
        writer.push(key, &add(BASE, true)).unwrap();
        writer.push(key, entry).unwrap();
        regions.check_batch(writer.bytes()).map(|batch| batch.len())
    }

    #[test]
    fn every_entry_is_looked_at() {
        let may = Access::LOCAL_WRITE | Access::REMOTE_ATOMIC;
        assert_eq!(check(may, &add(BASE + 8, true)), Ok(2));
        assert_eq!(check(may, &add(BASE + 16, false)), Ok(2));
        assert_eq!(check(may, &add(BASE + 16, true)), Err(Refused::Access), "half of it is outside");
        assert_eq!(check(may, &add(BASE - 8, true)), Err(Refused::Access));
        assert_eq!(check(may, &add(BASE + 4, true)), Err(Refused::Invalid));
        assert_eq!(check(may, &add(BASE + 2, false)), Err(Refused::Invalid));
        assert_eq!(check(Access::REMOTE_READ, &add(BASE, true)), Err(Refused::Access));
    }

    #[test]
    fn bytes_that_are_no_batch_are_invalid() {
        assert_eq!(Regions::new(1).check_batch(&[0; 8]), Err(Refused::Invalid));
    }

    #[test]
    fn a_wrong_key_is_refused_wherever_it_is() {
        let mut regions = Regions::new(2);
        let region = Region { base: BASE, len: 64, access: Access::ALL };
        let (former, key) = (regions.register(region).unwrap(), regions.register(region).unwrap());
        regions.deregister(former).unwrap();
        for keys in [[key, former], [former, key], [key, Key(0)]] {
            let mut writer = Writer::new(100);
            for key in keys {
                writer.push(key, &add(BASE, true)).unwrap();
            }
            assert_eq!(regions.check_batch(writer.bytes()), Err(Refused::Access));
        }
    }
}
