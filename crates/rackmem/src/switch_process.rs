//! The switch of a rack of processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{SystemTime, UNIX_EPOCH};

use dataplane::{Claim, Ports};
use live::networked::{Ended, NetworkedSwitch, SwitchSetup, Watch};
use transport::udp::UdpTransport;
use transport::{Handshakes, PeerId, Transport};
use wire::NodeId;

use crate::config::{Config, ConfigError, ProcessConfig};
use crate::peers::PeerWatch;
use crate::rack::random_session;
use crate::rack_file::ListReader;

/// 2020-01-01, in seconds since 1970: epochs are numbered from the seconds since then.
const FIRST_SECOND: u64 = 1_577_836_800;

/// The switch of a rack of processes, with the coordinator that knows who is alive. It runs on the thread that calls
/// [`SwitchProcess::run`].
pub struct SwitchProcess {
    inner: NetworkedSwitch,
    handshakes: Option<Arc<Handshakes>>,
    nodes: usize,
    /// Where nodes may be added while it runs.
    list: Option<ListReader>,
}

/// Ends whoever reads the list, also if the switch panics: it would be waited for.
struct EndOf<'a> {
    ended: &'a AtomicBool,
    reader: Thread,
}

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        self.reader.unpark();
    }
}

impl SwitchProcess {
    /// A switch without entries, that waits for nodes. If nodes come that have been in a rack with a switch before,
    /// it recovers that rack.
    ///
    /// # Errors
    /// If the configuration is impossible, or the process may not have threads that are scheduled so.
    pub fn new(
        config: &Config,
        process: &ProcessConfig,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, ConfigError> {
        process.scheduling.check().map_err(ConfigError::Scheduling)?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // 32 bits of seconds end in 2156; a clock that is off only matters if no member is left to say the last epoch.
        let origin = u32::try_from(seconds.saturating_sub(FIRST_SECOND)).unwrap_or(u32::MAX / 2);
        config.check()?;
        let setup = SwitchSetup {
            rack: config.clone(),
            timing: process.timing,
            scheduling: process.scheduling,
            origin: wire::SwitchEpoch(origin),
            session: random_session(),
        };
        let handshakes = transport.handshakes();
        Ok(Self {
            inner: NetworkedSwitch::new(&setup, transport),
            handshakes,
            nodes: config.nodes,
            list: None,
        })
    }

    /// Nodes that call and are not listed are looked for there.
    #[must_use]
    pub(crate) fn with_list(self, list: ListReader) -> Self {
        Self { list: Some(list), ..self }
    }

    /// Its programs for blocks and locks run in the kernel, at these devices: every node is behind one of them, and takes single packets
    /// ([`transport::udp::UdpConfig::singles`]). With a claim they are there, too, when this process has gone.
    ///
    /// # Errors
    /// If the kernel or a device does not do what it takes.
    pub fn at_ports(
        self,
        config: &Config,
        udp: Arc<UdpTransport>,
        ports: &Ports,
        claim: Option<Claim>,
    ) -> Result<Self, dataplane::kernel::Error> {
        let kernel =
            dataplane::Kernel::attach(&config.switch_config(), &config.lock_config(), udp, ports, claim)?;
        Ok(Self { inner: self.inner.with_plane(Box::new(kernel)), ..self })
    }

    /// Where it leaves reports of how the rack is, for other threads.
    pub fn watch(&self) -> Watch {
        self.inner.watch()
    }

    /// What there is to tell about the nodes, for another thread to ask.
    pub fn peers(&self) -> PeerWatch {
        let nodes = (0..self.nodes).map(|id| NodeId(u16::try_from(id).expect("at most 64 nodes")));
        let expected: Vec<_> = nodes.map(PeerId::node).collect();
        PeerWatch::new(self.handshakes.clone(), move || expected.clone())
    }

    /// Works until told to stop, or until another process has taken over the programs that this one [kept](Claim).
    ///
    /// # Panics
    /// If the system gives no thread.
    pub fn run(&mut self, stop: &AtomicBool) -> Ended {
        let Self { inner, list: Some(list), .. } = self else { return self.inner.run(stop) };
        let (listing, ended) = (inner.listing(), AtomicBool::new(false));
        thread::scope(|scope| {
            let reader = thread::Builder::new().name("rack file".to_owned());
            let reader = reader.spawn_scoped(scope, || list.run(&listing, &ended));
            let reader = reader.expect("the system gives a thread");
            let _end = EndOf { ended: &ended, reader: reader.thread().clone() };
            inner.run(stop)
        })
    }
}
