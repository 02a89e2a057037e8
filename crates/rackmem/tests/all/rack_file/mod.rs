//! Rack files: what they mean, and what is said about each mistake in them.

mod addresses;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rackmem::rack_file::{Advertised, Endpoint, Given, Placement, RackFile, TransportKind, example};
use rackmem::{BlockSize, Directory, Nanos, Scheduling};

const UDP: &str = r#"[rack]
name = "lab"
transport = "udp"
[switch]
listen = "127.0.0.1:7400"
[[node]]
id = 0
listen = "127.0.0.1:7401"
[[node]]
id = 1
listen = "127.0.0.1:7402"
"#;

const SHM: &str = r#"[rack]
name = "lab"
transport = "shm"
[[node]]
id = 0
[[node]]
id = 1
"#;

fn parse(text: &str) -> RackFile {
    RackFile::parse(Path::new("rack.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

/// All that is said about a text that must be refused.
fn refused(text: &str) -> String {
    RackFile::parse(Path::new("rack.toml"), text).expect_err("it has a mistake").to_string()
}

/// The text with a piece of it replaced; the piece must be there.
fn with(text: &str, piece: &str, instead: &str) -> String {
    assert!(text.contains(piece), "{piece} in {text}");
    text.replace(piece, instead)
}

/// Each text, and all that must be said about it.
fn all_refused(cases: &[(String, &str)]) {
    for (text, said) in cases {
        assert_eq!(refused(text), *said, "about\n{text}");
    }
}

/// A folder that a test has for itself.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rack_file").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn key_file(path: &Path, content: &str, mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn every_key_means_what_it_says() {
    let folder = folder("every_key");
    key_file(&folder.join("rack.key"), &format!("{}\n", "0f".repeat(32)), 0o600);
    let text = r#"
[rack]
name = "Lab-2"
transport = "udp"
block = "8 KiB"
cache = "32 MiB"
memory = "1 GiB"
copies = 2
refill = "5 MiB"
lock_copies = "3 MiB"
lock_region = "1000 B"
own_first = 5
name_nodes = 1
timeout = "250 ms"
peek = true
strict = true
scheduling = "realtime"
key = "rack.key"
mtu = 9000
runtime = "run"
[switch]
listen = "10.0.0.1:7400"
entries = 1_000
lock_entries = 77
directory = "home"
queue = true
metrics = "127.0.0.1:9400"
[[node]]
id = 1
listen = "0.0.0.0:7400"
advertise = "node-1.lab:7401"
metrics = "127.0.0.1:9401"
[[node]]
id = 0
listen = "10.0.0.2:7400"
"#;
    let rack = RackFile::parse(&folder.join("rack.toml"), text).unwrap();
    assert_eq!((rack.name.as_str(), rack.timeout, rack.strict), ("Lab-2", Nanos::from_millis(250), true));
    assert!(rack.config.peek);
    assert_eq!(rack.process().scheduling, Scheduling::Realtime);
    let config = &rack.config;
    assert_eq!((config.nodes, config.block_size), (2, BlockSize::new(8192).unwrap()));
    assert_eq!((config.cache, config.memory), (32 << 20, 1 << 30));
    assert_eq!((config.copies, config.refill), (2, 5 << 20));
    assert_eq!((config.switch_entries, config.directory, config.queue), (1000, Directory::Home, true));
    assert_eq!((config.lock_copies, config.lock_region, config.lock_entries), (3 << 20, 1000, 77));
    assert_eq!((config.name_nodes, config.own_first), (Some(1), 5));
    assert_eq!(rack.runtime, folder.join("run"));
    assert_eq!(rack.switch_metrics, Some("127.0.0.1:9400".parse().unwrap()));
    assert_eq!(rack.node_metrics, [None, Some("127.0.0.1:9401".parse().unwrap())]);
    let Placement::Udp { switch, nodes, key, mtu, .. } = rack.placement else { panic!("no UDP") };
    let shown = |it: &Endpoint| (it.listen.to_string(), it.advertise.to_string());
    let same = |address: &str| (address.to_owned(), address.to_owned());
    assert_eq!(shown(&switch), same("10.0.0.1:7400"));
    assert_eq!(shown(&nodes[0]), same("10.0.0.2:7400"));
    assert_eq!(shown(&nodes[1]), ("0.0.0.0:7400".to_owned(), "node-1.lab:7401".to_owned()));
    let Advertised::Name(name) = &nodes[1].advertise else { panic!("{nodes:?}") };
    assert_eq!(name.whence(), format!("{}:31", folder.join("rack.toml").display()));
    assert_eq!((key.is_some(), mtu), (true, 9000));
}

#[test]
fn what_is_left_out_is_the_default_of_an_embedded_rack() {
    let rack = parse(UDP);
    let default = rackmem::Config { nodes: 2, most_nodes: Some(16), ..rackmem::Config::default() };
    assert_eq!(format!("{:?}", rack.config), format!("{default:?}"));
    assert_eq!((rack.timeout, rack.strict), (Nanos::from_millis(1000), false));
    assert_eq!(rack.scheduling, Scheduling::Fair);
    assert!(rack.runtime.is_absolute() && rack.runtime.to_str().unwrap().ends_with("-lab"));
    assert_eq!((rack.switch_metrics, rack.node_metrics), (None, vec![None, None]));
}

#[test]
fn shared_memory_is_in_the_runtime_directory_and_needs_no_table_for_the_switch() {
    let rack = parse(SHM);
    let Placement::SharedMemory { directory } = &rack.placement else { panic!("{:?}", rack.placement) };
    assert_eq!(directory, &rack.runtime);
    assert_eq!(rack.transport(), TransportKind::SharedMemory);
}

#[test]
fn a_runtime_directory_is_beside_the_file_and_can_be_the_files_own() {
    for (given, runtime) in [("run", "racks/run"), (".", "racks"), ("/run/lab", "/run/lab")] {
        let text = with(SHM, "[[node]]\nid = 0", &format!("runtime = \"{given}\"\n[[node]]\nid = 0"));
        let rack = RackFile::parse(Path::new("racks/rack.toml"), &text).unwrap();
        assert_eq!(rack.runtime.to_str(), Some(runtime));
    }
}

#[test]
fn examples_are_read_without_a_mistake() {
    let addresses: Vec<_> = (7400..7405).map(|port| ([127, 0, 0, 1], port).into()).collect();
    for transport in [TransportKind::SharedMemory, TransportKind::Udp] {
        let rack = parse(&example("lab", transport, &addresses, Given::default()));
        assert_eq!((rack.transport(), rack.config.nodes, rack.name.as_str()), (transport, 4, "lab"));
    }
}

#[test]
fn what_an_example_calls_a_default_is_taken_when_it_is_switched_on() {
    let addresses: Vec<_> = (7400..7403).map(|port| ([127, 0, 0, 1], port).into()).collect();
    for transport in [TransportKind::SharedMemory, TransportKind::Udp] {
        let text = example("lab", transport, &addresses, Given::default());
        let on: Vec<String> = text
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                // A key needs a file, and what is a comment in the text is no key. How many nodes keep names has no default: it
                // is how many there are at first.
                Some(line)
                    if line.contains(" = ")
                        && !["key", "name_nodes"].iter().any(|it| line.starts_with(it)) =>
                {
                    line.to_owned()
                }
                _ => line.to_owned(),
            })
            .collect();
        let (off, on) = (parse(&text), parse(&on.join("\n")));
        let config = |rack: &RackFile| {
            format!("{:?} {:?} {} {:?}", rack.config, rack.timeout, rack.strict, rack.scheduling)
        };
        assert_eq!(config(&on), config(&off));
        assert!(on.switch_metrics.is_some(), "the lines were switched on");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_what_to_do() {
    let missing = folder("missing").join("rack.toml");
    let said = RackFile::read(&missing).unwrap_err().to_string();
    assert!(said.starts_with(&format!("{}: cannot be read: No such file", missing.display())), "{said}");
    assert!(said.ends_with(&format!("rackmem rack-file > {}", missing.display())), "{said}");
}

#[test]
fn a_file_that_is_no_text_or_too_long_is_refused() {
    let folder = folder("no_text");
    for (content, said) in
        [(vec![0xff, 0xfe], "is not UTF-8 text"), (vec![b'#'; 2 << 20], "is longer than 1 MiB")]
    {
        let path = folder.join("rack.toml");
        fs::write(&path, content).unwrap();
        let error = RackFile::read(&path).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_is_not_toml_is_named_with_its_line() {
    for (text, line) in [
        (with(UDP, "transport = \"udp\"", "transport = udp"), 3),
        (with(UDP, "[switch]", "[switch"), 4),
        (with(UDP, "name = \"lab\"", "name \"lab\""), 2),
    ] {
        let said = refused(&text);
        assert!(said.starts_with(&format!("rack.toml:{line}: this is not TOML: ")), "{said}");
        assert_eq!(said.lines().count(), 1, "nothing is said about what follows from it: {said}");
    }
}

#[test]
fn keys_and_tables_that_are_there_twice_are_refused() {
    all_refused(&[
        (
            with(UDP, "[switch]", "name = \"other\"\n[switch]"),
            "rack.toml:4: this key or table is there already: remove one of the two",
        ),
        (
            format!("{UDP}[switch]\nentries = 1\n"),
            "rack.toml:12: this key or table is there already: remove one of the two",
        ),
    ]);
}

#[test]
fn missing_tables_are_named_with_what_to_write() {
    all_refused(&[
        (
            String::new(),
            "rack.toml:1: there is no [rack]: write [rack], and under it name = \"...\" and transport = \"udp\" or \"shm\"\n\
             rack.toml:1: there is no [[node]]: write one for each node, with id = 0 for the first",
        ),
        (
            "[rack]\nname = \"lab\"\ntransport = \"shm\"\n".to_owned(),
            "rack.toml:4: there is no [[node]]: write one for each node, with id = 0 for the first",
        ),
        (
            "node = []\n[rack]\nname = \"lab\"\ntransport = \"shm\"\n".to_owned(),
            "rack.toml:1: there is no [[node]]: write one for each node, with id = 0 for the first",
        ),
        (
            with(UDP, "[switch]\nlisten = \"127.0.0.1:7400\"\n", ""),
            "rack.toml:10: there is no [switch]: write [switch], and under it listen = \"10.0.0.1:7400\"",
        ),
    ]);
}

#[test]
fn tables_of_the_wrong_kind_are_named_with_how_to_write_them() {
    all_refused(&[
        (
            with(SHM, "[rack]", "[[rack]]"),
            "rack.toml:1: there is one [rack], with single brackets: write [rack]",
        ),
        (
            format!("switch = 3\n{SHM}"),
            "rack.toml:1: there is one [switch], with single brackets: write [switch]",
        ),
        (
            "[rack]\nname = \"lab\"\ntransport = \"shm\"\n[node]\nid = 0\n".to_owned(),
            "rack.toml:4: a node is written as [[node]], with two brackets, one for each node",
        ),
        (
            "node = [1]\n[rack]\nname = \"lab\"\ntransport = \"shm\"\n".to_owned(),
            "rack.toml:1: a node is written as [[node]], with two brackets, one for each node",
        ),
    ]);
}

#[test]
fn missing_keys_are_named_with_an_example() {
    all_refused(&[
        (with(SHM, "name = \"lab\"\n", ""), "rack.toml:1: [rack] has no `name`: write name = \"lab\""),
        (
            with(SHM, "transport = \"shm\"\n", ""),
            "rack.toml:1: [rack] has no `transport`: write transport = \"udp\" (between machines) or \"shm\" (all places on one machine)",
        ),
        (with(SHM, "id = 1\n", ""), "rack.toml:6: [[node]] has no `id`: write id = 0, 1, 2 and so on"),
        (
            with(UDP, "listen = \"127.0.0.1:7400\"\n", ""),
            "rack.toml:4: [switch] has no `listen`: write listen = \"10.0.0.1:7400\"",
        ),
        (
            with(UDP, "listen = \"127.0.0.1:7402\"\n", ""),
            "rack.toml:9: [[node]] has no `listen`: write listen = \"10.0.0.2:7400\"",
        ),
    ]);
}

#[test]
fn unknown_keys_are_named_with_what_was_meant() {
    all_refused(&[
        (
            with(SHM, "[[node]]\nid = 0", "cahce = \"64 MiB\"\n[[node]]\nid = 0"),
            "rack.toml:4: `cahce` is not a key of [rack]: did you mean `cache`?",
        ),
        (
            format!("{SHM}cache = \"64 MiB\"\n"),
            "rack.toml:8: `cache` is not a key of [[node]]: write it under [rack]",
        ),
        (
            with(UDP, "[switch]", "entries = 5\n[switch]\nblock = \"4 KiB\""),
            "rack.toml:4: `entries` is not a key of [rack]: write it under [switch]\n\
             rack.toml:6: `block` is not a key of [switch]: write it under [rack]",
        ),
        (
            format!("{SHM}colour = \"red\"\n"),
            "rack.toml:8: `colour` is not a key of [[node]]: remove it; the keys of [[node]] are id, listen, advertise, metrics",
        ),
        (
            format!("mtu = 1500\nlink = 2\n{SHM}"),
            "rack.toml:1: `mtu` stands in no table: write it under [rack]\n\
             rack.toml:2: `link` is nothing that a rack file has: it has [rack], [switch] and one [[node]] for each node",
        ),
    ]);
}

#[test]
fn wrong_types_are_named_with_an_example() {
    let in_rack = |line: &str| with(UDP, "[switch]", &format!("{line}\n[switch]"));
    let in_switch = |line: &str| with(UDP, "[[node]]\nid = 0", &format!("{line}\n[[node]]\nid = 0"));
    all_refused(&[
        (
            with(UDP, "\"lab\"", "5"),
            "rack.toml:2: `name` must be text in quotes, and not of type integer: write name = \"lab\"",
        ),
        (
            in_rack("cache = 64"),
            "rack.toml:4: `cache` must be a size in B, KiB, MiB, GiB or TiB, with the unit, in quotes, and not of type integer: write cache = \"64 MiB\"",
        ),
        (
            in_rack("timeout = 1.5"),
            "rack.toml:4: `timeout` must be a span of time in us, ms, s or min, with the unit, in quotes, and not of type float: write timeout = \"1 s\"",
        ),
        (
            in_rack("scheduling = \"fast\""),
            "rack.toml:4: `fast` is no kind of scheduling: write scheduling = \"fair\" or \"realtime\"",
        ),
        (
            in_rack("strict = \"yes\""),
            "rack.toml:4: `strict` must be true or false, without quotes, and not of type string: write strict = true",
        ),
        (
            in_rack("mtu = \"1500\""),
            "rack.toml:4: `mtu` must be a number, without quotes, and not of type string: write mtu = 1500",
        ),
        (
            in_switch("queue = 1"),
            "rack.toml:6: `queue` must be true or false, without quotes, and not of type integer: write queue = true",
        ),
        (
            in_switch("directory = [\"auto\"]"),
            "rack.toml:6: `directory` must be text in quotes, and not of type array: write directory = \"auto\"",
        ),
        (
            with(UDP, "id = 1", "id = \"one\""),
            "rack.toml:10: `id` must be a number, without quotes, and not of type string: write id = 0, 1, 2 and so on",
        ),
    ]);
}

#[test]
fn amounts_without_a_known_unit_are_refused() {
    let in_rack = |line: &str| with(SHM, "[[node]]\nid = 0", &format!("{line}\n[[node]]\nid = 0"));
    all_refused(&[
        (
            in_rack("memory = \"64 MB\""),
            "rack.toml:4: `64 MB` is not a size in B, KiB, MiB, GiB or TiB: write memory = \"256 MiB\"",
        ),
        (
            in_rack("timeout = \"soon\""),
            "rack.toml:4: `soon` is not a span of time in us, ms, s or min: write timeout = \"1 s\"",
        ),
    ]);
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    let in_rack = |line: &str| with(UDP, "[switch]", &format!("{line}\n[switch]"));
    let in_switch = |line: &str| with(UDP, "[[node]]\nid = 0", &format!("{line}\n[[node]]\nid = 0"));
    all_refused(&[
        (
            in_rack("block = \"5000 B\""),
            "rack.toml:4: blocks of 5000 B are not possible: write a power of two from 64 B to 1 MiB, for example block = \"4 KiB\"",
        ),
        (
            in_rack("cache = \"16 KiB\""),
            "rack.toml:4: a cache of 16 KiB is not possible with blocks of this size: write 32 KiB to 15 TiB",
        ),
        (
            in_rack("timeout = \"1 ms\""),
            "rack.toml:4: a timeout of 1 ms is not possible: write 50 ms to 10 min, for example timeout = \"1 s\"",
        ),
        (
            in_rack("mtu = 576"),
            "rack.toml:4: an mtu of 576 is not possible: write 1280 to 65535, for example mtu = 1500",
        ),
        (
            in_rack("lock_region = \"2 MiB\""),
            "rack.toml:4: regions of 2 MiB are not possible: write a multiple of 8 B up to 1 MiB, for example lock_region = \"64 KiB\"",
        ),
        (
            in_rack("lock_region = \"100 B\""),
            "rack.toml:4: regions of 100 B are not possible: write a multiple of 8 B up to 1 MiB, for example lock_region = \"64 KiB\"",
        ),
        (
            in_rack("name_nodes = 0"),
            "rack.toml:4: 0 nodes cannot keep names: write 1 to 2, or leave it out, and all do",
        ),
        (
            in_rack("most_nodes = 1"),
            "rack.toml:4: 2 nodes in a rack of at most 1 are not possible: write most_nodes = 2 to 64, or leave it out",
        ),
        (
            in_rack("copies = 2\nmost_nodes = 63"),
            "rack.toml:4: 2 copies on 2 nodes are not possible: 1 to 3 are, on as many nodes or more, and with more than one the rack begins with at most 64 nodes less `most_nodes`; change `copies`",
        ),
        (
            in_rack("refill = \"100 B\""),
            "rack.toml:4: 100 B a second are too few for copies that are missing: write 4 KiB or more, for example refill = \"20 MiB\"",
        ),
        (
            in_rack("lock_copies = \"1 TiB\""),
            "rack.toml:4: copies of 1 TiB are not possible: write up to 255 GiB",
        ),
        (
            in_switch("lock_entries = 0"),
            "rack.toml:6: 0 locks are not possible: the switch has room for 1 to 65536, for example lock_entries = 65536; the homes of others keep theirs",
        ),
        (in_rack("mtu = -5"), "rack.toml:4: `mtu` cannot be -5: write mtu = 1500"),
        (
            in_switch("entries = 10_000_000"),
            "rack.toml:6: 10000000 entries are not possible: the switch has room for 1 to 458752, for example entries = 375000; with directory = \"home\" it keeps none",
        ),
        (
            in_switch("directory = \"nowhere\""),
            "rack.toml:6: `nowhere` cannot keep the directory: write directory = \"auto\" (hot blocks in the switch), \"switch\" (all that find room there) or \"home\" (none there)",
        ),
        (
            with(UDP, "\"lab\"", "\"my lab\""),
            "rack.toml:2: `my lab` cannot be a rack's name: write 1 to 32 letters, digits and -, for example name = \"lab\"",
        ),
        (
            with(UDP, "\"udp\"", "\"tcp\""),
            "rack.toml:3: `tcp` is not a transport: write transport = \"udp\" (between machines) or \"shm\" (all places on one machine)",
        ),
    ]);
    let said = refused(&in_rack("memory = \"4 KiB\""));
    assert!(
        said.starts_with(
            "rack.toml:4: 4 KiB of memory per node is not possible with blocks of this size: write 8 KiB to "
        ),
        "{said}"
    );
}

#[test]
fn a_rack_of_more_nodes_than_a_copyset_names_is_refused_at_the_first_too_many() {
    let nodes = |count: usize| {
        let nodes: String = (0..count).map(|id| format!("[[node]]\nid = {id}\n")).collect();
        format!("[rack]\nname = \"lab\"\ntransport = \"shm\"\n{nodes}")
    };
    assert_eq!(parse(&nodes(64)).config.nodes, 64);
    assert_eq!(
        refused(&nodes(66)),
        "rack.toml:132: a rack of 66 nodes is not possible: write at most 64 [[node]] tables"
    );
}

#[test]
fn ids_are_those_from_0_on_each_once() {
    all_refused(&[
        (with(SHM, "id = 1", "id = 0"), "rack.toml:7: two nodes have the id 0: write id = 1, which is free"),
        (
            with(SHM, "id = 0", "id = 2"),
            "rack.toml:5: 2 nodes have the ids 0 to 1, and none has 2: write id = 0, which is free",
        ),
        (
            format!("{}[[node]]\nid = 9\n", with(SHM, "id = 1", "id = 0")),
            "rack.toml:7: two nodes have the id 0: write id = 1, which is free\n\
             rack.toml:9: 3 nodes have the ids 0 to 2, and none has 9: write id = 2, which is free",
        ),
    ]);
}

#[test]
fn what_belongs_to_udp_is_refused_in_shared_memory() {
    let text = with(
        SHM,
        "[[node]]\nid = 0",
        "key = \"rack.key\"\nmtu = 1500\n[[node]]\nid = 0\nlisten = \"127.0.0.1:1\"",
    );
    assert_eq!(
        refused(&text),
        "rack.toml:4: `key` has no meaning (file permissions guard shared memory) with transport = \"shm\": remove it, or write transport = \"udp\"\n\
         rack.toml:5: `mtu` has no meaning (there are no datagrams) with transport = \"shm\": remove it, or write transport = \"udp\"\n\
         rack.toml:8: [[node]] has an address that nothing listens on with transport = \"shm\": remove it, or write transport = \"udp\""
    );
}

/// What is said about a rack whose key file is this one.
fn refused_key(folder: &Path) -> String {
    let text = with(UDP, "[switch]", "key = \"rack.key\"\n[switch]");
    let said = RackFile::parse(&folder.join("rack.toml"), &text).unwrap_err().to_string();
    let key = folder.join("rack.key");
    said.replace(key.to_str().unwrap(), "KEY")
        .replace(folder.join("rack.toml").to_str().unwrap(), "rack.toml")
}

#[test]
fn a_key_file_that_is_not_there_is_named_with_what_to_do() {
    assert_eq!(
        refused_key(&folder("no_key")),
        "rack.toml:4: key file KEY: No such file or directory (os error 2); write a key with: rackmem key KEY, the same for all places"
    );
}

#[test]
fn a_key_file_that_others_may_open_is_refused() {
    let folder = folder("exposed_key");
    key_file(&folder.join("rack.key"), &"0".repeat(64), 0o640);
    assert_eq!(
        refused_key(&folder),
        "rack.toml:4: key file KEY: others may open it (mode 640); run: chmod 600 KEY"
    );
}

#[test]
fn a_key_file_that_holds_something_else_is_refused_without_showing_it() {
    let folder = folder("wrong_key");
    for content in ["secret", &"0".repeat(63), &"0".repeat(65), &"0".repeat(1000)] {
        key_file(&folder.join("rack.key"), content, 0o600);
        assert_eq!(
            refused_key(&folder),
            "rack.toml:4: key file KEY: it must hold 64 hexadecimal digits and nothing else; write one with: rackmem key FILE"
        );
    }
}

#[test]
fn all_mistakes_are_named_at_once_from_the_top_down() {
    let text = "[rack]\ntransport = \"tcp\"\ncache = 5\n[switch]\nentires = 5\n[[node]]\nid = 1\n";
    let error = RackFile::parse(Path::new("rack.toml"), text).unwrap_err();
    let lines: Vec<_> = error.mistakes().iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [Some(1), Some(2), Some(3), Some(5), Some(7)], "{error}");
}
