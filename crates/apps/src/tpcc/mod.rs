//! TPC-C on [transactions](crate::tx) in the rack's memory (Concordia, section 7.4; the specification's revision 5.11).
//!
//! Nine tables, five transactions in the specification's mix, NURand, and customers found by their last names. Each thread
//! has a warehouse of its own, as in the paper. A [`Worker`] draws what terminals of that warehouse would ask for, without
//! keying and thinking times.
//!
//! | file | holds |
//! | --- | --- |
//! | `schema.rs` | tables, fields and keys; how many rows there are |
//! | `draw.rs` | what the specification draws: NURand, last names, strings, inputs |
//! | `load.rs` | the first population (clause 4.3) |
//! | `worker.rs` | a thread: the mix, and trying again |
//! | `new_order.rs`, `payment.rs`, `order_status.rs`, `delivery.rs`, `stock_level.rs` | the transactions (clauses 2.4 to 2.8) |
//! | `consistency.rs` | the twelve conditions of clause 3.3.2 |
//!
//! # The distribution ratio
//! So often an item of a new order comes from another warehouse, and a payment is another warehouse's customer's. It takes
//! the place of the specification's 1 % and 15 %. That is what the engine does that the paper ports (GAM's, from Cavalia). At
//! 0 no two threads share a row that is changed, nor a block of one.
//!
//! # What must always hold
//! The twelve conditions, whenever no transaction runs. Money is whole cents, and rates are whole hundredths of a per cent, so
//! sums are exact.
//!
//! # Where we differ
//! - Rows can be fewer than specified ([`Scale`]): then NURand draws from what is there.
//! - Customers of one last name are in the order of their first names' first eight letters, and then of their numbers.
//! - A delivery is done at once, in one transaction for all districts, and not queued.
//! - An order has each item once.

mod consistency;
mod delivery;
mod draw;
mod load;
mod new_order;
mod order_status;
mod payment;
mod schema;
mod stock_level;
mod worker;

pub use consistency::{Broken, check};
pub use load::load;
pub use schema::{Scale, TABLES};
pub use worker::{Done, Mix, Transaction, Worker};
