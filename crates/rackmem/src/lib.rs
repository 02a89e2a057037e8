//! One shared memory for a rack of machines: the public API.
