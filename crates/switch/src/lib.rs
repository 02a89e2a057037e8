//! rackmem: the match-action pipeline and the programs that run on it.
