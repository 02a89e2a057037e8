//! A panic with a write guard marks the value, for everybody, until somebody takes the mark away.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rackmem::{LockError, Locked};

use crate::locks::{node, rack};

#[test]
fn a_panic_while_writing_poisons_the_value_on_every_node_until_that_is_cleared() {
    let rack = rack(2);
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
    let value = Locked::new(&mut here, node(0), 1_u64).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = value.write(&mut here).unwrap();
        *guard = 2;
        panic!("in the middle of it");
    }));
    assert!(panicked.is_err());
    assert!(value.is_poisoned(&mut there).unwrap());
    let poisoned = LockError::Poisoned { addr: value.addr() };
    assert_eq!(value.read(&mut there).map(drop), Err(poisoned));
    assert_eq!(*value.read_poisoned(&mut there).unwrap(), 2, "the value is there all the same");
    assert_eq!(value.write(&mut there).map(drop), Err(poisoned));
    *value.write_poisoned(&mut there).unwrap() = 3;
    assert!(value.is_poisoned(&mut here).unwrap(), "nobody has cleared it");
    value.clear_poison(&mut here).unwrap();
    assert_eq!(*value.read(&mut there).unwrap(), 3);
}

#[test]
fn a_panic_while_reading_and_a_guard_taken_in_a_panic_poison_nothing() {
    struct Late<'a>(&'a Locked<u64>, rackmem::NodeHandle);
    impl Drop for Late<'_> {
        fn drop(&mut self) {
            *self.0.write(&mut self.1).unwrap() += 1;
        }
    }
    let rack = rack(1);
    let mut here = rack.node(node(0));
    let value = Locked::new(&mut here, node(0), 1_u64).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _late = Late(&value, rack.node(node(0)));
        let _guard = value.read(&mut here).unwrap();
        panic!("while it is read");
    }));
    assert!(panicked.is_err());
    assert_eq!(*value.read(&mut here).unwrap(), 2);
}
