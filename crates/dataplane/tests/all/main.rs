//! The program in the kernel against the model.

mod against_the_model;
