//! Inserting and removing.
//!
//! What must always hold: nodes are changed one at a time, each from what it was seen to be. Whoever comes too late, begins
//! again at that node.

use rackmem::{Error, GlobalAddr, Memory};

use super::node::{Content, Look, Node};
use super::{Tree, look, new_block};

/// What an attempt to insert into a node came to.
enum Attempt {
    Done(bool),
    Right(GlobalAddr),
    /// It was the root, and has become an inner node.
    Deeper,
    /// It has to be split: what it holds, and its version.
    Full(Content, u64),
}

impl Tree {
    /// Adds an entry. False, and nothing is changed, if the key is there.
    ///
    /// # Errors
    /// If the rack's memory fails or is full.
    pub async fn insert<M: Memory>(&self, mem: &mut M, key: u128, value: u64) -> Result<bool, Error> {
        // Where nodes were split on the way: the new node of each level has to be entered in the one above.
        let mut pending = vec![(0, key, value)];
        let mut inserted = false;
        while let Some((level, key, value)) = pending.pop() {
            if let Some(split) = self.insert_at(mem, (level, key, value), &mut inserted).await? {
                // Once more after the split; and before that the new node's entry.
                pending.push((level, key, value));
                pending.extend(split);
            }
        }
        Ok(inserted)
    }

    /// Inserts into the node of this level. If it had to be split first, gives what has to be inserted above.
    async fn insert_at<M: Memory>(
        &self,
        mem: &mut M,
        (level, key, value): (u64, u128, u64),
        inserted: &mut bool,
    ) -> Result<Option<Option<(u64, u128, u64)>>, Error> {
        let len = mem.block_size().len();
        let mut at = self.descend(mem, key, level).await?;
        loop {
            let attempt = mem.update(at, len, |window| {
                let node = Node::new(window);
                if let Some(right) = node.right_of(key) {
                    return Attempt::Right(right);
                }
                if node.level() != level {
                    return Attempt::Deeper;
                }
                match node.find(key) {
                    // Another node begins here now: it is the nearer one.
                    Ok(index) if level > 0 => node.set_value(index, value),
                    Ok(_) => return Attempt::Done(false),
                    Err(_) if node.is_full() => return Attempt::Full(node.content(), node.version()),
                    Err(index) => node.insert(index, (key, value)),
                }
                Attempt::Done(true)
            });
            match attempt.await? {
                Attempt::Done(done) => {
                    *inserted |= level == 0 && done;
                    return Ok(None);
                }
                Attempt::Right(right) => at = right,
                Attempt::Deeper => at = self.descend(mem, key, level).await?,
                Attempt::Full(content, version) => {
                    return Ok(Some(self.split(mem, at, key, (content, version)).await?));
                }
            }
        }
    }

    /// Splits a node, if it is still what it was. Gives the entry that belongs into the level above.
    async fn split<M: Memory>(
        &self,
        mem: &mut M,
        at: GlobalAddr,
        key: u128,
        (mut lower, version): (Content, u64),
    ) -> Result<Option<(u64, u128, u64)>, Error> {
        let count = lower.entries.len();
        // Keys that come in order leave full nodes behind.
        let is_last = lower.entries.last().is_some_and(|(last, _)| *last < key);
        let cut = if is_last { count - 1 } else { count / 2 };
        let entries = lower.entries.split_off(cut);
        let first = entries[0].0;
        let upper = Content { level: lower.level, entries, end: lower.end };
        let new = place(mem, &upper).await?;
        lower.end = Some((first, new));
        if at != self.root {
            if self.replace(mem, at, version, &lower).await? {
                return Ok(Some((lower.level + 1, first, new.bits())));
            }
            mem.free(new).await?;
            return Ok(None);
        }
        let left = place(mem, &lower).await?;
        let entries = vec![(0, left.bits()), (first, new.bits())];
        let root = Content { level: lower.level + 1, entries, end: None };
        if !self.replace(mem, at, version, &root).await? {
            mem.free(new).await?;
            mem.free(left).await?;
        }
        Ok(None)
    }

