//! Single writer or many readers: while one node may write a block, no other has a copy (Concordia, section
//! 5.1.2, invariant 1).

use std::collections::BTreeMap;

use node::Access;

use super::copies;
use crate::rack::Rack;
use wire::Rules;

pub(super) fn check<R: Rules>(rack: &Rack<R>) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for (node, tag, access, _) in copies(rack) {
        let (nodes, writers) = seen.entry(tag).or_insert((Vec::new(), 0));
        nodes.push(node);
        *writers += usize::from(access == Access::Modified);
        if *writers > 0 && nodes.len() > 1 {
            return Err(format!("{tag:?} is cached by {nodes:?}, {writers} of which may write"));
        }
    }
    Ok(())
}
