//! What is measured stands beside its yardstick, over every transport.

use crate::shell::{Temporary, can_have_kernel, mistake};

fn misses_are_measured_beside_the_bare_exchange(transport: &str, more: &[&str]) {
    let temporary = Temporary::new(&format!("miss-{transport}{}", more.concat()));
    let args = ["bench", "miss", "--transport", transport, "--rounds", "3", "--busy-misses", "200"];
    let report = temporary.json(&[&args[..], more].concat());
    assert_eq!(report["coalescing"], more.is_empty());
    let bare = report["pingpong"]["median_ns"].as_f64().unwrap();
    assert!(bare > 0.0, "{report}");
    let misses = report["misses"].as_array().unwrap();
    assert_eq!(misses.len(), 5);
    for figure in misses {
        let ratio = figure["median_ns"].as_f64().unwrap() / bare;
        assert!((figure["ratio"].as_f64().unwrap() - ratio).abs() < 0.001, "{report}");
    }
    // Real-time threads need a right that not everybody has.
    let busy = report["busy"].as_array().unwrap();
    let realtime = rackmem::Scheduling::Realtime.check().is_ok();
    let all = if realtime { &["fair", "realtime"][..] } else { &["fair"] };
    assert_eq!(busy.iter().map(|busy| busy["scheduling"].as_str().unwrap()).collect::<Vec<_>>(), all);
    for busy in busy {
        assert_eq!(busy["misses"], 200);
        assert!(busy["p99_ns"].as_u64() >= busy["p50_ns"].as_u64());
    }
}

#[test]
fn misses_over_shared_memory_are_measured_beside_the_bare_exchange() {
    misses_are_measured_beside_the_bare_exchange("shm", &[]);
}

#[test]
fn misses_over_udp_are_measured_beside_the_bare_exchange() {
    misses_are_measured_beside_the_bare_exchange("udp", &[]);
    misses_are_measured_beside_the_bare_exchange("udp", &["--no-coalescing"]);
}

#[test]
fn memory_with_copies_is_measured_beside_memory_without() {
    let temporary = Temporary::new("copies");
    let report = temporary.json(&["bench", "copies", "--transport", "shm", "--rounds", "3"]);
    let figures = report["figures"].as_array().unwrap();
    let median = |at: usize| figures[at]["median_ns"].as_f64().unwrap();
    assert_eq!(figures.len(), 10);
    for (at, figure) in figures.iter().enumerate() {
        assert!((figure["ratio"].as_f64().unwrap() - median(at) / median(0)).abs() < 0.001, "{report}");
    }
    // A write of one's own takes no message, and with `sync` there are some.
    assert!(0.0 < median(4) && median(4) < median(5), "{report}");
    // Neither does taking a lock that one has.
    assert!(0.0 < median(8) && median(8) < median(9), "{report}");
    let most = report["most_ratio_of_put_and_sync"].as_f64().unwrap();
    assert_eq!(report["met"], figures[3]["ratio"].as_f64().unwrap() <= most);
}

#[test]
fn a_copy_is_made_anew_and_what_goes_on_meanwhile_is_measured() {
    let temporary = Temporary::new("again");
    let args = ["bench", "copies", "--transport", "shm", "--again", "3MiB", "--seconds", "1"];
    let report = temporary.json(&args);
    assert_eq!(report["bytes"], 3 << 20);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!(number(&report["took_ns"]) > 0.0 && number(&report["bytes_per_second"]) > 0.0, "{report}");
    let work = &report["work"];
    assert!(["before", "meanwhile", "after"].iter().all(|when| number(&work[when]) > 0.0), "{report}");
    let ratio = number(&work["meanwhile"]) / number(&work["after"]);
    assert!((number(&report["ratio"]) - ratio).abs() < 1e-9, "{report}");
    let why = mistake(&["bench", "copies", "--transport", "shm", "--again", "9TiB"], 2);
    assert!(why.contains("this machine has"), "{why}");
    let why = mistake(&["bench", "copies", "--transport", "shm", "--again", "0"], 2);
    assert!(why.contains("ask for 1 MiB or more"), "{why}");
}

