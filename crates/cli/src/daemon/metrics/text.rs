//! The metrics, each with its name, its meaning and its labels, in the text format of OpenMetrics.
//!
//! What must always hold: what is described in `docs/running.md` is what is here.

use rackmem::attach::AttachCounts;
use rackmem::{NodeId, WatchedLock};
use status::document::{Chains, Node, NodeCounts, Status, Transport};

use super::locks;
use super::page::{MetricKind, Page};

/// The page of a whole rack.
pub(super) fn rack(status: &Status) -> String {
    let mut page = Page::default();
    let (switch, membership) = (&status.switch, &status.membership);
    page.gauge(
        "rackmem_rack_running",
        "1 while the rack is in an epoch.",
        u64::from(status.phase == "running"),
    );
    page.gauge(
        "rackmem_rack_epoch",
        "The epoch; a greater one begins when who is up changes.",
        status.epoch.into(),
    );
    page.gauge("rackmem_directory_entries", "Directory entries that the switch has.", switch.entries);
    page.gauge(
        "rackmem_directory_entries_used",
        "Directory entries of the switch in use.",
        switch.entries_used,
    );
    page.counter(
        "rackmem_switch_received",
        "Coherence packets that reached the switch.",
        switch.packets_received,
    );
    page.counter("rackmem_switch_sent", "Coherence packets that the switch sent.", switch.packets_sent);
    page.counter(
        "rackmem_switch_dropped",
        "Coherence packets that the switch had no use for.",
        switch.packets_dropped,
    );
    for (program, counts) in
        switch.kernel.iter().flat_map(|kernel| [("blocks", &kernel.blocks), ("locks", &kernel.locks)])
    {
        for (what, count) in counts {
            let labels = [("program", program), ("what", what)];
            let help = "Datagrams that a program in the kernel took, or dropped, by cause.";
            page.add(MetricKind::Counter, "rackmem_kernel_datagrams", help, &labels, *count);
        }
    }
    let steering = &switch.steering;
    for (name, help, count) in [
        ("rackmem_steering_carried", "Packets of chains that the switch forwarded.", steering.carried),
        ("rackmem_steering_steered", "Appends that the switch sent to the tail.", steering.steered),
        ("rackmem_steering_moved", "Of those, appends that would have gone elsewhere.", steering.moved),
        ("rackmem_steering_unsteered", "Appends that passed as they were.", steering.unsteered),
        ("rackmem_steering_refused", "Appends that were answered as refused.", steering.refused),
        ("rackmem_steering_doubted", "Appends of which nobody knew what became.", steering.doubted),
        ("rackmem_steering_reads", "Reads that the switch sent to the tail.", steering.reads),
        (
            "rackmem_steering_reads_ahead",
            "Of those, reads to a tail whose append was not acknowledged.",
            steering.reads_ahead,
        ),
        (
            "rackmem_steering_reads_turned",
            "Answers to reads that became reads again: that append was still not acknowledged, or had failed.",
            steering.reads_turned,
        ),
        (
            "rackmem_steering_reads_refused",
            "Answers to reads of connections from before a restart of the switch, which were refused.",
            steering.reads_refused,
        ),
        (
            "rackmem_steering_preloaded",
            "Tails that the switch was told after its restart.",
            steering.preloaded,
        ),
        ("rackmem_steering_waited", "Acknowledgements that waited for another one.", steering.waited),
    ] {
        page.counter(name, help, count);
    }
    for memory in &status.memories {
        let labels = [("near", memory.near.to_string())];
        let help = "Nodes that have a memory with copies whole, by the node that it is near.";
        page.add(MetricKind::Gauge, "rackmem_memory_copies", help, &labels, memory.kept_by.len() as u64);
    }
    if !status.memories.is_empty() {
        let help = "Copies of such memories that are missing.";
        page.gauge("rackmem_memory_copies_missing", help, status.copies_missing());
    }
    page.counter("rackmem_epochs", "Epochs that this switch has begun.", membership.epochs);
    page.counter(
        "rackmem_coordinator_stalls",
        "Times that the switch's process was late for itself.",
        membership.stalls,
    );
    page.counter(
        "rackmem_coordinator_cut_off",
        "Times that the switch heard no node at all for the timeout.",
        membership.cut_off,
    );
    for (why, count) in &membership.ended {
        page.add(
            MetricKind::Counter,
            "rackmem_incarnations_ended",
            "Incarnations of nodes that have ended, by why.",
            &[("why", why)],
            *count,
        );
    }
    transport(&mut page, "switch", &switch.transport);
    for node in &status.nodes {
        let labels = [("node", node.id.to_string())];
        let help = "Memories with copies that hold a node which drains: too few others have them.";
        if let Some(draining) = &node.draining {
            page.add(
                MetricKind::Gauge,
                "rackmem_node_draining",
                help,
                &labels,
                draining.memories_missing as u64,
            );
        }
        if let Some(silence) = node.silence_ns {
            page.add_float(
                "rackmem_node_silence_seconds",
                "How long the node was not heard.",
                &labels,
                silence as f64 / 1e9,
            );
        }
        page.add(
            MetricKind::Gauge,
            "rackmem_node_incarnation",
            "The node's last incarnation; 0: it was never there.",
            &labels,
            node.incarnation.into(),
        );
        add_node(&mut page, node);
    }
    page.finish()
}

