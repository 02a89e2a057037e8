//! What no panic marks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rackmem::Locked;

use crate::locks::{node, rack};

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