    /// Writes a node anew, unless it was changed meanwhile.
    async fn replace<M: Memory>(
        &self,
        mem: &mut M,
        at: GlobalAddr,
        version: u64,
        content: &Content,
    ) -> Result<bool, Error> {
        let len = mem.block_size().len();
        mem.update(at, len, |window| {
            let node = Node::new(window);
            let same = node.version() == version;
            if same {
                node.set(content);
            }
            same
        })
        .await
    }

    /// Takes an entry away, if the key has this value. False if it has not.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub async fn remove<M: Memory>(&self, mem: &mut M, key: u128, value: u64) -> Result<bool, Error> {
        let len = mem.block_size().len();
        let mut at = self.descend(mem, key, 0).await?;
        loop {
            let (root, is_root) = (self.root, at == self.root);
            let removed = mem.update(at, len, |window| {
                let node = Node::new(window);
                if let Some(right) = node.right_of(key) {
                    return Look::Right(right);
                }
                if node.level() > 0 {
                    return Look::Right(root);
                }
                let Ok(index) = node.find(key) else { return Look::Here((false, None)) };
                if node.value(index) != value {
                    return Look::Here((false, None));
                }
                node.remove(index);
                let right = node.end().filter(|_| node.count() == 0 && !is_root).map(|(_, right)| right);
                if right.is_some() {
                    node.die();
                }
                Look::Here((true, right))
            });
            match removed.await? {
                Look::Right(right) if right == root => at = self.descend(mem, key, 0).await?,
                Look::Right(right) => at = right,
                Look::Here((removed, None)) => return Ok(removed),
                Look::Here((_, Some(right))) => {
                    self.leave_out(mem, key, at, right).await?;
                    return Ok(true);
                }
            }
        }
    }

    /// Leads past a dead leaf: from its parent, and from the leaf that now stands in front.
    async fn leave_out<M: Memory>(
        &self,
        mem: &mut M,
        key: u128,
        dead: GlobalAddr,
        right: GlobalAddr,
    ) -> Result<(), Error> {
        let len = mem.block_size().len();
        let mut at = self.descend(mem, key, 1).await?;
        let before = loop {
            let step = mem.update(at, len, |window| {
                let node = Node::new(window);
                if let Some(right) = node.right_of(key) {
                    return Look::Right(right);
                }
                if node.level() != 1 {
                    return Look::Here(None);
                }
                let index = node.find(key).unwrap_or_else(|index| index.saturating_sub(1));
                if node.value(index) == dead.bits() {
                    node.set_value(index, right.bits());
                    if index + 1 < node.count() && node.value(index + 1) == right.bits() {
                        node.remove(index + 1);
                    }
                }
                Look::Here(index.checked_sub(1).map(|before| GlobalAddr::from_bits(node.value(before))))
            });
            match step.await? {
                Look::Right(right) => at = right,
                Look::Here(before) => break before,
            }
        };
        // The one in front may have another parent, or not be known there: then scans look at the dead one, too.
        let Some(mut at) = before else { return Ok(()) };
        while let Look::Here(Some((_, next))) = look(mem, at, 0, |node| node.end()).await? {
            if next == dead {
                let past = |window: &rackmem::Window<'_>| {
                    let node = Node::new(window);
                    if node.end().is_some_and(|(_, next)| next == dead) && node.right_of(0).is_none() {
                        node.set_right(right);
                    }
                };
                return mem.update(at, len, past).await;
            }
            if next == right {
                break;
            }
            at = next;
        }
        Ok(())
    }
}

/// A new block with a node that nobody knows yet.
async fn place<M: Memory>(mem: &mut M, content: &Content) -> Result<GlobalAddr, Error> {
    let salt = content.entries.first().map_or(0, |(key, value)| (key >> 64) as u64 ^ *key as u64 ^ *value);
    let at = new_block(mem, salt).await?;
    let len = mem.block_size().len();
    mem.update(at, len, |window| Node::new(window).set(content)).await?;
    Ok(at)
}
