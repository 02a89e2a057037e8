//! `rackmem switch`: the switch of a rack, and the coordinator that knows who is alive, as this process.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum as _;
use rackmem::rack_file::{DataPlane, Hook, Ports};
use rackmem::{Ended, RackFile, SwitchProcess};
use tracing::{info, warn};

use super::log::LogArgs;
use super::peers::News;
use super::status::{Answers, socket};
use super::{LocationArgs, metrics, owner, read, runtime};
use crate::fault::Fault;
use crate::interrupt::Interrupt;

const EXAMPLES: &str = "\
Examples:
  rackmem switch                                    the switch of the rack in ./rack.toml
  rackmem switch --config lab.toml --metrics 127.0.0.1:9400
  rackmem switch --port eth1 --port eth2            its program in the kernel, at these ports (docs/kernel.md)
  rackmem switch --keep /sys/fs/bpf/rackmem         the same, and packets go on when this process dies
The stage map of the switch program: rackmem pipeline";

/// Which rack, and who may ask how it is.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The rack file
    #[arg(long, value_name = "FILE", default_value = "rack.toml")]
    config: PathBuf,

    #[command(flatten)]
    location: LocationArgs,

    /// Answer HTTP here: /metrics for Prometheus, /status for `rackmem status`. Whoever reaches the address may ask
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,

    /// Where its coherence program runs, if not where the rack file says
    #[arg(long, value_enum, value_name = "WHERE")]
    data_plane: Option<Where>,

    /// A device at which nodes are, for a program in the kernel, in place of those in the rack file; once for each
    #[arg(long = "port", value_name = "DEVICE")]
    ports: Vec<String>,

    /// Where it is at each port, in place of what the rack file says; if neither says, where it is cheaper
    #[arg(long, value_enum)]
    hook: Option<HookAt>,

    /// Keep that program in this directory of a file system of bpf, for when this process dies; take over what is there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    log: LogArgs,

    /// End when standard input closes
    #[arg(long, hide = true)]
    owned: bool,
}

/// Where the coherence program of the switch runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Where {
    /// In this process
    Process,
    /// In the kernel, at the ports (as root)
    Kernel,
}

/// Where the program sees what comes in at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum HookAt {
    /// At the traffic control
    Tc,
    /// In the device's driver, which has to know how
    Xdp,
}

impl From<HookAt> for Hook {
    fn from(hook: HookAt) -> Self {
        match hook {
            HookAt::Tc => Self::TrafficControl,
            HookAt::Xdp => Self::Driver,
        }
    }
}

impl Args {
    /// Where the program runs: as the flags say, or the file.
    fn data_plane(&self, file: &RackFile) -> Result<DataPlane, Fault> {
        let in_kernel = match self.data_plane {
            Some(given) => given == Where::Kernel,
            None => *file.data_plane() != DataPlane::Process,
        };
        if !in_kernel {
            let port = self.ports.first().map(|port| format!("--port {port}"));
            let keep = self.keep.as_ref().map(|keep| format!("--keep {}", keep.display()));
            let hook =
                self.hook.and_then(|hook| Some(format!("--hook {}", hook.to_possible_value()?.get_name())));
            return match port.or(hook).or(keep) {
                None => Ok(DataPlane::Process),
                Some(flag) => Err(Fault::usage(format_args!(
                    "{flag} is for a program in the kernel, and this switch's runs in its process: add --data-plane kernel, or leave the flag out"
                ))),
            };
        }
        let mut ports = Ports { devices: self.ports.clone(), hook: self.hook.map(Hook::from) };
        let mut keep = self.keep.clone();
        if let DataPlane::Kernel { ports: of_file, keep: kept } = file.data_plane() {
            if ports.devices.is_empty() {
                ports.devices.clone_from(&of_file.devices);
            }
            ports.hook = ports.hook.or(of_file.hook);
            keep = keep.or_else(|| kept.clone());
        }
        Ok(DataPlane::Kernel { ports, keep })
    }
}

/// Runs the command: until Ctrl-C, or a polite kill.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    args.log.begin("switch")?;
    let file = read(&args.config)?;
    let stop = Interrupt::listen()?;
    if args.owned {
        owner::watch(&stop)?;
    }
    runtime::prepare(&file.runtime)?;
    let data_plane = args.data_plane(&file)?;
    let mut switch = SwitchProcess::open_in(&file, &args.location.read()?, &data_plane)
        .map_err(|error| Fault::failed(format_args!("the switch of rack `{}`: {error}", file.name)))?;
    let answers = Answers::new(&file, switch.watch());
    let status = socket::serve(&file, answers.clone())?;
    let http = args.metrics.or(file.switch_metrics).map(|address| metrics::serve_rack(address, answers));
    http.transpose()?;
    let (rack, nodes, transport) = (file.name.as_str(), file.config.nodes, file.transport().name());
    let news = News::of(None, args.owned).go_on(switch.peers(), stop.clone())?;
    let kept = match &data_plane {
        DataPlane::Kernel { keep, .. } => keep.clone(),
        DataPlane::Process => None,
    };
    let data_plane = data_plane.name();
    info!(target: "rackmem", rack, nodes, transport, data_plane, "serving; Ctrl-C ends it");
    let ended = switch.run(stop.flag());
    match &kept {
        Some(directory) if ended == Ended::Told && !args.owned => info!(
            target: "rackmem", rack,
            "ended, as it was told to; its program stays at the ports: take it off with rm -r {}", directory.display()
        ),
        _ if ended == Ended::Told => info!(target: "rackmem", rack, "ended, as it was told to"),
        _ => warn!(target: "rackmem", rack, "ended: another process has taken its program over"),
    }
    stop.request();
    // Whoever comes next waits for the address, and then makes a socket of this name.
    drop(status);
    drop(switch);
    // It cannot have panicked without having said so.
    drop(news.join());
    if args.owned {
        owner::clean_up(&file, &args.config);
    } else {
        runtime::remove_if_empty(&file.runtime);
    }
    Ok(())
}
