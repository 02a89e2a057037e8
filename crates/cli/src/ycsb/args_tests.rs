//! What flags ask for, and which are refused.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(flags: &[&str]) -> Args {
    Line::try_parse_from([&["ycsb"], flags].concat()).unwrap().args
}

fn refused(flags: &[&str]) -> String {
    Line::try_parse_from([&["ycsb"], flags].concat()).err().unwrap().to_string()
}

fn chosen(flags: &[&str]) -> String {
    let (workloads, warnings) = args(flags).workloads().unwrap();
    assert!(warnings.is_empty());
    workloads.iter().map(|workload| workload.name.as_str()).collect()
}

#[test]
fn without_flags_a_b_and_c_run_on_eight_nodes() {
    assert_eq!(chosen(&[]), "ABC");
    let args = args(&[]);
    assert_eq!((args.nodes, args.threads, args.block_size), (8, 1, BlockSize::DEFAULT));
    assert_eq!((args.cache, args.directory), (Bytes(64 << 20), Directory::Auto));
}

#[test]
fn workloads_are_a_list_a_repetition_or_both() {
    assert_eq!(chosen(&["--workload", "a,F"]), "AF");
    assert_eq!(chosen(&["--workload", "C", "-w", "D, B", "--workload", "C"]), "CDBC");
}

#[test]
fn counts_replace_those_of_the_letters() {
    let (workloads, _) = args(&["--records", "7", "--operations", "9"]).workloads().unwrap();
    assert!(workloads.iter().all(|workload| (workload.records, workload.operations) == (7, 9)));
}

#[test]
fn scans_are_refused_where_there_is_no_order_and_letters_that_are_none() {
    let error = args(&["-w", "Z"]).workloads().unwrap_err();
    assert!(matches!(&error, Fault::Usage(message) if message.contains("no workload Z")), "{error:?}");
    let checked = |flags: &[&str]| {
        let args = args(flags);
        args.for_store(args.workloads().unwrap().0)
    };
    for (flags, said) in [
        (
            &["-w", "E", "--store", "coherent"][..],
            "--store coherent has no order of keys, and cannot scan: use --store ordered",
        ),
        (&["-w", "A,e", "--store", "chain"], "--store chain has no order"),
        (&["-w", "E", "--block-size", "512"], "take a --block-size of more than 1000 bytes"),
        (&["-w", "E", "--block-size", "128"], "blocks of 256 bytes or more"),
        (&["-w", "E", "--history", "file"], "leave out --history"),
        (&["-w", "E", "--copies", "2"], "add --transport shm or udp"),
    ] {
        let error = checked(flags).unwrap_err();
        assert!(matches!(&error, Fault::Usage(message) if message.contains(said)), "{flags:?}: {error:?}");
    }
    for flags in [&["-w", "A,E"][..], &["-w", "F", "--store", "ordered"]] {
        assert!(checked(flags).is_ok(), "{flags:?}");
    }
    let args = args(&["-w", "A,E", "--transport", "shm", "--copies", "2"]);
    let engines: Vec<_> = args.workloads().unwrap().0.iter().map(|workload| args.engine(workload)).collect();
    assert_eq!(engines, [Engine::Coherent, Engine::Ordered]);
}

#[test]
fn a_file_that_is_not_there_is_named_with_what_would_do() {
    let error = args(&["-w", "nowhere/workloada"]).workloads().unwrap_err();
    let Fault::Usage(message) = error else { panic!("{error:?}") };
    assert!(message.contains("nowhere/workloada") && message.contains("A, B, C, D, E, F"), "{message}");
}

#[test]
fn a_file_is_read_and_the_flags_come_first() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ycsb/workloadb");
    let (workloads, _) = args(&["-w", file, "--records", "5"]).workloads().unwrap();
    assert_eq!(
        (workloads[0].name.as_str(), workloads[0].records, workloads[0].operations),
        ("workloadb", 5, 1000)
    );
}

fn refused_for_the_store(flags: &[&str]) -> String {
    let args = args(flags);
    let (workloads, _) = args.workloads().unwrap();
    let Err(Fault::Usage(message)) = args.for_store(workloads) else { panic!("{flags:?}") };
    message
}