/// The page of one node. Only the node itself knows of the applications that are attached to it, and of locks.
pub(super) fn node(
    node: &Node,
    applications: Option<AttachCounts>,
    watched: Vec<(NodeId, WatchedLock)>,
) -> String {
    let mut page = Page::default();
    add_node(&mut page, node);
    if let Some(counts) = applications {
        add_applications(&mut page, node.id, &counts);
    }
    locks::add(&mut page, watched);
    page.finish()
}

fn add_node(page: &mut Page, node: &Node) {
    let id = node.id.to_string();
    let labels = [("node", id.as_str())];
    page.add(
        MetricKind::Gauge,
        "rackmem_node_up",
        "1 while the node is in the rack.",
        &labels,
        u64::from(node.up),
    );
    let Some(counts) = &node.counts else { return };
    let help = "1 while the node rebuilds its directory after somebody died.";
    page.add(MetricKind::Gauge, "rackmem_node_recovering", help, &labels, u64::from(counts.recovering));
    let help = "Bytes of the node's memory in allocations.";
    page.add(MetricKind::Gauge, "rackmem_node_memory_used_bytes", help, &labels, counts.memory_live_bytes);
    let help = "Bytes that the node's process has mapped.";
    page.add(MetricKind::Gauge, "rackmem_node_mapped_bytes", help, &labels, counts.mapped_bytes);
    for (name, help, count) in node_counters(counts) {
        page.add(MetricKind::Counter, name, help, &labels, count);
    }
    for (cause, count) in &counts.dropped {
        let labels = [("node", id.as_str()), ("cause", cause)];
        let help = "Packets that the node's machines had no use for, by cause.";
        page.add(MetricKind::Counter, "rackmem_node_dropped", help, &labels, *count);
    }
    for (name, help, count) in [
        ("rackmem_nic_sent", "Packets that the node's NIC has sent.", counts.nic.sent),
        ("rackmem_nic_received", "Packets that have come for it.", counts.nic.received),
        (
            "rackmem_nic_duplicates",
            "Requests that came again and were answered again.",
            counts.nic.duplicates,
        ),
        ("rackmem_nic_repeated", "Times that packets were sent again.", counts.nic.repeated),
        ("rackmem_nic_broken", "Connections that failed and began anew.", counts.nic.broken),
    ] {
        page.add(MetricKind::Counter, name, help, &labels, count);
    }
    for (cause, count) in &counts.nic.dropped {
        let labels = [("node", id.as_str()), ("cause", cause)];
        page.add(
            MetricKind::Counter,
            "rackmem_nic_dropped",
            "Packets that it dropped, by cause.",
            &labels,
            *count,
        );
    }
    chains(page, &id, &counts.chains);
    transport(page, &format!("node {id}"), &counts.transport);
}

/// Stores of chains whose metadata servers the node has.
fn chains(page: &mut Page, node: &str, chains: &Chains) {
    let labels = [("node", node)];
    for (name, help, count) in [
        ("rackmem_chains_stores", "Stores of chains whose metadata servers the node has.", chains.stores),
        ("rackmem_chains_keys", "Keys in them.", chains.keys),
        ("rackmem_chains_made_bytes", "Bytes that were ever given to clients.", chains.made_bytes),
        ("rackmem_chains_free_bytes", "Bytes of those that are free.", chains.free_bytes),
        (
            "rackmem_chains_missing",
            "Copies of parts of stores, and backups of their metadata servers, that have died and were not replaced.",
            chains.missing,
        ),
        ("rackmem_chains_missing_bytes", "Bytes that those copies had.", chains.missing_bytes),
    ] {
        page.add(MetricKind::Gauge, name, help, &labels, count);
    }
    for (name, help, count) in [
        ("rackmem_chains_calls", "Calls of clients.", chains.calls),
        ("rackmem_chains_appends", "Appends that the servers were told of.", chains.appends),
        ("rackmem_chains_walked", "Entries that the servers looked at themselves.", chains.walked),
        ("rackmem_chains_swept", "Clients that died, and whose slots came back.", chains.swept),
        ("rackmem_chains_recopied", "Copies of parts of stores that were made anew.", chains.recopied),
        ("rackmem_chains_recopied_bytes", "Bytes that were copied for that.", chains.recopied_bytes),
    ] {
        page.add(MetricKind::Counter, name, help, &labels, count);
    }
}

