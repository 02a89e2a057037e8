//! What a person should be told about the other processes of a rack: who is refused and why, and who does not answer.
//!
//! Whoever runs a place asks a [`PeerWatch`] several times a second, and says or logs what it returns. What must always
//! hold: a reason is told once when it arises, and then seldom, however often a peer tries again.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sorted::Map;
use transport::{Handshakes, PeerId, Reason, Refusal, Transport};

/// A peer that was not heard for so long is worth a word.
const MOST_SILENCE: Duration = Duration::from_millis(1500);
/// After the first word about something, the next one comes so much later; then twice as late each time,
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Something about another process.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeerEvent {
    /// A place of the rack is not talked to, by this process or by the other one.
    Refused(Refusal),
    /// An application that wanted to attach is not served.
    Application(Refusal),
    /// Places that have never answered.
    Waiting {
        /// Which, and where they are expected.
        peers: Vec<(PeerId, Option<String>)>,
        /// For how long.
        silent: Duration,
    },
}

impl fmt::Display for PeerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Application(Refusal { address, reason, .. }) => {
                write!(f, "an application ({address}) is refused: {reason}")
            }
            Self::Waiting { peers, silent } => {
                for (at, (peer, address)) in peers.iter().enumerate() {
                    let before = if at == 0 { "waiting for " } else { ", " };
                    match address {
                        Some(address) => write!(f, "{before}{peer} at {address}")?,
                        None => write!(f, "{before}{peer}")?,
                    }
                }
                write!(
                    f,
                    ": not heard for {:.1} s; see that it runs, that it is at this address, and that nothing on the way drops messages",
                    silent.as_secs_f32()
                )
            }
        }
    }
}

/// Looks at how the handshakes of a place stand, and returns what is worth a word.
pub struct PeerWatch {
    handshakes: Option<Arc<Handshakes>>,
    /// Those who want in are applications.
    applications: bool,
    /// Who should be heard now.
    expected: Box<dyn Fn() -> Vec<PeerId> + Send>,
    /// Who is not, and since when.
    silent: Map<PeerId, Instant>,
    /// By place and kind of reason.
    refused: Map<(PeerId, u8), (Refusal, Pause)>,
    waiting: Option<Pause>,
}

/// When the next word about something may come.
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Instant,
    length: Duration,
}

impl Pause {
    fn after(before: Option<Self>, now: Instant) -> Self {
        let length = before.map_or(FIRST_PAUSE, |before| (2 * before.length).min(LONGEST_PAUSE));
        Self { until: now + length, length }
    }
}

impl PeerWatch {
    /// Of a place with these handshakes, that should hear these peers at any moment.
    pub(crate) fn new(
        handshakes: Option<Arc<Handshakes>>,
        expected: impl Fn() -> Vec<PeerId> + Send + 'static,
    ) -> Self {
        Self {
            handshakes,
            applications: false,
            expected: Box::new(expected),
            silent: Map::new(),
            refused: Map::new(),
            waiting: None,
        }
    }

    /// Of a node that joins over this transport, and waits for its switch.
    pub fn of_joining(transport: &dyn Transport) -> Self {
        Self::new(transport.handshakes(), || vec![PeerId::SWITCH])
    }

    /// Of a daemon, for applications.
    pub(crate) fn of_applications(handshakes: Arc<Handshakes>) -> Self {
        Self { applications: true, ..Self::new(Some(handshakes), Vec::new) }
    }

    /// What there is to say now.
    pub fn poll(&mut self) -> Vec<PeerEvent> {
        self.poll_at(Instant::now())
    }

    fn poll_at(&mut self, now: Instant) -> Vec<PeerEvent> {
        let Some(handshakes) = &self.handshakes else { return Vec::new() };
        let mut events = Vec::new();
        let refusals = handshakes.refusals();
        for refusal in &refusals {
            let kind = (refusal.peer, refusal.reason.kind());
            let before = self.refused.get(&kind);
            let is_new = before.is_none_or(|(said, _)| said.reason != refusal.reason);
            let is_due =
                before.is_some_and(|(said, pause)| said.times != refusal.times && pause.until <= now);
            if is_new || is_due {
                let pause = Pause::after(before.filter(|_| !is_new).map(|(_, pause)| *pause), now);
                self.refused.insert(kind, (refusal.clone(), pause));
                let event = if self.applications { PeerEvent::Application } else { PeerEvent::Refused };
                events.push(event(refusal.clone()));
            }
        }
        // What is over may come again, and is new then; but not at every message that somebody makes up.
        let stands = |kind| refusals.iter().any(|one| (one.peer, one.reason.kind()) == kind);
        self.refused.retain(|kind, (_, pause)| now < pause.until || stands(*kind));
        let unheard = (self.expected)()
            .into_iter()
            .filter(|peer| !handshakes.was_accepted(*peer) && refusals.iter().all(|one| one.peer != *peer));
        self.silent = unheard.map(|peer| (peer, *self.silent.get(&peer).unwrap_or(&now))).collect();
        let silent = |since: &Instant| now.saturating_duration_since(*since);
        let long: Vec<_> = self.silent.iter().filter(|(_, since)| silent(since) >= MOST_SILENCE).collect();
        if let Some(longest) = long.iter().map(|(_, since)| silent(since)).max()
            && self.waiting.is_none_or(|pause| pause.until <= now)
        {
            self.waiting = Some(Pause::after(self.waiting, now));
            let with_address = |peer| (peer, handshakes.address(peer).map(str::to_owned));
            let peers = long.iter().map(|(peer, _)| with_address(**peer)).collect();
            events.push(PeerEvent::Waiting { peers, silent: longest });
        }
        events
    }
}

