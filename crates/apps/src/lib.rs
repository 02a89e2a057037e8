//! rackmem: applications, written once against the API.
