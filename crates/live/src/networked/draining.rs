//! A node that drains: others get what it keeps of memories with copies, and then it leaves.
//!
//! What must always hold: a node that is done has nothing of which there would be fewer copies without it than there are to be, or
//! than nodes that stay; and nothing without copies, unless it was told that this may be lost.

use std::sync::PoisonError;

use super::node::NetworkedNode;
use crate::actor::ThreadContext;

/// Whether a node that is to leave drains, and how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Draining {
    /// It does not.
    No,
    /// It does not, as so many bytes of allocations without copies are in its memory, and would be lost.
    Refused {
        /// How many.
        bytes: u64,
    },
    /// Others get what it keeps.
    Moving {
        /// Memories with copies that too few others have.
        memories: u64,
        /// Bytes of allocations in them.
        bytes: u64,
        /// How many nodes are up and stay; `None`: the switch has not said yet.
        staying: Option<u8>,
    },
    /// Others have all: it may leave.
    Done {
        /// How many nodes are up and stay.
        staying: u8,
    },
    /// It has left.
    Left {
        /// How many nodes stayed.
        staying: u8,
        /// All that only this node had cached has gone home.
        in_order: bool,
    },
}

/// What the node was told to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Told {
    #[default]
    Nothing,
    Refused {
        bytes: u64,
    },
    ToDrain {
        loses_the_rest: bool,
    },
    Left {
        staying: u8,
        in_order: bool,
    },
}

impl NetworkedNode {
    /// From now on others get what this node keeps of memories with copies. What else its memory has in allocations is lost when it
    /// leaves: then it does not drain, unless that may be. A death, also of this node, changes nothing about what there is.
    pub fn begin_drain(&self, loses_the_rest: bool) -> Draining {
        self.tell(Told::ToDrain { loses_the_rest })
    }

    /// It stays.
    pub fn stop_drain(&self) -> Draining {
        self.tell(Told::Nothing)
    }

    /// How far it has come. Stops it, if there is something now that would be lost.
    pub fn draining(&self) -> Draining {
        self.look_at_drain(&mut self.told())
    }

    fn tell(&self, what: Told) -> Draining {
        let mut told = self.told();
        if !matches!(*told, Told::Left { .. }) {
            *told = what;
        }
        self.look_at_drain(&mut told)
    }

    fn look_at_drain(&self, told: &mut Told) -> Draining {
        if let Told::ToDrain { loses_the_rest: false } = *told
            && let bytes @ 1.. = self.with_node(|node| node.memory_in_use().0)
        {
            *told = Told::Refused { bytes };
        }
        self.set_draining(matches!(told, Told::ToDrain { .. }));
        match *told {
            Told::Nothing => return Draining::No,
            Told::Refused { bytes } => return Draining::Refused { bytes },
            Told::Left { staying, in_order } => return Draining::Left { staying, in_order },
            Told::ToDrain { .. } => {}
        }
        let Some(drain) = self.member().drain() else {
            return Draining::Moving { memories: 0, bytes: 0, staying: None };
        };
        if drain.missing.is_empty() {
            return Draining::Done { staying: drain.staying };
        }
        let bytes = self.with_node(|node| node.bytes_in_copies(drain.missing));
        Draining::Moving { memories: drain.missing.len() as u64, bytes, staying: Some(drain.staying) }
    }

    /// It leaves, having drained or not.
    pub(super) fn note_left(&self, in_order: bool) {
        let mut told = self.told();
        let staying = self.member().drain().map_or(0, |drain| drain.staying);
        if matches!(*told, Told::ToDrain { .. }) {
            *told = Told::Left { staying, in_order };
        }
    }

    fn set_draining(&self, draining: bool) {
        let mut effects = Vec::new();
        self.with_member(|member| member.set_draining(self.now(), draining, &mut effects));
        self.apply(&mut ThreadContext::new(self.now().0), effects);
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
