//! At most one node may write, and while one may, nobody has a copy to read of before its reign.

use wire::{Copyset, LockRules, Tenure};

use crate::locks::LockRack;

pub(super) fn check<R: LockRules>(rack: &LockRack<R>) -> Result<(), String> {
    for (lock, _) in &rack.locks {
        let (mut may_write, mut begun) = (None::<Tenure>, Vec::new());
        for (machine, _) in &rack.nodes {
            let Some(view) = machine.view(*lock) else { continue };
            if let Some(reign) = view.reign {
                if begun.contains(&reign.tenure) {
                    return Err(format!("two nodes have reign {:?} over {lock}", reign.tenure));
                }
                begun.push(reign.tenure);
                if reign.complete && !reign.moving && may_write.replace(reign.tenure).is_some() {
                    return Err(format!("two nodes may write under lock {lock}"));
                }
            }
        }
        let copies = |than: Tenure| -> Copyset {
            let nodes = rack.nodes.iter().filter(|(machine, _)| {
                let view = machine.view(*lock);
                view.and_then(|view| view.copy).is_some_and(|copy| copy <= than)
            });
            nodes.map(|(machine, _)| machine.id()).collect()
        };
        if let Some(tenure) = may_write
            && !copies(tenure).is_empty()
        {
            return Err(format!("{:?} have copies of lock {lock}, and a node may write", copies(tenure)));
        }
    }
    Ok(())
}
