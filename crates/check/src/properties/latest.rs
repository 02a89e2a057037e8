//! A valid copy is the latest: whatever a hit could read was written last (Concordia, section 5.1.2,
//! invariant 2).

use super::copies;
use crate::rack::Rack;
use wire::Rules;

pub(super) fn check<R: Rules>(rack: &Rack<R>) -> Result<(), String> {
    for (node, tag, access, stamp) in copies(rack) {
        let latest = rack.latest.get(&tag).copied().unwrap_or(0);
        if stamp != latest {
            return Err(format!("{node} has {tag:?} {access:?} with write {stamp}; the latest is {latest}"));
        }
    }
    Ok(())
}
