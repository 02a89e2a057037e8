//! Names on embedded racks.

use rackmem::named::MOST_NAMES;
use rackmem::{Config, NameError, NodeId, Rack, Value};

use crate::names_everywhere::{Nodes, everywhere};

fn embedded(body: fn(Nodes<'_>)) {
    let config = Config { nodes: 3, cache: 1 << 20, memory: 8 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    body(&|node| rack.node(NodeId(node)));
}

everywhere!(embedded);

#[test]
fn a_node_that_keeps_as_many_names_as_it_can_says_so() {
    let config = Config { nodes: 1, cache: 1 << 20, memory: 16 << 20, ..Config::default() };
    let rack = Rack::embedded(config).expect("a possible rack");
    let mut here = rack.here();
    for number in 0..MOST_NAMES {
        here.named::<Value<u8>>(&number.to_string()).create(0).unwrap();
    }
    let full = NameError::Full { name: "more".to_owned(), home: NodeId(0) };
    assert_eq!(here.named::<Value<u8>>("more").create(0).err(), Some(full.clone()));
    assert_eq!(here.named::<Value<u8>>("more").open_or(|| 0).err(), Some(full));
    here.remove_name("17").unwrap();
    here.named::<Value<u8>>("more").create(0).unwrap();
    assert_eq!(here.names("").unwrap().len(), MOST_NAMES);
}
