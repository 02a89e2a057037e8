//! What must hold in a rack, checked from outside the protocol.
//!
//! The protocol crates never check themselves here: this crate looks at what a run *did* and says whether a
//! correct memory could have done it. It runs on whoever's machine wants to know, never in the rack.
//!
//! | module | holds |
//! | --- | --- |
//! | [`history`] | what clients asked, what they were told, and when; the file format of `rackmem ycsb --history` |
//! | [`litmus`] | programs of a few loads and stores, and which outcomes a memory model forbids |
//! | [`linearizability`] | whether a history of keys or words is linearizable, and if not, the evidence |
//! | [`rack`] | the harness of random runs: a network that loses, duplicates and reorders, and what stops and starts again |
//! | [`coherence`] | coherent blocks on it: the real machines, threads, and what must hold after every step |
//! | [`locks`] | the same for the locks that carry their data |
//! | [`regions`] | words and objects, through the NICs of nodes |
//! | [`chains`] | stores of chains, through the same NICs and a switch that may steer |
//! | [`joint`] | all of them in one rack, with the real allocator |
//! | [`bytecode`] | the kernel's virtual machine, for the switch's programs |
//!
//! ```
//! use check::history::{Op, Operation};
//! use check::linearizability::{Limits, Verdict, check_history};
//! use wire::Nanos;
//!
//! let at = |client, op, invoke, ret| Operation {
//!     client, key: "x", op, invoke: Nanos(invoke), ret: Some(Nanos(ret)),
//! };
//! let history = [
//!     at(0, Op::Insert { value: 1 }, 0, 10),
//!     at(0, Op::Insert { value: 2 }, 20, 30),
//!     at(1, Op::Read { value: Some(1) }, 40, 50), // stale: 2 was in place before this read began
//! ];
//! let verdict = check_history(&history, Limits::default());
//! let Verdict::Violation(violation) = verdict else { panic!("a stale read must be found") };
//! assert_eq!(violation.culprit, history[2]);
//! println!("{violation}");
//! ```
//!
//! What must always hold: a verdict is a proof or it is [`Verdict::Unknown`](linearizability::Verdict). No
//! limit, odd clock or odd history ever turns into a false "linearizable" or a false "violation".
#![forbid(unsafe_code)]

mod at_end;
pub mod bytecode;
pub mod chains;
pub mod coherence;
pub mod explore;
pub mod history;
pub mod joint;
pub mod linearizability;
pub mod litmus;
pub mod locks;
pub mod rack;
pub mod regions;

pub use at_end::AtEnd;
