//! Where a peer is, as far as is known: what it advertises, and the address that this leads to now.
//!
//! Names are looked up on a thread of their own: a lookup may take seconds, and whoever answers messages must not wait for
//! it. What must always hold: a lookup that fails changes nothing but what is said; a name is looked up at most once a
//! second; and what was looked up or told is used only if this peer can send there, without a key only on loopback.
//!
//! A peer whose process advertises something else than the rack file says (`--advertise`) tells that itself, in a session:
//! whoever it greets, and through the switch everybody who asks. The record is the wire form of the peer, and the text;
//! without a text it asks.
//!
//! A peer that is not listed is where it speaks from. Nothing is remembered of it but its session: of the switch, too, others learn
//! where to greet it, and no more.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use super::advertised::{Advertised, HostName, Lookup};
use super::session::Peer;
use super::transport::UdpTransport;
use crate::{Cause, PeerId};

/// Between two looks at who does not answer.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Between two lookups of a name.
const LOOK_UP_EVERY: Duration = Duration::from_secs(1);
/// Between two lines about a name that leads nowhere.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// To which addresses this peer can send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) listen: SocketAddr,
    pub(super) loopback_only: bool,
}

impl Reach {
    /// The address as the socket takes it. None: it cannot be sent there.
    pub(super) fn to(self, address: SocketAddr) -> Option<SocketAddr> {
        let ip = match (self.listen.ip(), address.ip().to_canonical()) {
            (IpAddr::V4(_), ip @ IpAddr::V4(_)) | (IpAddr::V6(_), ip @ IpAddr::V6(_)) => ip,
            // A socket for all addresses of IPv6 is one for those of IPv4, too.
            (IpAddr::V6(own), IpAddr::V4(ip)) if own.is_unspecified() => ip.to_ipv6_mapped().into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, address.port()))
    }

    /// The same for what was looked up or told.
    fn to_learned(self, address: SocketAddr) -> Option<SocketAddr> {
        let allowed = !self.loopback_only || address.ip().to_canonical().is_loopback();
        self.to(address).filter(|_| allowed)
    }
}

/// What is known of where a peer is.
#[derive(Debug, Default)]
pub(super) struct Whereabouts {
    known: Mutex<Known>,
    /// It may be elsewhere than its name led to last.
    pub(super) is_suspect: AtomicBool,
    /// It is sent to, and nothing comes from it: what this peer advertises is told again, and the switch is asked.
    pub(super) is_silent: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    /// None: an observer or a peer that is not listed, who is where it asks from.
    advertised: Option<Advertised>,
    /// It was told, and not in the rack file.
    told: bool,
    /// Where that leads.
    address: Option<SocketAddr>,
    /// All that its name has led to.
    candidates: Vec<SocketAddr>,
    /// When the name was looked up last.
    looked_up: Option<Instant>,
    /// Why it leads nowhere, and when that was said.
    trouble: Option<(String, Instant)>,
}

