//! Reports as files: data for programs, a page and drawings for people.
//!
//! | file | writes |
//! | --- | --- |
//! | `bars` | nothing: what a bar chart shows |
//! | `document` | JSON: everything, and back |
//! | `csv` | a line for each point |
//! | `page` | Markdown |
//! | `plot` | SVG, with the feature `plots` |
//!
//! What must always hold: whatever is written follows from a [`Document`] alone, but for the CSV.

pub mod bars;
pub mod csv;
pub mod document;
pub mod page;
#[cfg(feature = "plots")]
pub mod plot;

pub use document::Document;
