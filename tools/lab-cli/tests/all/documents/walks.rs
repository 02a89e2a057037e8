//! The message sequences in ARCHITECTURE.md are those of real runs.