#[test]
fn steering_is_about_chains_and_chains_are_replaced_as_a_whole() {
    let said = refused_for_the_store(&["--steering", "all"]);
    assert!(said.contains("--store chain"), "{said}");
    let said = refused_for_the_store(&["--store", "chain", "-w", "A,F"]);
    assert!(said.contains("workload F"), "{said}");
    let flags = [&["--lease", "9"][..], &["--steer-reads"], &["--preload"]];
    for flag in flags.into_iter().chain([&["--memories", "1"][..]]) {
        let said = refused_for_the_store(flag);
        assert!(said.contains(flag[0]) && said.contains("--store chain"), "{said}");
    }
    for flag in ["--steer-reads", "--preload"] {
        for steering in ["off", "0"] {
            let said = refused_for_the_store(&["--store", "chain", "-w", "A", "--steering", steering, flag]);
            assert!(said.contains(flag) && said.contains("--steering all"), "{said}");
        }
    }
    let steered = args(&["--store", "chain", "--steering", "8", "-w", "A"]);
    let (workloads, _) = steered.workloads().unwrap();
    assert!(steered.for_store(workloads).unwrap()[0].write_all_fields);
    let keys = |text: &str| text.parse::<Steering>().map(Steering::keys);
    assert_eq!(
        [keys("off"), keys("0"), keys("8"), keys("all")],
        [Ok(None), Ok(None), Ok(Some(8)), Ok(Some(usize::MAX))]
    );
    assert!(keys("many").is_err() && keys("-1").is_err() && keys("").is_err());
}

#[test]
fn what_is_known_counts_for_longer_where_reads_are_steered() {
    let lease = |flags: &[&str]| args(flags).chains().lease;
    assert_eq!(lease(&["--store", "chain", "--steering", "all"]), LEASE);
    assert_eq!(lease(&["--store", "chain", "--steering", "all", "--steer-reads"]), STEERED_LEASE);
    assert_eq!(lease(&["--store", "chain", "--steering", "all", "--steer-reads", "--lease", "7"]), 7);
}

#[test]
fn copies_are_in_as_many_memories_at_least_and_are_steered_where_there_are_no_more() {
    let of = |flags: &[&str]| {
        let chains = args(flags).chains();
        (chains.copies, chains.memories)
    };
    assert_eq!([of(&[]), of(&["--copies", "2"]), of(&["--memories", "3"])], [(1, 1), (2, 2), (1, 3)]);
    assert_eq!(of(&["--copies", "2", "--memories", "4"]), (2, 4));
    let chain = ["--store", "chain", "-w", "A"];
    let refused = |flags: &[&str]| refused_for_the_store(&[&chain, flags].concat());
    for (flags, instead) in [
        (["--copies", "2", "--memories", "1"], "--memories 2 at least"),
        (["--copies", "3", "--nodes", "2"], "--nodes 3 at least"),
        (["--memories", "9", "--nodes", "2"], "--nodes 9 at least"),
    ] {
        let said = refused(&flags);
        assert!(said.contains(instead), "{said}");
    }
    for flags in [&["--memories", "2"][..], &["--copies", "2", "--memories", "3"]] {
        let said = refused(&[flags, &["--steering", "all"]].concat());
        assert!(said.contains("is not steered"), "{said}");
    }
    let steered = args(&[&chain[..], &["--copies", "2", "--steering", "all"]].concat());
    assert!(steered.for_store(steered.workloads().unwrap().0).is_ok());
}

#[test]
fn coherent_memory_has_copies_where_nodes_are_processes() {
    for (flags, instead) in [
        (&["--copies", "2"][..], "add --transport shm or udp"),
        (
            &["--copies", "2", "--transport", "shm", "--store", "locked"],
            "use --store coherent, ordered or chain",
        ),
        (&["--copies", "3", "--transport", "udp", "--nodes", "2"], "take more --nodes"),
    ] {
        let said = refused_for_the_store(flags);
        assert!(said.contains(flags[1]) && said.contains(instead), "{said}");
    }
    for transport in ["shm", "udp", "wire"] {
        let with = args(&["--copies", "2", "--transport", transport, "-w", "A"]);
        let (workloads, _) = with.workloads().unwrap();
        assert_eq!((with.memory_copies(), with.engine(&workloads[0])), (2, Engine::Coherent));
        assert!(with.for_store(workloads).is_ok());
    }
    assert_eq!(args(&["--copies", "2", "--store", "chain"]).memory_copies(), 1);
}

#[test]
fn values_that_cannot_be_are_refused_with_what_can() {
    for (flags, said) in [
        (["--nodes", "0"], "at least 1"),
        (["--threads", "0"], "at least 1"),
        (["--threads", "1025"], "at most 1024"),
        (["--nodes", "many"], "invalid digit"),
        (["--records", "0"], "is not in 1.."),
        (["--block-size", "4000"], "power of two from 64 B to 1 MiB"),
        (["--block-size", "4KB"], "4KiB"),
        (["--steering", "many"], "off, all, or how many keys"),
        (["--lease", "0"], "is not in 1..=20000"),
        (["--lease", "20001"], "is not in 1..=20000"),
        (["--copies", "0"], "is not in 1..=3"),
        (["--copies", "4"], "is not in 1..=3"),
        (["--memories", "0"], "at least 1"),
        (["--cache", "lots"], "64MiB"),
        (["--directory", "nowhere"], "auto, switch, home"),
    ] {
        let error = refused(&flags);
        assert!(error.contains(said) && error.contains(flags[0]), "{flags:?}: {error}");
    }
}
