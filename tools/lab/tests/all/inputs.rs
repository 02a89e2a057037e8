//! The inputs of the papers' figures.

use lab::figure::input::{Inputs, declared};
use lab::papers::PAPERS;

#[test]
fn every_input_that_can_be_moved_moves_both_ways_and_its_value_shows_it() {
    for input in PAPERS.iter().flat_map(|paper| paper.all_inputs()) {
        let Some(scale) = input.scale else { continue };
        let values = [0.8, 1.0, 1.2].map(|by| {
            let mut all = Inputs::declared();
            scale(&mut all, by);
            (input.value)(&all)
        });
        assert!(values[0] != values[1] && values[1] != values[2], "{}: {values:?}", input.name);
    }
}

#[test]
fn no_paper_declares_an_input_twice_and_each_source_says_something() {
    for paper in PAPERS {
        let names: Vec<_> = paper.all_inputs().map(|input| input.name).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{}", paper.name);
        assert!(
            declared(paper.all_inputs())
                .iter()
                .all(|input| input.source.len() > 8 && !input.value.contains('|'))
        );
    }
}
