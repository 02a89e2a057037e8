//! rackmem: properties and history checkers.
