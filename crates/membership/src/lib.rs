//! Who is in the rack: who is alive, in which epoch, and when a node must fence itself.
//!
//! Runs in every process of a rack: a [`Coordinator`] beside the switch, a [`Member`] beside each node. Both are plain
//! machines: messages, deadlines and the time go in, effects come out; no clock, no randomness, no I/O. What must
//! always hold: an epoch's number names one roster; nobody is declared dead who may have a lease; who is dead stays
//! dead.
//!
//! | module | holds |
//! | --- | --- |
//! | [`message`] | BEAT, PULSE, KNOW, VIEW, and their bytes |
//! | [`member`] | a node's side: beats, holds a lease, gathers views and begins them |
//! | [`coordinator`] | hears the members, declares them dead, numbers the epochs |
//! | `timing`, `roster` | the times, all from one timeout; who is up |
//!
//! # How it goes
//! ```text
//! member                          coordinator                      switch
//!   │── BEAT (time, epoch) ──────────>│                               │
//!   │<─ PULSE (time, alive, epoch) ───│   lease: from the echoed time │
//!   │            ...                  │                               │
//!   │                                 │ somebody died: Restart{epoch} │
//!   │                                 │──────── dump, restart ───────>│
//!   │<─ VIEW (epoch, part 0 of n) ────│<─────── on_restarted(dump) ───│
//!   │── BEAT (lacks part 1) ─────────>│                               │
//!   │<─ VIEW (part 1 of n) ───────────│                               │
//!   │ Begin{view, dump}               │                               │
//!   │── BEAT (epoch) ────────────────>│                               │
//! ```
//! - An incarnation of a node is named by its *session*, a random number. The *incarnation* that it gets is the number of the
//!   epoch in which it begins: so incarnations grow also where nobody is left who knows the last one.
//! - A process that calls is let in only after it has sent back a *ticket* that the coordinator has just made. So no
//!   BEAT of the past, late or doubled, brings anybody back.
//! - A member that missed an epoch gets what the switch knew at the end of the one that it is in itself: in between,
//!   nobody can have touched its blocks.
//! - A coordinator that starts asks whoever has been in an epoch for its last view (KNOW), and goes on from the latest:
//!   at once if everybody in that view is heard, with an unbroken lease or in a new process that is the only one;
//!   else when all leases of the coordinator before must have run out.
//! - Numbers of epochs are greater than all that were heard of, and than the `origin` that the driver gives. That must
//!   have grown by more than there were epochs, since the last coordinator started: seconds since some year do,
//!   unless members come and go more than once a second.
//!
//! # What may be relied on
//! Let T be the timeout. A BEAT is sent every T/8; a lease runs 15/16 T from when the BEAT was sent that renews it.
//!
//! *A node that dies* is declared dead T after its last BEAT came, so at most T (and one delay of the network) after it
//! died. The others hear at once, and a lost VIEW is asked for again within T/8, by every BEAT. Homes rebuild as
//! soon as everybody has begun the epoch. So nobody waits for a dead node longer than 2 T, unless seven messages in
//! a row get lost. A new process of the node ends its wait at once if it is `sole`.
//!
//! *A coordinator that hears nobody at all* for two heartbeats takes itself for cut off, and declares nobody dead until it
//! hears somebody: then the others get the time that it heard nobody. (If all nodes have died, nobody is left who would wait
//! for them.) So a node that is the last one heard and dies stays in the roster until another process calls.
//!
//! *A node that leaves*, or does not begin an epoch that it could: the first is let go at once. The second gets no leases
//! after T/2, and is declared dead when its last one has run out: after 3/2 T, for whatever reason it hangs.
//!
//! *A node that drains* says so in its BEATs. In the epoch that begins then it keeps what it has of memories with copies, and serves
//! it, but does not count: as many of the others get it as there are to be copies. PULSE says what holds it still: the memories
//! that too few of those have who stay. When that is nothing, its leaving takes no copy away. It is up to the node to leave then,
//! and a death meanwhile changes nothing about that: the next PULSE says what is missing now.
//!
//! *A node that is paused* and declared dead learns so from the answer to its first BEAT: [`member::Effect::Fenced`].
//! Nothing that it sends is accepted in the new epoch. Its own hits may be stale from when the others began that
//! epoch until it stops them. With a driver that stops them at [`member::Effect::Suspended`], that is as long as the
//! process takes after waking to call [`Member::on_deadline`], whose deadline has passed by then. With accesses that
//! ask [`Member::holds`] after they have read (the strict mode), it is no time at all: while the lease runs, no epoch
//! without this node has begun anywhere.
//!
//! *A node that is cut off from the coordinator* loses its lease at most 15/16 T after the last BEAT that was answered,
//! before it is declared dead. It goes on beating, and is fenced when it is heard again. If BEATs arrive and answers do
//! not, the coordinator sees a live node and the node sees no lease: in strict mode it stands still, and if an epoch
//! begins that it does not hear of, it is declared dead for that. Nodes that are cut off from each other but not from
//! the coordinator are both alive here.
//!
//! *A coordinator that was paused* forgives all silence of that time but a heartbeat: it may have missed what was sent. So
//! a pause of the switch costs leases, and no incarnations. One that is late every time, as it gets no processor, declares
//! dead whom it has not heard in eight calls.
//!
//! *A coordinator that dies* takes no incarnation with it. Leases run out until the next one has formed the rack: in strict mode
//! everybody stands still meanwhile. It trusts those that it hears. If none of those who had begun the last epoch is
//! among them, it goes on from an earlier one, in which a node may be alive that the last epoch declared dead. No
//! value is stale then: nobody who is left has been in that last epoch, so their homes' blocks stand as they were.
//!
//! *Clocks* count time at rates that differ by less than 6 %. Nothing else is asked of them.
//!
//! # For drivers
//! - Call each machine at its deadline. All times are of one clock, which does not stop while the process is stopped.
//! - A coordinator and the switch are one process and die together; [`coordinator::Effect::Restart`] is done under the
//!   switch's lock, before any other effect.
//! - Say `sole` only if it is true: an incarnation whose process still runs may have a lease.
//! - The first view that a member begins says which incarnation its node is: the node is made then, in epoch 0.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod coordinator;
pub mod member;
pub mod message;
mod roster;
mod timing;

pub use coordinator::Coordinator;
pub use member::Member;
pub use message::Message;
pub use roster::{Roster, RosterEntry, Session};
pub use timing::Timing;
