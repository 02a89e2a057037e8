//! How a peer's handshakes with its peers stand: whose greeting it accepted, and whom it refused and why.
//!
//! A transport writes here, and whoever waits for a peer, or tells people about it, reads. What must always hold: nothing
//! here decides anything. An unauthenticated greeting can add an entry of its own kind, and no more: it neither hides nor
//! ends what an authenticated one has said.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::PeerId;
use crate::terms::{Difference, Terms};
use sorted::Map;

/// Why a peer is not talked to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Settings that must be the same in all processes of a rack are not.
    Settings(Vec<Difference>),
    /// It speaks another version.
    Version {
        /// This process's.
        ours: u8,
        /// The peer's.
        theirs: u8,
    },
    /// It says what no version says.
    Malformed,
    /// Its greeting was not made with this rack's key. Whoever it was: it may be somebody else than it says.
    Key,
}

/// A peer that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Who it is, or says it is.
    pub peer: PeerId,
    /// Where its greeting came from, or was asked for.
    pub address: String,
    /// Why.
    pub reason: Reason,
    /// How often it was refused for this kind of reason since it was accepted last.
    pub times: u64,
}

/// The handshakes of one peer.
#[derive(Debug)]
pub struct Handshakes {
    terms: Terms,
    /// By peer.
    addresses: Vec<Option<String>>,
    state: Mutex<HandshakeState>,
}

#[derive(Debug, Default)]
struct HandshakeState {
    /// By peer, and within a peer by kind of reason.
    refused: Map<(PeerId, u8), Refusal>,
    /// A bit for each peer whose greeting was accepted at some time.
    accepted: u128,
    /// A bit for each peer that was greeted.
    greeted: u128,
}

impl Reason {
    /// Nothing that the peer does later changes it: one of the two has to be started anew, with something else.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Settings(_) | Self::Version { .. })
    }

    /// A number for each kind of reason, the most certain first.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Settings(_) => 0,
            Self::Version { .. } => 1,
            Self::Malformed => 2,
            Self::Key => 3,
        }
    }
}

impl Handshakes {
    /// No peer was heard so far. They are expected at these addresses.
    pub fn new(terms: Terms, address: impl Fn(PeerId) -> Option<String>) -> Self {
        let peers = (0..PeerId::COUNT as u8).filter_map(PeerId::from_wire);
        Self { terms, addresses: peers.map(address).collect(), state: Mutex::default() }
    }

    /// This peer's settings.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Where a peer is expected; none: it comes from anywhere, or is not known.
    pub fn address(&self, peer: PeerId) -> Option<&str> {
        self.addresses[peer.index()].as_deref()
    }

    /// True if a greeting of this peer was ever accepted.
    pub fn was_accepted(&self, peer: PeerId) -> bool {
        self.state().accepted >> peer.index() & 1 == 1
    }

    /// True if this peer was ever greeted, or was to be.
    pub fn was_greeted(&self, peer: PeerId) -> bool {
        self.state().greeted >> peer.index() & 1 == 1
    }

    /// The refusals since the peers were accepted last, by peer: the most certain reason first.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.state().refused.values().cloned().collect()
    }

    /// Why this peer is refused now, if it is.
    pub fn refusal(&self, peer: PeerId) -> Option<Refusal> {
        self.state().refused.range((peer, 0)..=(peer, u8::MAX)).next().map(|(_, refusal)| refusal.clone())
    }

    /// What keeps a peer with these settings out.
    pub fn objection(&self, theirs: &Terms) -> Option<Reason> {
        let differences = self.terms.compare(theirs);
        (!differences.is_empty()).then_some(Reason::Settings(differences))
    }

    /// A peer is greeted.
    pub fn greet(&self, peer: PeerId) {
        self.state().greeted |= 1 << peer.index();
    }

    /// A peer was refused.
    pub fn refuse(&self, peer: PeerId, address: String, reason: Reason) {
        let mut state = self.state();
        let kind = (peer, reason.kind());
        let times = state.refused.get(&kind).map_or(0, |before| before.times) + 1;
        state.refused.insert(kind, Refusal { peer, address, reason, times });
    }

    /// A peer was accepted: what it was refused for is over.
    pub fn accept(&self, peer: PeerId) {
        let mut state = self.state();
        state.accepted |= 1 << peer.index();
        state.refused.retain(|(peer_id, _), _| *peer_id != peer);
    }

    fn state(&self) -> MutexGuard<'_, HandshakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(differences) => {
                for (at, difference) in differences.iter().enumerate() {
                    write!(f, "{}{difference}", if at == 0 { "" } else { ", " })?;
                }
                write!(f, ": give both the same rack file, and start the one again whose file was changed")
            }
            Self::Version { ours, theirs } => write!(
                f,
                "it speaks version {theirs} of rackmem's messages, and this process version {ours}: start both from the same release"
            ),
            Self::Malformed => write!(
                f,
                "its greeting makes no sense in any version: see that nothing but rackmem uses this address, and that nothing damages messages on the way"
            ),
            Self::Key => write!(
                f,
                "its greeting could not be authenticated: the key differs, or only one of the two has one; compare the files that `key` in the rack file names"
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Key => write!(
                f,
                "somebody at {}, who says to be {}, is refused: {}",
                self.address, self.peer, self.reason
            ),
            _ => write!(f, "{} at {} is refused: {}", self.peer, self.address, self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Handshakes, Reason};
    use crate::{PeerId, Terms};

    #[test]
    fn what_nobody_has_authenticated_hides_nothing_and_being_accepted_ends_all_of_it() {
        let of = |peer: PeerId| (peer == PeerId::SWITCH).then(|| "there".to_owned());
        let all = Handshakes::new(Terms::new([("block", "4 KiB")]), of);
        let settings = all.objection(&Terms::new([("block", "8 KiB")])).expect("they differ");
        assert_eq!(all.objection(&all.terms().clone()), None);
        for _ in 0..3 {
            all.refuse(PeerId::SWITCH, "here".to_owned(), Reason::Key);
        }
        assert_eq!(all.refusal(PeerId::SWITCH).map(|it| (it.reason, it.times)), Some((Reason::Key, 3)));
        all.refuse(PeerId::SWITCH, "here".to_owned(), settings.clone());
        all.refuse(PeerId::SWITCH, "here".to_owned(), Reason::Key);
        assert_eq!(all.refusal(PeerId::SWITCH).map(|it| it.reason), Some(settings));
        assert_eq!((all.refusals().len(), all.was_accepted(PeerId::SWITCH)), (2, false));
        all.accept(PeerId::SWITCH);
        assert_eq!((all.refusals().len(), all.was_accepted(PeerId::SWITCH)), (0, true));
        assert_eq!((all.address(PeerId::SWITCH), all.address(PeerId::OBSERVER)), (Some("there"), None));
    }
}
