//! Machines that are made over and over again.
//!
//! The programs of a switch are laid out over the stages of its chip and specialized when it is made. That takes longer than
//! thousands of steps of a run, and comes out the same each time. So each thread keeps one machine of each kind that it
//! made, untouched, and gives out copies.

use std::any::Any;
use std::cell::RefCell;

use wire::Rules;

thread_local! {
    static TEMPLATES: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// A machine as `make` makes it from this configuration: `make` depends on nothing else.
pub fn copy_of<R: Rules, C: PartialEq + Clone + 'static, T: Clone + 'static>(
    rules: R,
    config: &C,
    make: impl FnOnce(R, &C) -> T,
) -> T {
    TEMPLATES.with_borrow_mut(|templates| {
        let known = templates
            .iter()
            .filter_map(|it| it.downcast_ref::<(R, C, T)>())
            .find(|it| it.0 == rules && it.1 == *config);
        if let Some((_, _, made)) = known {
            return made.clone();
        }
        let made = make(rules, config);
        templates.push(Box::new((rules, config.clone(), made.clone())));
        made
    })
}
