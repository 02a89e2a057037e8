//! At most one node may write, and while one may, nobody has a copy to read of before its reign: of a lock in one life
//! of its home.

use std::collections::BTreeSet;

use wire::{Copyset, GlobalAddr, Incarnation, LockRules, Tenure};

use crate::locks::Locks;
use crate::rack::Control;

pub(super) fn check<R: LockRules>(locks: &Locks<R>, control: &Control) -> Result<(), String> {
    for (lock, _) in &locks.locks {
        let lives: BTreeSet<_> =
            locks.nodes.iter().map(|(machine, _)| control.life(machine.id(), lock.home())).collect();
        for life in lives {
            check_life(locks, control, *lock, life)?;
        }
    }
    Ok(())
}

/// Of the nodes that know this life of the lock's home.
fn check_life<R: LockRules>(
    locks: &Locks<R>,
    control: &Control,
    lock: GlobalAddr,
    life: Incarnation,
) -> Result<(), String> {
    let machines = || {
        let machines = locks.nodes.iter().map(|(machine, _)| machine);
        machines.filter(|machine| control.life(machine.id(), lock.home()) == life)
    };
    let (mut may_write, mut begun) = (None::<Tenure>, Vec::new());
    for machine in machines() {
        let Some(view) = machine.view(lock) else { continue };
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
        let nodes = machines().filter(|machine| {
            let view = machine.view(lock);
            view.and_then(|view| view.copy).is_some_and(|copy| copy <= than)
        });
        nodes.map(node::LockNode::id).collect()
    };
    if let Some(tenure) = may_write
        && !copies(tenure).is_empty()
    {
        return Err(format!("{:?} have copies of lock {lock}, and a node may write", copies(tenure)));
    }
    Ok(())
}
