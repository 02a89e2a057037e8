//! Places that are known by name, or that are not where the rack file says.

use std::net::UdpSocket;
use std::time::Duration;

use rackmem::{Discipline, NodeId, Rack, RackFile};

use super::rig::{Home, Running, eventually, free_port, text};

/// Ports that nobody has.
fn ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

/// A rack file over UDP: what the switch and each node say about where they are.
fn write(home: &Home, switch: &str, nodes: [&str; 2]) -> String {
    let mut text =
        format!("[rack]\nname = \"names\"\ntransport = \"udp\"\nruntime = \"run\"\n[switch]\n{switch}\n");
    for (id, node) in nodes.iter().enumerate() {
        text.push_str(&format!("[[node]]\nid = {id}\n{node}\n"));
    }
    home.write("rack.toml", &text)
}

fn listen(port: u16) -> String {
    format!("listen = \"127.0.0.1:{port}\"")
}

fn until_up(home: &Home, file: &str, incarnation: [u64; 2]) -> [u64; 2] {
    let mut incarnations = [0; 2];
    eventually("all nodes are up", || {
        let status = home.try_output(&["status", "--json", "--config", file]).unwrap_or_default();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
        incarnations = [0, 1].map(|node| status["nodes"][node]["incarnation"].as_u64().unwrap_or(0));
        let up = [0, 1].into_iter().all(|node| status["nodes"][node]["up"] == true);
        up && incarnations.iter().zip(incarnation).all(|(now, before)| *now > before)
    });
    incarnations
}

/// A word of each node's memory is written on the other one.
fn work(path: &str) {
    let file = RackFile::read(path).unwrap();
    // A node is up a moment before it serves applications.
    let mut apps = [0, 1].map(|node| {
        let mut attached = None;
        eventually("it serves applications", || {
            attached = Rack::attach(&file, NodeId(node)).ok();
            attached.is_some()
        });
        attached.expect("as seen").here()
    });
    for node in [0, 1] {
        let [here, there] = &mut apps;
        let word = here.alloc(8, NodeId(node), Discipline::Coherent).unwrap();
        there.write_word(word, 7).unwrap();
        assert_eq!(here.read_word(word), Ok(7));
    }
}

fn end(daemons: impl IntoIterator<Item = Running>) -> Vec<String> {
    let ended = daemons.into_iter().map(|daemon| daemon.signal("TERM").output());
    ended
        .map(|ended| {
            assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
            text(&ended.stderr)
        })
        .collect()
}

#[test]
fn places_that_are_known_by_name_are_a_rack() {
    let home = Home::new("named");
    let places = ports::<3>().map(|port| format!("{}\nadvertise = \"localhost:{port}\"", listen(port)));
    let file = write(&home, &places[0], [&places[1], &places[2]]);
    let nodes = ["0", "1"].map(|id| home.start(&["node", "--id", id, "--config", &file]));
    let switch = home.start(&["switch", "--config", &file]);
    until_up(&home, &file, [0; 2]);
    work(&file);
    end(nodes.into_iter().chain([switch]));
}

#[test]
fn an_advertised_name_that_does_not_resolve_is_said_with_its_line_and_what_to_do() {
    let home = Home::new("unresolved");
    let ports = ports::<3>();
    let switch = format!("{}\nadvertise = \"switch.rackmem.invalid:{}\"", listen(ports[0]), ports[0]);
    let file = write(&home, &switch, [&listen(ports[1]), &listen(ports[2])]);
    let begins = format!(
        "`advertise` of the switch is switch.rackmem.invalid:{} ({file}:7), which cannot be looked up here: ",
        ports[0]
    );
    let ends = "; correct it, or make the name known to this machine (DNS, or its file of hosts)";
    let node = home.start(&["node", "--id", "0", "--config", &file]);
    // An application is told when it gives up.
    let rack = RackFile::read(&file).unwrap();
    let Err(error) = Rack::join_within(&rack, NodeId(1), Duration::from_secs(3)) else {
        panic!("there is no switch")
    };
    let said = error.to_string();
    assert!(
        said.starts_with("the switch at switch.rackmem.invalid:")
            && said.contains(" within 3 s: ")
            && said.contains(&begins),
        "{said}"
    );
    assert!(said.ends_with(ends), "{said}");
    let said = end([node]).remove(0);
    assert!(said.contains(&format!(" WARN  node 0: {begins}")), "{said}");
    assert!(said.contains(&format!("{ends}; it is tried again every second")), "{said}");
    assert!(said.contains(" INFO  node 0: waiting for the switch at switch.rackmem.invalid:"), "{said}");
}

#[test]
fn a_node_that_is_elsewhere_tells_the_others_by_flag_or_environment_also_when_it_comes_back() {
    let home = Home::new("elsewhere_nodes");
    let [switch, nobody, other_nobody, zero, one, one_again] = ports();
    // Held, so that nobody is there.
    let _held = [nobody, other_nobody].map(|port| UdpSocket::bind(("127.0.0.1", port)).unwrap());
    let file = write(&home, &listen(switch), [&listen(nobody), &listen(other_nobody)]);
    let at = |port: u16| format!("127.0.0.1:{port}");
    let node = |id: &str, environment: u16, flag: Option<u16>| {
        let (told, flag) = (at(environment), flag.map(at));
        let mut args = vec!["node", "--id", id, "--config", &file];
        if let Some(flag) = &flag {
            args.extend(["--listen", flag, "--advertise", flag]);
        }
        home.start_with(&args, &[("RACKMEM_LISTEN", &told), ("RACKMEM_ADVERTISE", &told)])
    };
    let switch = home.start(&["switch", "--config", &file]);
    // A flag beats the environment: nobody can listen there.
    let zero = node("0", nobody, Some(zero));
    let first = node("1", one, None);
    let incarnations = until_up(&home, &file, [0; 2]);
    work(&file);
    end([first]);
    let second = node("1", one_again, None);
    until_up(&home, &file, [0, incarnations[1]]);
    work(&file);
    end([zero, second, switch]);
}

#[test]
fn what_the_environment_says_of_a_place_must_be_possible() {
    let home = Home::new("environment");
    let ports = ports::<3>();
    let file = write(&home, &listen(ports[0]), [&listen(ports[1]), &listen(ports[2])]);
    for (variable, value, said) in [
        ("RACKMEM_LISTEN", "node-0:7400", "is not an IP address with a port: set it to one"),
        ("RACKMEM_ADVERTISE", "10.0.0.1", "is neither an IP address nor a host name, with a port"),
    ] {
        let ended = home.start_with(&["node", "--id", "0", "--config", &file], &[(variable, value)]).output();
        let text = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{text}");
        assert!(text.starts_with(&format!("error: {variable}: `{value}` {said}")), "{text}");
    }
    let said = home.mistake(&["switch", "--config", &file, "--advertise", "switch:0"], 2);
    assert!(said.contains("switch:0 has no port that the others could know"), "{said}");
}
