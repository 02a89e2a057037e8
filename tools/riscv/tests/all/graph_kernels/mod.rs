//! The graph kernels, on graphs that are spread over many nodes, against the same done by one thread without any of it: on simulated
//! nodes, in one address space, and where it is installed with a real OpenSHMEM on the machine that tests run on.
//!
//! What must always hold: what a kernel prints depends on the graph alone, not on how many nodes share it, nor on who runs when.

mod reference;

use reference::{Graph, GraphKind};
use riscv::machine::{Console, Machine, MachineConfig, Schedule};
use riscv::prebuilt::{GRAPH, GRAPH_LOCAL};
use riscv::program::Program;

fn printed(file: &[u8], arguments: &[&str], config: &MachineConfig) -> String {
    let program = Program::from_elf(file).unwrap();
    let arguments = ["graph"].iter().chain(arguments).map(ToString::to_string).collect();
    let mut machine = Machine::new(program.with_arguments(arguments), config).unwrap();
    let mut console = Console::default();
    machine.run(&mut console).unwrap();
    String::from_utf8(console.bytes).unwrap()
}

/// Each kernel with its result.
fn results(graph: &Graph) -> [(&'static str, u64); 6] {
    let from = graph.source();
    [
        ("bfs", graph.sum(&graph.depths(from))),
        ("sssp", graph.sum(&graph.distances(from))),
        ("pr", graph.sum(&graph.ranks())),
        ("cc", graph.sum(&graph.components())),
        ("bc", graph.sum(&graph.dependencies(from))),
        ("tc", graph.triangles()),
    ]
}

#[track_caller]
fn agrees(kind: GraphKind, scale: u32, degree: u64, nodes: usize, schedule: Schedule) {
    agree(GRAPH, (kind, scale, degree), nodes, schedule);
}

#[track_caller]
fn agree(file: &[u8], (kind, scale, degree): (GraphKind, u32, u64), nodes: usize, schedule: Schedule) {
    let graph = Graph::new(kind, scale, degree);
    let config = MachineConfig { schedule, memory: 8 << 20, ..MachineConfig::nodes(nodes) };
    for (kernel, result) in results(&graph) {
        let arguments = [kernel, kind.name(), &scale.to_string(), &degree.to_string()];
        let said = printed(file, &arguments, &config);
        assert_eq!(said, right(kernel, result, (kind, scale), nodes, &graph), "{schedule:?}");
    }
}

/// What a kernel prints.
fn right(kernel: &str, result: u64, (kind, scale): (GraphKind, u32), nodes: usize, graph: &Graph) -> String {
    let (vertices, edges) = (1_u64 << scale, graph.edges());
    format!("{kernel} {}: {nodes} PEs, {vertices} vertices, {edges} edges: {result:x}\n", kind.name())
}

#[test]
fn kernels_on_kronecker_graphs_give_what_one_thread_gives() {
    agrees(GraphKind::Kronecker, 7, 8, 1, Schedule::Turns);
    agrees(GraphKind::Kronecker, 7, 8, 6, Schedule::Turns);
}

#[test]
fn kernels_on_uniform_graphs_give_what_one_thread_gives() {
    agrees(GraphKind::Uniform, 7, 3, 1, Schedule::Turns);
    agrees(GraphKind::Uniform, 7, 3, 6, Schedule::Turns);
}

#[test]
fn kernels_give_the_same_at_another_scale() {
    agrees(GraphKind::Kronecker, 9, 8, 6, Schedule::Turns);
    agrees(GraphKind::Uniform, 9, 4, 4, Schedule::Turns);
}

#[test]
fn kernels_in_one_address_space_give_the_same() {
    agree(GRAPH_LOCAL, (GraphKind::Kronecker, 7, 8), 1, Schedule::Turns);
    agree(GRAPH_LOCAL, (GraphKind::Uniform, 7, 3), 1, Schedule::Turns);
}

/// Where it is installed. Each run starts processes, so these are few: `programs/host` alone runs all kernels and patterns.
#[test]
fn kernels_on_this_machine_with_a_real_openshmem_give_the_same() {
    let graph = Graph::new(GraphKind::Kronecker, 7, 8);
    let wanted = ["cc", "bc"];
    let mut all: String = results(&graph)
        .iter()
        .filter(|(kernel, _)| wanted.contains(kernel))
        .map(|(kernel, result)| right(kernel, *result, (GraphKind::Kronecker, 7), 3, &graph))
        .collect();
    all += "sg update ring: 3 PEs, 50 iterations of 4 atomics each: right\n";
    let runs = ["graph cc kron 7 8", "graph bc kron 7 8", "circustent sg update ring 50 64"];
    let script = format!("{}/programs/host", env!("CARGO_MANIFEST_DIR"));
    let output = std::process::Command::new("bash").arg(script).args(runs).output().unwrap();
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if said.starts_with("not done") {
        eprint!("{said}");
        return;
    }
    assert!(output.status.success(), "{said}{complaints}");
    assert_eq!(said, all, "{complaints}");
}

#[test]
fn results_do_not_depend_on_who_runs_when() {
    for seed in 1..=3 {
        agrees(GraphKind::Kronecker, 5, 6, 5, Schedule::Seeded(seed));
    }
}

#[test]
fn more_nodes_than_vertices_and_vertices_without_edges_are_no_special_case() {
    agrees(GraphKind::Uniform, 3, 1, 12, Schedule::Turns);
    let sparse = Graph::new(GraphKind::Uniform, 3, 1);
    assert!((0..8).any(|vertex| sparse.neighbours(vertex).is_empty()), "each has an edge: try another graph");
}

#[test]
fn a_vertex_out_of_reach_is_in_another_component_and_has_no_depth() {
    let graph = Graph::new(GraphKind::Uniform, 3, 1);
    let (depths, labels) = (graph.depths(graph.source()), graph.components());
    let near = labels[graph.source() as usize];
    for (depth, label) in depths.iter().zip(&labels) {
        assert_eq!(*depth == u64::MAX, *label != near);
    }
}