fn add_applications(page: &mut Page, node: u16, counts: &AttachCounts) {
    let labels = [("node", node.to_string())];
    let help = "Threads of applications that are attached to the node.";
    page.add(MetricKind::Gauge, "rackmem_applications_attached", help, &labels, counts.attached);
    for (name, help, count) in [
        (
            "rackmem_applications_accepted",
            "Threads of applications that ever were attached.",
            counts.accepted,
        ),
        ("rackmem_applications_operations", "Operations done for applications.", counts.operations),
    ] {
        page.add(MetricKind::Counter, name, help, &labels, count);
    }
    for (why, count) in [("malformed", counts.malformed), ("late", counts.late), ("refused", counts.refused)]
    {
        let labels = [("node", node.to_string()), ("why", why.to_owned())];
        let help = "Connections of applications that the node has ended, by why.";
        page.add(MetricKind::Counter, "rackmem_applications_ended", help, &labels, count);
    }
}

fn node_counters(counts: &NodeCounts) -> [(&'static str, &'static str, u64); 13] {
    [
        ("rackmem_node_hits", "Accesses that found their block in the cache.", counts.hits),
        ("rackmem_node_misses", "Accesses that needed a coherence event.", counts.misses),
        ("rackmem_node_refused", "Coherence events that were refused and tried again.", counts.refused),
        ("rackmem_node_retransmissions", "Packets sent again after a time-out.", counts.retransmissions),
        ("rackmem_node_invalidations", "Copies given up for other nodes' writes.", counts.invalidations),
        ("rackmem_node_provided", "Blocks given to other nodes.", counts.provided),
        ("rackmem_node_peeked", "Reads of other nodes answered where the block is.", counts.peeked),
        ("rackmem_node_home_packets", "Packets that the home agent received and sent.", counts.home_packets),
        ("rackmem_node_faults", "Accesses to mapped memory that waited.", counts.faults),
        ("rackmem_node_faults_in_place", "Those that their threads resolved.", counts.faults_in_place),
        ("rackmem_node_blocks_ahead", "Blocks that came along with faults.", counts.blocks_ahead),
        ("rackmem_node_refilled_bytes", "Bytes that came for missing copies.", counts.refilled_bytes),
        ("rackmem_node_lost_blocks", "Blocks of this home whose only current copy died.", counts.lost_blocks),
    ]
}

fn transport(page: &mut Page, place: &str, transport: &Transport) {
    let labels = [("place", place)];
    for (name, help, count) in [
        ("rackmem_transport_sent", "Messages sent.", transport.sent),
        ("rackmem_transport_sent_bytes", "Their bytes, as they travelled.", transport.sent_bytes),
        ("rackmem_transport_received", "Messages received.", transport.received),
        ("rackmem_transport_received_bytes", "Their bytes.", transport.received_bytes),
        ("rackmem_transport_wake_ups", "Peers woken by a system call.", transport.wake_ups),
    ] {
        page.add(MetricKind::Counter, name, help, &labels, count);
    }
    for (cause, count) in &transport.dropped {
        let labels = [("place", place), ("cause", cause)];
        page.add(
            MetricKind::Counter,
            "rackmem_transport_dropped",
            "Messages dropped, by cause.",
            &labels,
            *count,
        );
    }
}

#[cfg(test)]
mod tests {
    use rackmem::{Config, Rack};
    use status::document::InKernel;

    use super::*;

    #[test]
    fn what_programs_in_the_kernel_counted_is_told_by_program_and_cause() {
        let config = Config { nodes: 1, cache: 1 << 20, memory: 1 << 20, ..Config::default() };
        let mut status = status::of_embedded(&Rack::embedded(config).unwrap()).unwrap();
        assert!(!rack(&status).contains("rackmem_kernel_datagrams"));
        let counts = |what: &str, count| [(what.to_owned(), count)].into();
        let (blocks, locks) = (counts("taken", 7), counts("wrong_tag", 1));
        status.switch.kernel = Some(InKernel { ports: Vec::new(), kept: None, blocks, locks });
        let page = rack(&status);
        for sample in [r#"{program="blocks",what="taken"} 7"#, r#"{program="locks",what="wrong_tag"} 1"#] {
            assert!(page.contains(&format!("rackmem_kernel_datagrams_total{sample}")), "{page}");
        }
    }
}