impl fmt::Debug for PeerWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerWatch").field("handshakes", &self.handshakes).finish_non_exhaustive()
    }
}

/// False if all that is known of this peer is that what came from it was not made with the rack's key.
pub(crate) fn authenticates(handshakes: Option<&Handshakes>, peer: PeerId) -> bool {
    let refusal = handshakes.and_then(|handshakes| handshakes.refusal(peer));
    refusal.is_none_or(|refusal| refusal.reason != Reason::Key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::Terms;

    fn board() -> Arc<Handshakes> {
        let address = |place: PeerId| (place == PeerId::SWITCH).then(|| "10.0.0.1:7400".to_owned());
        Arc::new(Handshakes::new(Terms::default(), address))
    }

    fn watching(all: &Arc<Handshakes>, expected: Vec<PeerId>) -> (PeerWatch, Instant) {
        (PeerWatch::new(Some(Arc::clone(all)), move || expected.clone()), Instant::now())
    }

    /// Polls so many seconds after the test has begun.
    fn said((watch, began): &mut (PeerWatch, Instant), seconds: u64) -> Vec<String> {
        watch.poll_at(*began + Duration::from_secs(seconds)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_peer_that_does_not_answer_is_named_within_three_seconds_and_then_seldom() {
        let all = board();
        let mut watch = watching(&all, vec![PeerId::SWITCH]);
        assert_eq!((said(&mut watch, 0), said(&mut watch, 1)), (Vec::new(), Vec::new()));
        let first = said(&mut watch, 2);
        assert!(
            first[0].starts_with("waiting for the switch at 10.0.0.1:7400: not heard for 2.0 s; "),
            "{first:?}"
        );
        let more: usize = (3..3600).map(|second| said(&mut watch, second).len()).sum();
        assert_eq!(more, 10, "after 10, 20, 40 s and so on, then every ten minutes");
        all.accept(PeerId::SWITCH);
        assert_eq!((3600..9999).map(|second| said(&mut watch, second).len()).sum::<usize>(), 0);
    }

    #[test]
    fn a_reason_is_told_at_once_and_again_only_if_it_arises_again_and_seldom() {
        let all = board();
        let mut watch = watching(&all, Vec::new());
        let refuse = |reason: &Reason| all.refuse(PeerId::SWITCH, "10.0.0.1:7400".to_owned(), reason.clone());
        let version = Reason::Version { ours: 2, theirs: 3 };
        refuse(&version);
        let first = said(&mut watch, 0);
        assert!(
            first[0].starts_with("the switch at 10.0.0.1:7400 is refused: it speaks version 3"),
            "{first:?}"
        );
        assert_eq!(
            (1..100).map(|second| said(&mut watch, second).len()).sum::<usize>(),
            0,
            "nobody has tried again"
        );
        let mut count = 0;
        for second in 100..200 {
            refuse(&version);
            count += said(&mut watch, second).len();
        }
        assert_eq!(count, 3, "at once, after 20 and after 40 s");
        refuse(&Reason::Version { ours: 2, theirs: 4 });
        assert_eq!(said(&mut watch, 200).len(), 1, "another reason is new");
        refuse(&Reason::Key);
        assert_eq!(said(&mut watch, 200).len(), 1, "so is another kind of reason");
    }

    #[test]
    fn made_up_messages_between_real_ones_do_not_fill_a_log() {
        let all = board();
        let mut watch = watching(&all, Vec::new());
        let mut count = 0;
        for second in 0..100 {
            all.refuse(PeerId::SWITCH, format!("10.0.0.{second}:1"), Reason::Key);
            count += said(&mut watch, second).len();
            all.accept(PeerId::SWITCH);
            said(&mut watch, second);
        }
        assert!(count <= 10, "{count} times in 100 s");
    }
}
