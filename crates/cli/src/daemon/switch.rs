//! `rackmem switch`: the switch of a rack, and the coordinator that knows who is alive, as this process.

use std::net::SocketAddr;
use std::path::PathBuf;

use rackmem::SwitchProcess;

use super::peers::News;
use super::status::{Answers, socket};
use super::{listen, metrics, owner, read, runtime};
use crate::fault::Fault;

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

    /// Listen here and not at the address in the rack file, to which the nodes send all the same
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,

    /// Answer HTTP here: /metrics for Prometheus, /status for `rackmem status`. Whoever reaches the address may ask
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,

    /// End when standard input closes
    #[arg(long, hide = true)]
    owned: bool,
}

/// Runs the command: until Ctrl-C, or a polite kill.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let file = read(&args.config)?;
    let stop = listen()?;
    if args.owned {
        owner::watch(&stop)?;
    }
    runtime::prepare(&file.runtime)?;
    let mut switch = SwitchProcess::open(&file, args.listen)
        .map_err(|error| Fault::failed(format_args!("the switch of rack `{}`: {error}", file.name)))?;
    let answers = Answers::new(&file, switch.watch());
    let status = socket::serve(&file, answers.clone())?;
    let http = args.metrics.or(file.switch_metrics).map(|address| metrics::serve_rack(address, answers));
    http.transpose()?;
    let news = News::of(format!("switch of rack `{}`", file.name), args.owned);
    let news = news.go_on(switch.peers(), stop.clone())?;
    if !args.owned {
        say!("switch of rack `{}`: serving {} nodes; Ctrl-C ends it", file.name, file.config.nodes);
    }
    switch.run(stop.flag());
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
