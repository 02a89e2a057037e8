//! Points as lines of comma-separated values.
//!
//! What must always hold: every line has as many fields as the first, and no field needs quotes.

use std::fmt::Write;

use crate::figure::measured::Measured;
use crate::figure::point::{Load, Point};

const HEAD: &str = "system,load,nodes,sharing,reads,locality,operations,seconds,mops,median_us,p99_us,hit_ratio,\
    packets_per_operation,home_packets_per_operation,bytes_per_operation,refused_per_operation,\
    evictions_per_operation,switch_entries,busiest_agent_0,busiest_agent_1,busiest_thread,busiest_uplink,\
    busiest_downlink,events,longest_us,least_share\n";

/// A line for each point.
pub fn points<'a>(measured: impl IntoIterator<Item = (&'a Point, &'a Measured)>) -> String {
    let mut text = HEAD.to_owned();
    for (point, it) in measured {
        let (load, nodes, sharing, reads, locality) = match point.load {
            Load::Micro(micro) => ("micro", 8, micro.sharing, micro.reads, micro.locality),
            Load::Failure(micro) => ("switch-failure", 8, micro.sharing, micro.reads, micro.locality),
            Load::Budget(micro) => ("micro", 8, micro.sharing, micro.reads, micro.locality),
            Load::Conflict(it) => ("one-block", it.nodes, 100, it.reads, 0),
            Load::StoreBudget(store) => ("key-value-store", store.nodes, 100, store.gets, 0),
            Load::Store(store) => ("key-value-store", store.nodes, 100, store.gets, 0),
            Load::Contend(it) => ("locks", it.blades, 100, if it.write { 0 } else { 100 }, 0),
            Load::Objects(_) => ("objects", 2, 100, 100, 0),
            Load::Chains(it) => ("chains", 4, 100, 100 - it.writes, 0),
            Load::ChainsFailure(it) => ("chains-switch-failure", 4, 100, 100 - it.writes, 0),
            Load::Program(it) | Load::Landing(it) | Load::Far(it) => (it.kernel.name(), it.nodes, 100, 0, 0),
            Load::Data(it) | Load::Requests(it) => (it.kernel.name(), 6, 100, 0, 0),
            Load::Buckets(it) => ("locked-store", it.blades, 100, it.gets, 0),
        };
        let system = serde_json::to_string(&point.subject).expect("a name can be written");
        let each = |count| it.per_operation(count);
        writeln!(
            text,
            "{},{load},{nodes},{sharing},{reads},{locality},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            system.trim_matches('"'),
            it.operations,
            it.seconds,
            it.mops(),
            it.median,
            it.slow,
            each(it.hits),
            each(it.packets),
            each(it.home_packets),
            each(it.bytes),
            each(it.refused),
            each(it.evictions),
            it.switch_entries,
            it.agent(0),
            it.agent(1),
            it.threads,
            it.uplinks,
            it.downlinks,
            it.events,
            it.longest,
            it.least
        )
        .expect("text grows");
    }
    text
}

/// A chart's lines: x, then a column for each.
pub fn chart(chart: &crate::figure::chart::Chart) -> String {
    let plain = |text: &str| text.replace(',', ";");
    let mut text = plain(&chart.x);
    for line in &chart.lines {
        write!(text, ",{}", plain(&line.name)).expect("text grows");
    }
    text.push('\n');
    for x in chart.abscissae() {
        text += &plain(&chart.called(x));
        for line in &chart.lines {
            text.push(',');
            if let Some(y) = line.at(x) {
                write!(text, "{y}").expect("text grows");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::chart::Chart;
    use crate::figure::point::{Micro, Store, Subject};

    #[test]
    fn every_line_has_as_many_fields_as_the_head() {
        let loads = [
            Load::Micro(Micro::sharing(20)),
            Load::Failure(Micro::sharing(60)),
            Load::Store(Store { nodes: 4, gets: 95 }),
        ];
        let measured = Measured { operations: 3, seconds: 0.5, ..Measured::default() };
        let points_: Vec<Point> = loads.map(|load| Point::new(Subject::HomeOnly, load)).into();
        let text = points(points_.iter().map(|point| (point, &measured)));
        let fields: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(fields, [26; 4], "{text}");
        assert!(text.contains("\nhome-only,micro,8,20,50,0,3,0.5,"), "{text}");
    }

    #[test]
    fn a_chart_has_a_column_for_each_line_and_gaps_where_one_has_no_value() {
        let of = Chart::new("c", "", "x", "y")
            .line("a", [(1.0, 2.0), (2.0, 0.1 + 0.2)])
            .line("b, c", [(2.0, 5.0)]);
        assert_eq!(chart(&of), "x,a,b; c\n1,2,\n2,0.30000000000000004,5\n");
    }
}
