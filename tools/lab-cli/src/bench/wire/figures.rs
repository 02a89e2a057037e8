//! What Concordia's Figures 9, 10 and 11 show, on a rack over wires: throughput and what homes send and receive, against the
//! share of accesses to shared memory, and of reads.

use std::fs;
use std::path::Path;

use lab::figure::chart::Chart;
use lab::output::csv;

use super::Args;
use super::apart::{Load, Racks};
use super::report::Apart;
use crate::bench::rounds::Against;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::say;

/// As in the paper, but for what is hits alone here.
const SHARING: [u64; 5] = [20, 40, 60, 80, 100];
const READS: [u64; 4] = [0, 25, 50, 75];

/// Measures, and writes the charts.
pub(super) fn write(args: &Args, folder: &Path, interrupt: &Interrupt) -> Result<(), Fault> {
    output::prepare_directory("--figures", folder)?;
    let mut racks = Racks::start(interrupt)?;
    let mut measure = |loads: &mut dyn Iterator<Item = (u64, Load)>| {
        let one = |(x, load): (u64, Load)| {
            let apart = racks.measure(args, load, interrupt)?;
            say!("{} % shared, {} % read: {:.2}x", load.sharing, load.reads, apart.rate.ratio);
            Ok((x as f64, apart))
        };
        loads.map(one).collect::<Result<Vec<_>, Fault>>()
    };
    let sharing = measure(&mut SHARING.into_iter().map(|sharing| (sharing, Load::half(sharing))))?;
    let mut reads = |sharing| measure(&mut READS.into_iter().map(|reads| (reads, Load { sharing, reads })));
    let (light, heavy) = (reads(20)?, reads(60)?);
    let rate = |apart: &Apart| scaled(apart.rate, 1e3);
    let (shared, read, thousands) = ("sharing ratio (%)", "read ratio (%)", "thousand operations/s");
    let charts = [
        chart("live-9", "Throughput against sharing", (shared, thousands), &sharing, rate),
        chart(
            "live-10",
            "Packets at homes",
            (shared, "packets sent and received per operation"),
            &sharing,
            |apart| apart.messages,
        ),
        chart("live-11a", "Throughput against reads, 20 % sharing", (read, thousands), &light, rate),
        chart("live-11b", "Throughput against reads, 60 % sharing", (read, thousands), &heavy, rate),
    ];
    for chart in &charts {
        put(&folder.join(format!("{}.csv", chart.name)), csv::chart(chart))?;
        draw(folder, chart)?;
    }
    say!("written to {}", folder.display());
    Ok(())
}

fn scaled(of: Against, by: f64) -> Against {
    Against { yardstick: of.yardstick / by, measured: of.measured / by, ..of }
}

/// Both racks in one number of each point.
fn chart(
    name: &str,
    title: &str,
    (x, y): (&str, &str),
    points: &[(f64, Apart)],
    number: impl Fn(&Apart) -> Against,
) -> Chart {
    let line =
        |of: fn(Against) -> f64| points.iter().map(|(x, apart)| (*x, of(number(apart)))).collect::<Vec<_>>();
    Chart::new(name, title, x, y)
        .line("directory in the switch", line(|of| of.measured))
        .line("directory at the homes", line(|of| of.yardstick))
}

#[cfg(feature = "plots")]
fn draw(folder: &Path, chart: &Chart) -> Result<(), Fault> {
    put(&folder.join(format!("{}.svg", chart.name)), lab::output::plot::svg(chart))
}

#[cfg(not(feature = "plots"))]
fn draw(_: &Path, chart: &Chart) -> Result<(), Fault> {
    say!("{}: no drawing in this build (build with --features plots)", chart.name);
    Ok(())
}

fn put(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Fault> {
    fs::write(path, contents)
        .map_err(|error| Fault::failed(format_args!("cannot write {}: {error}", path.display())))
}
