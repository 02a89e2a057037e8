//! Baselines and experiments: one per figure of the papers, and their report.
#![forbid(unsafe_code)]
