//! Authenticated UDP datagrams, between machines.