impl Whereabouts {
    pub(super) fn new(advertised: Option<Advertised>, reach: Reach) -> Self {
        let address = advertised.as_ref().and_then(Advertised::address).and_then(|it| reach.to(it));
        Self { known: Mutex::new(Known { advertised, address, ..Known::default() }), ..Self::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is, as far as is known.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.known().address
    }

    /// The same, now that a greeting came from there. Of several addresses that its name leads to, the one from which it answers is
    /// right. If none is known, it is where it speaks from.
    pub(super) fn address_heard_from(&self, source: Option<SocketAddr>, answers: bool) -> Option<SocketAddr> {
        let mut known = self.known();
        if let Some(source) = source.filter(|source| answers && known.candidates.contains(source)) {
            known.address = Some(source);
        }
        known.address.or(source)
    }

    /// Why its name leads nowhere.
    fn trouble(&self) -> Option<String> {
        self.known().trouble.as_ref().map(|(why, _)| why.clone())
    }

    fn told(&self) -> Option<Advertised> {
        let known = self.known();
        known.advertised.clone().filter(|_| known.told)
    }

    /// True if another address than the present one may be right.
    pub(super) fn may_change(&self) -> bool {
        let known = self.known();
        known.told || matches!(known.advertised, Some(Advertised::Name(_)))
    }

    fn name(&self) -> Option<HostName> {
        match &self.known().advertised {
            Some(Advertised::Name(name)) => Some(name.clone()),
            _ => None,
        }
    }

    /// True if nobody has said where it is: it is where it speaks from.
    pub(super) fn is_unlisted(&self) -> bool {
        self.known().advertised.is_none()
    }

    /// Takes what was told. Returns false if that is no news.
    fn learn(&self, advertised: Advertised, reach: Reach) -> bool {
        let mut known = self.known();
        if known.advertised.as_ref() == Some(&advertised) {
            return false;
        }
        // Until a name is looked up it is where it was, or where it speaks from.
        let address = advertised.address().and_then(|it| reach.to_learned(it)).or(known.address);
        *known = Known { advertised: Some(advertised), told: true, address, ..Known::default() };
        true
    }
}

/// The thread that looks names up, if there are any.
#[derive(Debug)]
pub(super) struct Finder {
    lookup: Lookup,
    thread: OnceLock<Thread>,
    /// The thread ends when this has gone.
    incarnation: Arc<()>,
}

impl Finder {
    pub(super) fn new(lookup: Lookup) -> Self {
        Self { lookup, thread: OnceLock::new(), incarnation: Arc::default() }
    }

