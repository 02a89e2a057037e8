//! A server of a peer, on loopback or at a node of a network, with nothing saved to disk (etcd saves into a directory that goes with the command).
//!
//! A child of the command starts it and ends it: so it ends even if the command is killed.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

use rackmem::dataplane::network::{self, Network};
use serde::{Deserialize, Serialize};

use super::client::{Event, Order};
use super::protocol::Protocol;
use cli::processes::child::{Never, Reason, at_end};
use cli::processes::{Orders, Teller};

/// A server that does not listen after so long will not.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A server to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    pub(super) address: SocketAddr,
    /// Another network than the command's.
    network: Option<PathBuf>,
}

impl Server {
    /// An etcd of one member, if it is installed, with its data in this directory.
    pub(super) fn etcd(data: &Path) -> Option<Self> {
        let (program, address, peers) = (installed("etcd")?, unused_port()?, unused_port()?);
        let (clients, peers) = (format!("http://{address}"), format!("http://{peers}"));
        let data = data.display().to_string();
        let cluster = format!("default={peers}");
        let arguments = [
            "--data-dir",
            &data,
            "--listen-client-urls",
            &clients,
            "--advertise-client-urls",
            &clients,
            "--listen-peer-urls",
            &peers,
            "--initial-advertise-peer-urls",
            &peers,
            "--initial-cluster",
            &cluster,
            "--logger",
            "zap",
            "--log-level",
            "error",
        ];
        Some(Self { program, arguments: arguments.map(str::to_owned).into(), address, network: None })
    }

    /// The server that speaks this, if it is installed.
    pub(super) fn find(protocol: Protocol) -> Option<Self> {
        Self::at(protocol, unused_port()?, None)
    }

    /// The same at the first node of a network, where clients at the others reach it through the switch's ports.
    pub(super) fn across(protocol: Protocol, network: &Network) -> Option<Self> {
        const NODE_0: usize = 1;
        Self::at(protocol, network.addresses()[NODE_0], Some(network.paths().swap_remove(NODE_0)))
    }

    fn at(protocol: Protocol, address: SocketAddr, network: Option<PathBuf>) -> Option<Self> {
        let program = installed(program_of(protocol))?;
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let arguments: &[&str] = match protocol {
            Protocol::Redis => &[
                "--bind",
                &ip,
                "--protected-mode",
                "no",
                "--port",
                &port,
                "--save",
                "",
                "--appendonly",
                "no",
                "--daemonize",
                "no",
            ],
            // Which user it becomes only matters to root, for whom it refuses to run.
            Protocol::Memcached => &["-l", &ip, "-p", &port, "-U", "0", "-m", "1024", "-u", "nobody"],
        };
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Some(Self { program, arguments, address, network })
    }
}

/// This thread is in a network, if one is named, and so is what it starts.
pub(super) fn enter(network: Option<&Path>) -> Result<(), Reason> {
    let Some(network) = network else { return Ok(()) };
    network::enter(network).map_err(|error| format!("cannot enter a network of the command: {error}"))
}

/// Where a program is.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// A port that nobody has. Let go at once for the server: nobody else is likely to be given it meanwhile.
fn unused_port() -> Option<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?.local_addr().ok()
}

/// The program that speaks this, which is also the name of Debian's package.
pub(super) const fn program_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Redis => "redis-server",
        Protocol::Memcached => "memcached",
    }
}

impl cli::processes::Task for Server {
    const NAME: &'static str = "peer";
}

/// Runs the server until this process ends; says when it listens.
pub(crate) fn serve(server: Server, _: &Orders<Order>, teller: &Teller<Event>) -> Result<Never, Reason> {
    let name = server.program.display();
    enter(server.network.as_deref())?;
    let child = Command::new(&server.program)
        .args(&server.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    let child = Arc::new(Mutex::new(child));
    let ended = Arc::clone(&child);
    at_end(move || {
        let mut child = ended.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    });
    let began = Instant::now();
    while TcpStream::connect(server.address).is_err() {
        let status = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
        if let Ok(Some(status)) = status {
            return Err(format!("{name} ended at once: {status}"));
        }
        if began.elapsed() > TIMEOUT {
            return Err(format!("{name} does not listen on {}", server.address));
        }
        thread::sleep(Duration::from_millis(20));
    }
    teller.tell(Event::Connected);
    loop {
        thread::park();
    }
}