#[test]
fn the_switch_in_the_kernel_is_measured_beside_the_one_in_a_process() {
    if !can_have_kernel() {
        return;
    }
    let temporary = Temporary::new("wire");
    let args = ["bench", "wire", "--rounds", "1", "--millis", "100", "--sharing", "0,100"];
    let report = temporary.json(&[&args[..], &["--records", "100", "--operations", "500"]].concat());
    let measured = |it: &serde_json::Value| ["measured", "yardstick", "ratio"].map(|name| it[name].as_f64());
    let is_some = |it: &serde_json::Value| measured(it).into_iter().all(|value| value > Some(0.0));
    for passing in [&report["passing"], &report["in_drivers"]] {
        let bare = &passing["bare"];
        let figures =
            [&bare["of_three"], &bare["flood"], &bare["stream"], &passing["miss"], &passing["hand_over"]];
        assert!(figures.into_iter().all(is_some), "{report}");
    }
    let apart = report["apart"].as_array().unwrap();
    assert_eq!(apart.iter().map(|it| it["sharing"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(100)]);
    for with in apart {
        assert!(["rate", "processor_ns"].into_iter().all(|what| is_some(&with[what])), "{report}");
    }
    // A directory at the homes takes their messages, and one in the kernel does not.
    assert!(measured(&apart[1]["messages"])[2] < Some(1.0), "{report}");
    let mixes = report["mixes"].as_array().unwrap();
    assert_eq!(mixes.iter().map(|it| it["workload"].as_str()).collect::<Vec<_>>(), ["A", "B", "C"].map(Some));
    assert!(mixes.iter().all(|it| is_some(&it["rate"])), "{report}");
    let figures = temporary.path("figures");
    let args = ["bench", "wire", "--rounds", "1", "--millis", "10", "--figures", figures.to_str().unwrap()];
    assert!(temporary.command(&args).output().unwrap().status.success());
    for (name, lines) in [("live-9", 6), ("live-10", 6), ("live-11a", 5), ("live-11b", 5)] {
        let data = std::fs::read_to_string(figures.join(format!("{name}.csv"))).unwrap();
        assert_eq!(data.lines().count(), lines, "{data}");
    }
}

#[test]
fn the_bare_exchange_carries_blocks_of_any_size() {
    let temporary = Temporary::new("pingpong");
    for transport in ["shm", "udp"] {
        for bytes in ["64", "4KiB", "1MiB"] {
            let args = ["bench", "pingpong", "--transport", transport, "--bytes", bytes];
            let report = temporary.json(&[&args[..], &["--rounds", "3", "--exchanges", "5"]].concat());
            assert!(report["p50_ns"].as_u64().unwrap() > 0, "{report}");
        }
    }
}

fn locks_are_measured_beside_their_yardsticks(transport: &str) {
    let temporary = Temporary::new(&format!("lock-{transport}"));
    let args = ["bench", "lock", "--transport", transport, "--nodes", "1,3", "--threads", "2"];
    // Longer than a block, so that regions have to be carried that blocks never are.
    let more = ["--state-size", "10000", "--read-ratio", "50", "--rounds", "3", "--millis", "50"];
    let more = [&more[..], &["--locks", "20", "--own-first", "2"]].concat();
    let report = temporary.json(&[&args[..], &more].concat());
    assert_eq!(report["cached"].as_array().unwrap().len(), 3, "{report}");
    let hand_over = &report["hand_over"];
    assert!(hand_over["median_ns"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(hand_over["budget"].is_null(), transport == "inline", "{report}");
    let grant = &report["grant"];
    assert_eq!(grant.is_null(), transport == "inline", "{report}");
    assert!(grant.is_null() || grant["p50_ns"].as_u64().unwrap() > 0, "{report}");
    let mixes = report["mixes"].as_array().unwrap();
    let nodes: Vec<u64> = mixes.iter().map(|mix| mix["nodes"].as_u64().unwrap()).collect();
    assert_eq!(nodes, [1, 3]);
    for mix in mixes {
        // Redis may not be installed; and one of six threads may come to the lock too late on a busy machine.
        for kind in
            ["carried", "layered", "redis"].map(|kind| &mix[kind]).into_iter().filter(|it| !it.is_null())
        {
            assert!(kind["per_second"].as_f64().is_some(), "{mix}");
            let hottest = &kind["hottest"];
            let parts = ["held", "on_its_way", "idle"].map(|part| hottest[part].as_f64().unwrap_or(f64::NAN));
            let sum: f64 = parts.iter().sum();
            assert!(hottest.is_null() || (sum - 1.0).abs() < 1e-9 && parts[0] > 0.0, "{mix}");
        }
    }
}

#[test]
fn locks_in_one_process_are_measured_beside_their_yardsticks() {
    locks_are_measured_beside_their_yardsticks("inline");
}

#[test]
fn locks_over_shared_memory_are_measured_beside_their_yardsticks() {
    locks_are_measured_beside_their_yardsticks("shm");
}

#[test]
fn locks_over_udp_are_measured_beside_their_yardsticks() {
    locks_are_measured_beside_their_yardsticks("udp");
}

fn objects_are_read_beside_other_layouts(transport: &str) {
    let temporary = Temporary::new(&format!("object-{transport}"));
    let args = ["bench", "object", "--transport", transport, "--sizes", "100,8KiB", "--writers", "0,2"];
    let report = temporary.json(&[&args[..], &["--millis", "5", "--rounds", "1"]].concat());
    let points = report["points"].as_array().unwrap();
    let found: Vec<_> = points
        .iter()
        .map(|point| [&point["bytes"], &point["writers"]].map(|n| n.as_u64().unwrap()))
        .collect();
    assert_eq!(found, [[100, 0], [100, 2], [8192, 0], [8192, 2]]);
    for point in points {
        let layouts = point["layouts"].as_array().unwrap();
        let names: Vec<_> = layouts.iter().map(|row| row["layout"].as_str().unwrap()).collect();
        assert_eq!(names, ["plain", "sabre", "lines", "checksum", "lock"]);
        for row in layouts {
            assert!(row["p50_ns"].as_f64().unwrap() > 0.0, "{row}");
            assert_eq!(row["pipelined_ns"].is_null(), transport == "udp", "{row}");
            let torn = row["torn_percent"].as_f64().unwrap();
            assert!((0.0..100.0).contains(&torn) && (point["writers"] == 2 || torn == 0.0), "{row}");
        }
    }
    // 8 KiB without writers, and the unchecked READ.
    assert_eq!(report["targets"].as_array().unwrap().len(), 2, "{report}");
}

#[test]
fn objects_in_one_process_are_read_beside_other_layouts() {
    objects_are_read_beside_other_layouts("inline");
}

#[test]
fn objects_over_shared_memory_are_read_beside_other_layouts() {
    objects_are_read_beside_other_layouts("shm");
}

#[test]
fn objects_over_udp_are_read_beside_other_layouts() {
    objects_are_read_beside_other_layouts("udp");
}

fn words_are_measured_beside_their_yardstick(transport: &str) {
    let temporary = Temporary::new(&format!("word-{transport}"));
    let args = ["bench", "word", "--transport", transport, "--nodes", "3", "--words", "1000"];
    let more = ["--in-flight", "600", "--millis", "5", "--rounds", "1"];
    let report = temporary.json(&[&args[..], &more].concat());
    let figures = report["figures"].as_array().unwrap();
    let operations: Vec<&str> = figures.iter().map(|it| it["operation"].as_str().unwrap()).collect();
    assert_eq!(operations[..5], ["fetch_add", "compare_exchange", "load", "post", "add"], "{report}");
    assert_eq!(operations[5..], operations[..5], "random words, and one");
    for figure in figures {
        let number = |name: &str| figure[name].as_f64().unwrap_or_else(|| panic!("{name}: {figure}"));
        assert!(number("per_second") > 0.0 && number("ratio") > 0.0, "{figure}");
        let waits = number("in_flight") == 1.0;
        assert_eq!(figure["p99_ns"].is_number(), waits, "{figure}");
    }
    assert!(report["busy"].is_null());
}

#[test]
fn words_in_one_process_are_measured_beside_bare_ones() {
    words_are_measured_beside_their_yardstick("inline");
}

#[test]
fn words_over_shared_memory_are_measured_beside_bare_ones() {
    words_are_measured_beside_their_yardstick("shm");
}

#[test]
fn words_over_udp_are_measured_beside_the_bare_exchange() {
    words_are_measured_beside_their_yardstick("udp");
}

#[test]
fn words_of_a_node_that_computes_are_operated_on() {
    let temporary = Temporary::new("word-busy");
    let args = ["bench", "word", "--transport", "udp", "--busy", "--words", "1000", "--millis", "50"];
    let report = temporary.json(&[&args[..], &["--rounds", "1"]].concat());
    assert!(report["busy"]["p50_ns"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["busy"]["met"], report["busy"]["p50_ns"].as_u64().unwrap() < 50_000);
    assert_eq!(report["figures"].as_array().unwrap().len(), 0);
}

#[test]
fn what_cannot_be_measured_is_refused_before_any_process_is_started() {
    Temporary::new("refused").refuses(&[
        (&["bench", "pingpong", "--transport", "inline"], "--transport shm"),
        (&["bench", "miss", "--transport", "shm", "--block-size", "1000"], "--block-size"),
        (&["bench", "miss", "--transport", "shm", "--no-coalescing"], "--transport udp"),
        (&["bench", "miss", "--no-coalescing"], "--transport udp"),
        (&["bench", "copies", "--transport", "inline"], "an embedded rack dies as a whole"),
        (&["bench", "lock", "--nodes", "16", "--threads", "8"], "--threads"),
        (&["bench", "lock", "--state-size", "2MiB"], "--state-size"),
        (&["bench", "object", "--sizes", "4"], "--sizes"),
        (&["bench", "object", "--writers", "17", "--objects", "16"], "--writers"),
        (&["peers", "--workload", "D"], "A, B, C or F"),
        (&["peers", "--words", "--locks"], "--locks"),
        (&["peers", "--words", "--records", "5"], "--records"),
        (&["peers", "--millis", "5"], "--words"),
        (&["peers", "--words", "--processes", "1"], "2..=16"),
        (&["bench", "word", "--busy"], "--transport udp"),
        (&["bench", "word", "--busy", "--hot", "--transport", "udp"], "--hot"),
        (&["bench", "word", "--nodes", "1"], "2..=64"),
        (&["bench", "word", "--words", "0"], "--words"),
        (&["place"], "of no use"),
    ]);
}
