//! An ordered index in coherent memory: a B+ tree whose nodes are blocks (a B-link tree, after Lehman and Yao).
//!
//! Keys have 16 bytes and values 8. Every step is one atomic look at, or one atomic change of, one block
//! ([`Memory::inspect`], [`Memory::update`]). So no operation waits for another one, and a worker that stops in the middle
//! of an operation holds up nobody.
//!
//! | file | holds |
//! | --- | --- |
//! | `node.rs` | what lies in a block, and the steps inside one |
//! | `change.rs` | inserting and removing: nodes are split, and empty leaves left out |
//!
//! # What must always hold
//! 1. A node says where its range of keys ends (its *high key*), and which node has the keys from there on (its *right*
//!    one). A node's range only shrinks, by a split, until the node is dead; a split puts the upper part to the right. So
//!    whoever comes to a node and looks for a key behind its range goes right, and finds it.
//! 2. An entry of an inner node leads to the node with its key, or to one on the left of that. Entries are added after the
//!    split and may be missing for a while, or for good if whoever split a node stopped there: that costs steps to the right.
//! 3. A leaf that became empty is *dead* in the same step, and never changes again. Who comes there goes right, so the right
//!    one has the keys of both from then on.
//! 4. The root stays where it is: what was in it moves to two new nodes when it is split.
//!
//! A change takes effect when it is made in its leaf. [`Tree::scan`] reads leaf by leaf, and each leaf atomically.
//!
//! # Not here
//! Leaves that are not empty are not merged, and the blocks of dead leaves are not used again: somebody may still be on the
//! way to one. A tree is never given back.
//!
//! # Example
//! ```
//! use apps::tree::Tree;
//! use rackmem::{Error, Memory};
//!
//! async fn ages<M: Memory>(mem: &mut M) -> Result<Vec<(u128, u64)>, Error> {
//!     let tree = Tree::create(mem).await?;
//!     for age in [40, 20, 30] {
//!         tree.insert(mem, age, 100 + age as u64).await?;
//!     }
//!     // Another worker, on any node, needs only the root's address.
//!     Tree::at(tree.root()).remove(mem, 20, 120).await?;
//!     tree.scan(mem, 0, 10, u128::MAX).await
//! }
//! # use rackmem::{Config, NodeId, Rack, block_on};
//! # let rack = Rack::embedded(Config { nodes: 2, ..Config::default() })?;
//! # assert_eq!(block_on(ages(&mut rack.node(NodeId(0))))?, [(30, 130), (40, 140)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Memory::inspect`]: rackmem::Memory::inspect
//! [`Memory::update`]: rackmem::Memory::update

mod change;
mod node;

use rackmem::{Discipline, Error, GlobalAddr, Memory, NodeId};
use random::mix;

use node::{Look, Node};

/// A handle of a tree: where its root is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    root: GlobalAddr,
}

impl Tree {
    /// An empty tree. Its nodes are spread over the memory of all nodes of the rack.
    ///
    /// # Errors
    /// If the rack's memory fails or is full.
    ///
    /// # Panics
    /// If blocks have fewer than 256 bytes.
    pub async fn create<M: Memory>(mem: &mut M) -> Result<Self, Error> {
        assert!(mem.block_size().len() >= 256, "nodes of a tree need blocks of 256 bytes or more");
        // What was allocated is zeroes: a leaf without entries, with nothing on its right.
        Ok(Self { root: new_block(mem, 0).await? })
    }

    /// The tree with this root.
    pub const fn at(root: GlobalAddr) -> Self {
        Self { root }
    }

    /// Where the root is, for [`Tree::at`].
    pub const fn root(&self) -> GlobalAddr {
        self.root
    }

    /// Bytes of memory, at most, for a tree of so many entries in blocks of so many bytes.
    pub fn bytes_needed(entries: u64, block: u64) -> u64 {
        let least = (node::capacity(block as usize) / 2).max(1) as u64;
        // Inner nodes add one part in `least`, and that again one.
        let leaves = entries / least + 3;
        (leaves + leaves / least.max(2) * 2 + 2) * block
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn get<M: Memory>(&self, mem: &mut M, key: u128) -> Result<Option<u64>, Error> {
        let get = |node: &Node<'_>| node.find(key).ok().map(|index| node.value(index));
        Ok(walk(mem, self.root, key, 0, get).await?.1)
    }

    /// The first `most` entries from the key `from` on, in order; and no more after the first one whose key is larger than
    /// `until`, which is among them.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn scan<M: Memory>(
        &self,
        mem: &mut M,
        from: u128,
        most: usize,
        until: u128,
    ) -> Result<Vec<(u128, u64)>, Error> {
        let mut found = Vec::new();
        let (mut at, mut from) = (self.root, from);
        while found.len() < most {
            let left = most - found.len();
            let take = |node: &Node<'_>| {
                let first = node.find(from).unwrap_or_else(|index| index);
                let mut taken: Vec<(u128, u64)> = Vec::new();
                for index in (first..node.count()).take(left) {
                    taken.push((node.key(index), node.value(index)));
                    if node.key(index) > until {
                        break;
                    }
                }
                (taken, node.end())
            };
            let (_, (taken, end)) = walk(mem, at, from, 0, take).await?;
            found.extend(taken);
            let Some((high, right)) = end else { break };
            if found.last().is_some_and(|(key, _)| *key > until) {
                break;
            }
            (at, from) = (right, high);
        }
        Ok(found)
    }

    /// The node of this level that has the key, or had it a moment ago. There must be such a level.
    async fn descend<M: Memory>(&self, mem: &mut M, key: u128, level: u64) -> Result<GlobalAddr, Error> {
        Ok(walk(mem, self.root, key, level, |_| ()).await?.0)
    }
}

/// Goes from a node down to the one of this level that has the key, and looks at it.
async fn walk<M: Memory, R>(
    mem: &mut M,
    mut at: GlobalAddr,
    key: u128,
    level: u64,
    mut with: impl FnMut(&Node<'_>) -> R,
) -> Result<(GlobalAddr, R), Error> {
    loop {
        let step = |node: &Node<'_>| if node.level() > level { Err(node.child(key)) } else { Ok(with(node)) };
        match look(mem, at, key, step).await? {
            Look::Right(next) | Look::Here(Err(next)) => at = next,
            Look::Here(Ok(found)) => return Ok((at, found)),
        }
    }
}

/// Looks at a node, unless it is one on the right that has the key.
async fn look<M: Memory, R>(
    mem: &mut M,
    at: GlobalAddr,
    key: u128,
    mut with: impl FnMut(&Node<'_>) -> R,
) -> Result<Look<R>, Error> {
    let len = mem.block_size().len();
    mem.inspect(at, len, |window| {
        let node = Node::new(window);
        match node.right_of(key) {
            Some(right) => Look::Right(right),
            None => Look::Here(with(&node)),
        }
    })
    .await
}

/// A block for a node, of a home that follows from where it will be reached from.
async fn new_block<M: Memory>(mem: &mut M, salt: u64) -> Result<GlobalAddr, Error> {
    let nodes = mem.nodes() as u64;
    let home = mix(salt ^ u64::from(mem.node().0) << 48 ^ mem.now().0) % nodes;
    let len = mem.block_size().bytes();
    mem.alloc(len, NodeId(home as u16), Discipline::Coherent).await
}
