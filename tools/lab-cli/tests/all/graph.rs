//! Graphs on racks in one process and of processes: verified, counted, and what is wrong with the input is said.

use crate::racks::{a_dead_node_is_named, ctrl_c_ends_it};
use crate::shell::{Temporary, file, mistake, run};

fn both_kernels_are_verified(transport: &str, nodes: &str) {
    let temporary = Temporary::new(&format!("graph-{transport}"));
    for kernel in ["pagerank", "bfs"] {
        let args =
            ["graph", "--transport", transport, "--nodes", nodes, "--threads", "2", "--kernel", kernel];
        let report = temporary.json(&[&args[..], &["--scale", "10", "--rounds", "2"]].concat());
        assert_eq!(report["verified"], true);
        assert_eq!([&report["vertices"], &report["stored_edges"]], [1024, 32_768], "{report}");
        let rounds = report["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 2);
        for round in rounds {
            let number = |name: &str| round[name].as_f64().unwrap_or_else(|| panic!("{name}: {round}"));
            assert!(number("supersteps") > 1.0 && number("edges_per_second") > 0.0, "{round}");
            assert!((0.0..=100.0).contains(&number("wait_percent")), "{round}");
            let ratio = number("plain_seconds") / number("seconds");
            assert!((number("ratio") - ratio).abs() < 1e-9, "{round}");
            // The blocks of all other nodes' values, at least.
            assert!(number("messages_per_edge") > 0.0, "{round}");
            assert_eq!(round["bytes_per_edge"].is_null(), transport == "embedded", "{round}");
            assert_eq!(round["source"].is_null(), kernel == "pagerank", "{round}");
        }
    }
}

#[test]
fn graphs_in_one_process_are_verified() {
    both_kernels_are_verified("embedded", "4");
}

#[test]
fn graphs_over_shared_memory_are_verified() {
    both_kernels_are_verified("shm", "2");
}

#[test]
fn graphs_over_udp_are_verified() {
    both_kernels_are_verified("udp", "2");
}

#[test]
fn an_edge_list_is_loaded_by_all_processes() {
    let path =
        file("graph-list.txt", "# a ring of four, and one that nobody reaches\n0 1\n1\t2\n2 3\n\n3 0\n5 0\n");
    let temporary = Temporary::new("graph-list");
    let args = ["graph", path.to_str().unwrap(), "--transport", "shm", "--kernel", "bfs", "--source", "1"];
    let report = temporary.json(&[&args[..], &["--rounds", "1"]].concat());
    assert_eq!([&report["vertices"], &report["stored_edges"]], [6, 5], "{report}");
    let round = &report["rounds"][0];
    assert_eq!([&round["supersteps"], &round["edges"], &round["source"]], [4, 4, 1], "{report}");
    let both = temporary.json(&[&args[..], &["--rounds", "1", "--undirected"]].concat());
    assert_eq!([&both["stored_edges"], &both["rounds"][0]["edges"]], [10, 10], "{both}");
}

#[test]
fn what_is_wrong_with_edges_and_memory_is_said_before_a_rack_is_started() {
    let temporary = Temporary::new("graph-refused");
    let word = file("graph-word.txt", "0 1\n1 2 0.5\n");
    let empty = file("graph-empty.txt", "");
    let large = file("graph-large.txt", "0 1\n4294967296 1\n");
    let sparse = file("graph-sparse.txt", "0 4294967295\n");
    let path = |path: &std::path::PathBuf| path.to_str().unwrap().to_owned();
    let (word, empty, large, sparse) = (path(&word), path(&empty), path(&large), path(&sparse));
    temporary.refuses(&[
        (&["graph", &word], "line 2: 3 words"),
        (&["graph", &word, "--transport", "shm"], "cut -f1,2"),
        (&["graph", &empty], "no line is an edge"),
        (&["graph", &large], "vertex 4294967296 is not below 2^32"),
        (&["graph", &sparse], "without gaps"),
        (&["graph", "no-such-list"], "no-such-list: cannot be read"),
        (&["graph", &word, "--scale", "4"], "--scale"),
        (&["graph", "--memory", "1MiB"], "--memory 1 MiB is too little"),
        (&["graph", "--scale", "31", "--edge-factor", "1024"], "this machine has"),
        (&["graph", "--source", "5"], "--kernel bfs"),
        (&["graph", "--kernel", "bfs", "--scale", "4", "--source", "16"], "there is no vertex 16"),
        (&["graph", "--tolerance=-1"], "--tolerance -1"),
        (&["graph", "--undirected"], "<FILE>"),
        (&["graph", "--timeline", "superstep.svg", "--transport", "shm"], "--transport"),
        (&["graph", "--scale", "6", "--timeline", "no-such-directory/superstep.svg"], "with --timeline"),
    ]);
    // With the amount that is needed.
    let why = mistake(&["graph", "--memory", "1MiB"], 2);
    assert!(why.contains("65536 vertices and 2097152 stored edges need 7"), "{why}");
}

#[test]
fn a_superstep_of_a_generated_graph_and_of_a_file_is_drawn() {
    let list = file("graph-drawn.txt", "0 1\n1 2\n2 0\n");
    let drawn = file("graph-drawn.svg", "");
    let (list, path) = (list.to_str().unwrap(), drawn.to_str().unwrap());
    for (graph, vertices) in [(&["--scale", "8"][..], 256), (&[list], 3)] {
        let output = run(&[&["graph", "--nodes", "3", "--timeline", path], graph].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("{vertices} vertices")) && said.contains("wait for blocks"), "{said}");
        let svg = std::fs::read_to_string(&drawn).unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.contains("node 2") && svg.contains(said.lines().next().unwrap())
        );
    }
}

#[test]
fn messages_and_bytes_are_within_the_budget() {
    let args = ["graph", "--transport", "shm", "--nodes", "2", "--block-size", "4KiB", "--rounds", "1"];
    let report = Temporary::new("graph-budget").json(&args);
    let number = |name: &str| report["rounds"][0][name].as_f64().unwrap();
    // As docs/graph.md has it, for two nodes and 32 edges a vertex; beside it there are headers, barriers and results.
    let (bytes, messages) = (8.0 / 32.0, 6.0 / 512.0 / 32.0);
    assert!((bytes..1.5 * bytes).contains(&number("bytes_per_edge")), "{report}");
    assert!((messages..1.5 * messages).contains(&number("messages_per_edge")), "{report}");
}

#[test]
fn a_node_that_dies_is_named() {
    a_dead_node_is_named("graph", &["graph", "--scale", "20"]);
}

#[test]
fn ctrl_c_ends_loading_in_one_process_and_in_several() {
    ctrl_c_ends_it("graph", &["graph", "--scale", "20"]);
}

#[test]
fn the_same_seed_gives_the_same_graph_on_any_rack() {
    let edges = |nodes: &str| {
        let args = ["graph", "--kernel", "bfs", "--scale", "9", "--rounds", "4", "--json", "--nodes", nodes];
        let report: serde_json::Value = serde_json::from_slice(&run(&args).stdout).unwrap();
        let rounds = report["rounds"].as_array().unwrap().clone();
        rounds.iter().map(|round| [&round["source"], &round["edges"]].map(|n| n.as_u64())).collect::<Vec<_>>()
    };
    assert_eq!(edges("1"), edges("3"));
}
