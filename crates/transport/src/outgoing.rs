//! What a thread has handed to a transport and not flushed yet.

/// A burst on its way out. One for each thread that sends; reused.
#[derive(Debug, Default)]
pub struct Outgoing {
    /// Datagrams.
    #[cfg(target_os = "linux")]
    pub(crate) burst: crate::udp::Burst,
    /// Peers with something new in their rings, or in their inboxes in this process, a bit each.
    pub(crate) rings: u128,
}

impl Outgoing {
    /// An empty burst.
    pub const fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            burst: crate::udp::Burst::new(),
            rings: 0,
        }
    }

    /// True if there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        #[cfg(target_os = "linux")]
        if !self.burst.is_empty() {
            return false;
        }
        self.rings == 0
    }
}
