//! `rackmem switch`: the switch of a rack, and the coordinator that knows who is alive, as this process.

use std::net::SocketAddr;
use std::path::PathBuf;

use rackmem::SwitchProcess;
use tracing::info;

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

    #[command(flatten)]
    log: LogArgs,

    /// End when standard input closes
    #[arg(long, hide = true)]
    owned: bool,
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
    let mut switch = SwitchProcess::open(&file, &args.location.read()?)
        .map_err(|error| Fault::failed(format_args!("the switch of rack `{}`: {error}", file.name)))?;
    let answers = Answers::new(&file, switch.watch());
    let status = socket::serve(&file, answers.clone())?;
    let http = args.metrics.or(file.switch_metrics).map(|address| metrics::serve_rack(address, answers));
    http.transpose()?;
    let (rack, nodes, transport) = (file.name.as_str(), file.config.nodes, file.transport().name());
    let news = News::of(None, args.owned).go_on(switch.peers(), stop.clone())?;
    info!(target: "rackmem", rack, nodes, transport, "serving; Ctrl-C ends it");
    switch.run(stop.flag());
    info!(target: "rackmem", rack, "ended, as it was told to");
    drop((switch, status));
    // It cannot have panicked without having said so.
    drop(news.join());
    if args.owned {
        owner::clean_up(&file, &args.config);
    } else {
        runtime::remove_if_empty(&file.runtime);
    }
    Ok(())
}