    /// Names are looked up from now on, and silence is noticed.
    pub(super) fn begin(&self, peers: &Arc<[Option<Peer>]>, reach: Reach) {
        self.thread.get_or_init(|| {
            let (peers, lookup, incarnation) =
                (Arc::clone(peers), self.lookup.clone(), Arc::downgrade(&self.incarnation));
            let finder = thread::Builder::new().name("names".to_owned());
            let running = finder.spawn(move || find(&peers, &lookup, reach, &incarnation));
            running.expect("the system gives a thread").thread().clone()
        });
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        // Nobody waits for it: it has nothing of the transport but what is written here, and may be in a lookup.
        self.incarnation = Arc::default();
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

fn find(peers: &[Option<Peer>], lookup: &Lookup, reach: Reach, incarnation: &Weak<()>) {
    let mut sent = [0; PeerId::COUNT];
    while incarnation.strong_count() > 0 {
        for peer in peers.iter().flatten() {
            let before = std::mem::replace(&mut sent[peer.id.index()], peer.last_counter());
            let session = peer.session();
            let silent = session.as_ref().is_some_and(|it| !it.was_heard() && before != peer.last_counter());
            peer.whereabouts.is_silent.fetch_or(silent, Relaxed);
            let suspect = peer.whereabouts.is_suspect.swap(false, Relaxed);
            if session.is_none() || silent || suspect || peer.address().is_none() {
                look_up(peer, lookup, reach, session.is_none());
            }
            if incarnation.strong_count() == 0 {
                return;
            }
        }
        thread::park_timeout(LOOK_EVERY);
    }
}

/// Finds out where a peer's name leads, if it has one. `lost`: nobody has answered where it led last.
fn look_up(peer: &Peer, lookup: &Lookup, reach: Reach, lost: bool) {
    let Some(name) = peer.whereabouts.name() else { return };
    let now = Instant::now();
    {
        let mut known = peer.whereabouts.known();
        if known.looked_up.is_some_and(|last| now < last + LOOK_UP_EVERY) {
            peer.whereabouts.is_suspect.store(true, Relaxed);
            return;
        }
        known.looked_up = Some(now);
    }
    // This may take seconds.
    let found = lookup.addresses(&name);
    let found = found.map_err(|error| error.to_string()).and_then(|all| {
        let usable: Vec<SocketAddr> = all.iter().filter_map(|address| reach.to_learned(*address)).collect();
        if !usable.is_empty() {
            return Ok(usable);
        }
        let all: Vec<String> = all.iter().map(|address| address.ip().to_string()).collect();
        let (listen, why) = (reach.listen, if reach.loopback_only { " without a key" } else { "" });
        Err(format!("it leads to {}, where nothing can be sent from {listen}{why}", all.join(", ")))
    });
    let mut known = peer.whereabouts.known();
    if !matches!(&known.advertised, Some(Advertised::Name(present)) if *present == name) {
        return;
    }
    let (peer_id, whence) = (peer.id, name.whence());
    match found {
        Ok(usable) => {
            // One of several that does not answer is not the right one.
            let last = known.address.and_then(|last| usable.iter().position(|address| *address == last));
            let address = match last {
                Some(last) if lost => usable[(last + 1) % usable.len()],
                Some(last) => usable[last],
                None => usable[0],
            };
            let before = known.address.replace(address);
            known.candidates = usable;
            let trouble = known.trouble.take().is_some();
            drop(known);
            if trouble || before.is_some_and(|before| before != address) {
                info!(target: "rackmem", peer = %peer_id, name = %name, address = %address, "a name leads elsewhere now");
            } else if before.is_none() {
                debug!(target: "rackmem", peer = %peer_id, name = %name, address = %address, "looked up");
            }
            peer.end_unless_at(address);
        }
        Err(error) => {
            let why = format!(
                "`advertise` of {peer_id} is {name} ({whence}), which cannot be looked up here: {error}; correct it, or make the \
                 name known to this machine (DNS, or its file of hosts)"
            );
            let said = known.trouble.as_ref().map(|(_, said)| *said);
            let quiet = said.filter(|said| now < *said + SAY_EVERY);
            known.trouble = Some((why.clone(), quiet.unwrap_or(now)));
            drop(known);
            if quiet.is_none() {
                warn!(target: "rackmem", peer = %peer_id, "{why}; it is tried again every second");
            }
        }
    }
}

impl UdpTransport {
    /// Names of peers that lead nowhere, and what to do about it.
    pub(super) fn unresolved(&self) -> Option<String> {
        let troubles = self.peers.iter().flatten().filter_map(|peer| peer.whereabouts.trouble());
        let troubles: Vec<String> = troubles.collect();
        (!troubles.is_empty()).then(|| troubles.join("\n"))
    }

    /// A peer does not answer: tells it again what this peer advertises, and asks the switch what the peer does.
    pub(super) fn reach_out(&self, peer: &Peer) {
        peer.whereabouts.is_silent.store(false, Relaxed);
        self.ask(peer, None);
        self.tell(peer);
        self.inquire(peer);
    }

    /// Tells a peer what this peer advertises, if the rack file does not say that.
    pub(super) fn tell(&self, peer: &Peer) {
        if let Some(advertise) = &self.advertise {
            self.send_whereabouts(peer, self.me, &advertise.to_string());
        }
    }

    /// Asks the switch where a peer is.
    pub(super) fn inquire(&self, peer: &Peer) {
        if let Some(switch) = self.peer(PeerId::SWITCH).filter(|_| peer.id.as_node().is_some()) {
            self.send_whereabouts(switch, peer.id, "");
        }
    }

    /// What a peer says about where somebody is; or it asks.
    pub(super) fn on_whereabouts(&self, from: PeerId, content: &[u8]) -> Result<(), Cause> {
        let (peer_id, text) = content.split_first().ok_or(Cause::Malformed)?;
        let peer_id =
            PeerId::from_wire(*peer_id).filter(|peer_id| *peer_id != self.me).ok_or(Cause::Malformed)?;
        let (peer, asking) = self.peer(peer_id).zip(self.peer(from)).ok_or(Cause::Malformed)?;
        if text.is_empty() {
            let speaks_from = || {
                let session = peer.session().filter(|_| peer.whereabouts.is_unlisted());
                session.map(|session| session.address.into())
            };
            if self.me == PeerId::SWITCH
                && let Some(told) = peer.whereabouts.told().or_else(speaks_from)
            {
                self.send_whereabouts(asking, peer_id, &told.to_string());
            }
            return Ok(());
        }
        let text = std::str::from_utf8(text).ok().filter(|_| from == peer_id || from == PeerId::SWITCH);
        let whence = format!("as {from} has said");
        let told = text.and_then(|text| Advertised::parse(text, &whence)).ok_or(Cause::Malformed)?;
        if let Some(address) = told.address().filter(|_| from != peer_id && peer.whereabouts.is_unlisted()) {
            // It is asked there, and answers from where it is.
            let address = self.reach.to_learned(address).ok_or(Cause::Unreachable)?;
            self.greet(peer, &peer.greeting(), 0, address);
            return Ok(());
        }
        let is_name = told.address().is_none();
        if peer.whereabouts.learn(told, self.reach) {
            info!(target: "rackmem", peer = %peer_id, address = text, "it is to be reached elsewhere than the rack file says");
            if let Some(address) = peer.whereabouts.address() {
                peer.end_unless_at(address);
            }
            if is_name {
                peer.whereabouts.is_suspect.store(true, Relaxed);
                self.finder.begin(&self.peers, self.reach);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wire::NodeId;

    use super::Reach;
    use crate::udp::{Naming, UdpConfig, UdpTransport};
    use crate::{Cause, PeerId, Terms};

    #[test]
    fn a_peer_is_believed_about_itself_and_the_switch_about_all() {
        let (me, other, third) = (PeerId::node(NodeId(0)), PeerId::node(NodeId(1)), PeerId::node(NodeId(2)));
        let listen = "127.0.0.1:0".parse().expect("an address");
        let peers = [other, third, PeerId::SWITCH]
            .map(|peer_id| (peer_id, "127.0.0.1:9".parse().expect("an address")));
        let peers =
            peers.map(|(peer_id, address): (_, std::net::SocketAddr)| (peer_id, address.into())).to_vec();
        let naming = Naming::default();
        let terms = Terms::default();
        let config = UdpConfig {
            me,
            listen,
            peers,
            unlisted: Vec::new(),
            naming,
            key: None,
            mtu: 1_500,
            block: 4096,
            coalescing: true,
            singles: false,
            terms,
        };
        let peer_id = UdpTransport::bind(&config).expect("loopback");
        let says = |from, about: PeerId, text: &[u8]| {
            let outcome = peer_id.on_whereabouts(from, &[&[about.to_wire()], text].concat());
            let peer = peer_id.peer(third).expect("it is configured");
            (outcome, peer.address().map(|address| address.port()))
        };
        assert_eq!(says(third, third, b"127.0.0.1:10"), (Ok(()), Some(10)));
        assert_eq!(says(PeerId::SWITCH, third, b"127.0.0.1:11"), (Ok(()), Some(11)));
        for (from, about, text) in [
            (other, third, &b"127.0.0.1:12"[..]),
            (PeerId::SWITCH, me, b"127.0.0.1:12"),
            (PeerId::SWITCH, third, b"127.0.0.1"),
            (PeerId::SWITCH, third, b"\xff:1"),
            (PeerId::SWITCH, PeerId::node(NodeId(9)), b"127.0.0.1:12"),
        ] {
            assert_eq!(says(from, about, text), (Err(Cause::Malformed), Some(11)), "{from} about {about}");
        }
        assert_eq!(peer_id.on_whereabouts(other, &[]), Err(Cause::Malformed));
        assert_eq!(peer_id.on_whereabouts(other, &[200, b'a']), Err(Cause::Malformed));
        // Without a key, nothing is sent away from this machine.
        assert_eq!(says(third, third, b"192.0.2.1:12"), (Ok(()), Some(11)));
    }

    #[test]
    fn addresses_of_the_other_kind_are_reached_from_a_socket_for_all_addresses_alone() {
        for (listen, address, reached) in [
            ("0.0.0.0:1", "10.0.0.1:2", Some("10.0.0.1:2")),
            ("0.0.0.0:1", "[::ffff:10.0.0.1]:2", Some("10.0.0.1:2")),
            ("10.0.0.9:1", "[fd00::1]:2", None),
            ("[::]:1", "10.0.0.1:2", Some("[::ffff:10.0.0.1]:2")),
            ("[::]:1", "[fd00::1]:2", Some("[fd00::1]:2")),
            ("[fd00::9]:1", "10.0.0.1:2", None),
        ] {
            let (listen, address) =
                (listen.parse().expect("an address"), address.parse().expect("an address"));
            let reached = reached.map(|reached| reached.parse().expect("an address"));
            assert_eq!(Reach { listen, loopback_only: false }.to(address), reached, "{listen} to {address}");
            assert_eq!(
                Reach { listen, loopback_only: true }.to_learned(address),
                None,
                "that is not loopback"
            );
        }
    }
}
