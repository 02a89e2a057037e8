//! rackmem: what a server of the rack runs.
