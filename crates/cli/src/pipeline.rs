//! `rackmem pipeline`: the resource use of the switch program, stage by stage, against the chip's budget.
//!
//! The map comes from the program that the racks run: it is built, checked and measured here, not described.

use serde_json::{Value, json};
use switch::coherence::{Switch, SwitchConfig};
use switch::locks::{Directory, DirectoryConfig};
use switch::pipeline::StageMap;
use switch::pipeline::stage_map::StageUse;
use wire::{Copyset, LockEnd, SwitchEpoch};

use crate::fault::Fault;
use crate::output;

/// Print the stage map of the switch program.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Nodes of the rack
    #[arg(long, value_name = "N", default_value_t = 64)]
    nodes: usize,

    /// Directory entries
    #[arg(long, value_name = "N", default_value_t = SwitchConfig::DEFAULT_ENTRIES)]
    switch_entries: usize,

    /// The program of the lock directory instead, with so many entries
    #[arg(long, value_name = "N", conflicts_with = "switch_entries")]
    locks: Option<usize>,

    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    if let Some(entries) = args.locks {
        if !(1..=Copyset::NODES).contains(&args.nodes) {
            return Err(Fault::usage(format_args!(
                "locks for {} nodes: sets of nodes have {} bits; choose another --nodes",
                args.nodes,
                Copyset::NODES
            )));
        }
        let config =
            DirectoryConfig { at: LockEnd::Switch, nodes: args.nodes, entries, epoch: SwitchEpoch(0) };
        let directory = Directory::new(&config).map_err(|error| {
            Fault::usage(format_args!(
                "locks for {} nodes and {entries} entries do not fit the chip: {error}\n  \
                 choose other --nodes or --locks",
                args.nodes
            ))
        })?;
        return show(args, &directory.stage_map());
    }
    let config = SwitchConfig { entries: args.switch_entries, ..SwitchConfig::for_nodes(args.nodes) };
    let switch = Switch::new(&config).map_err(|error| {
        Fault::usage(format_args!(
            "FlowCC for {} nodes and {} directory entries does not fit the chip: {error}\n  \
             choose other --nodes or --switch-entries",
            args.nodes, args.switch_entries
        ))
    })?;
    show(args, &switch.stage_map())
}

fn show(args: &Args, map: &StageMap) -> Result<(), Fault> {
    if args.json { output::print_json(&document(map)) } else { output::print(&map.to_string()) }
}

/// The map as a document. Sizes are in bytes unless they say bits, blocks or rows.
fn document(map: &StageMap) -> Value {
    let (budget, totals) = (&map.budget, &map.totals);
    json!({
        "command": "pipeline",
        "version": env!("CARGO_PKG_VERSION"),
        "program": map.program,
        "budget": {
            "stages": budget.stages,
            "sram_bytes": budget.bytes(),
            "sram_blocks": budget.sram_blocks,
            "sram_blocks_per_stage": budget.sram_blocks_per_stage,
            "sram_block_bytes": budget.sram_block_bytes,
            "tcam_blocks_per_stage": budget.tcam_blocks_per_stage,
            "phv_bits": budget.phv_bits,
        },
        "totals": {
            "stages": totals.stages,
            "stages_with_arrays": totals.stages_with_arrays,
            "register_bytes": totals.register_bytes,
            "sram_blocks": totals.sram_blocks,
            "tcam_blocks": totals.tcam_blocks,
            "phv_bits": totals.phv_bits,
        },
        "stages": map.stages.iter().enumerate().map(|(number, stage)| stage_document(number, stage)).collect::<Vec<_>>(),
        "around": map.around.map(|around| json!({
            "header_fields_parsed": around.parsed,
            "lists_parsed": around.lists,
            "conditions": around.conditions,
            "computations": around.computations,
            "fields_rewritten": around.rewritten,
            "unicasts": around.unicasts,
            "multicast_groups": around.groups,
            "fields_rewritten_in_copies": around.rewritten_in_copies,
            "choices": around.choices,
            "recirculations": around.recirculations,
        })),
        "passes": map
            .passes
            .iter()
            .map(|passes| json!({ "packet": passes.packet, "passes": passes.passes }))
            .collect::<Vec<_>>(),
    })
}

fn stage_document(number: usize, stage: &StageUse) -> Value {
    let arrays: Vec<Value> = stage
        .arrays
        .iter()
        .map(|array| {
            json!({
                "name": array.name,
                "cell_bits": array.bits,
                "entries": array.entries,
                "bytes": array.bytes,
                "sram_blocks": array.sram_blocks,
                "alu_programs": array.programs,
            })
        })
        .collect();
    let tables: Vec<Value> = stage
        .tables
        .iter()
        .map(|table| {
            json!({
                "name": table.name,
                "key_bits": table.key_bits,
                "rows": table.rows,
                "ternary": table.ternary,
                "sram_blocks": table.sram_blocks,
                "tcam_blocks": table.tcam_blocks,
            })
        })
        .collect();
    json!({
        "stage": number,
        "sram_blocks": stage.sram_blocks,
        "tcam_blocks": stage.tcam_blocks,
        "arrays": arrays,
        "tables": tables,
        "computes": stage.computes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_adds_up_to_its_totals() {
        let map = Switch::new(&SwitchConfig::for_nodes(8)).unwrap().stage_map();
        let document = document(&map);
        let stages = document["stages"].as_array().unwrap();
        let bytes: u64 = stages
            .iter()
            .flat_map(|stage| stage["arrays"].as_array().unwrap())
            .map(|array| array["bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(document["totals"]["register_bytes"], Value::from(bytes));
        assert_eq!(document["budget"]["stages"], Value::from(stages.len()));
        // Invalidations, and whoever else is told.
        assert!(document["around"]["multicast_groups"].as_u64() > Some(0), "{document}");
        assert!(document["around"]["recirculations"].as_u64() == Some(2), "an UNLOCK and an ADD: {document}");
        assert!(!document["passes"].as_array().unwrap().is_empty());
    }

    #[test]
    fn a_lock_directory_that_cannot_be_is_a_usage_mistake() {
        let run = |nodes, locks| run(&Args { nodes, switch_entries: 1, locks: Some(locks), json: false });
        for (nodes, locks) in [(0, 8), (65, 8), (8, 0), (8, 1 << 30)] {
            assert!(matches!(run(nodes, locks), Err(Fault::Usage(_))), "{nodes} nodes, {locks} locks");
        }
    }
}
