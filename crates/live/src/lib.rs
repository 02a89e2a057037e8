//! rackmem: real racks, in one process for now.
