//! What places tell the command in the course of a round, and what it does about it: words that have died are allocated
//! anew, nodes that were declared dead begin another incarnation.

use std::time::{Duration, Instant};

use super::node::{Event, Order, Word};
use super::rounds::{SWITCH, Soak};
use super::waiting::Waiting;
use cli::fault::Fault;

/// How often the command looks whether something has happened.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Soak<'_> {
    pub(super) fn on_event(&mut self, at: usize, event: Event) -> Result<(), Fault> {
        match event {
            Event::Joined => {
                self.joined[at] = true;
                if at != SWITCH && !self.words.is_empty() {
                    self.workers.order(at, Order::Words(self.words.clone()))?;
                }
            }
            Event::Allocated { slot, key, addr } => {
                if self.wanted.get(&slot).is_some_and(|(wanted, _)| *wanted == key) {
                    match addr {
                        Some(addr) => {
                            self.wanted.remove(&slot);
                            if self.args.chains {
                                // All words are in one store.
                                for (word, key) in self.words.iter_mut().zip(key..) {
                                    *word = Word { key, addr };
                                }
                            } else {
                                self.words[slot] = Word { key, addr };
                            }
                            if self.wanted.is_empty() {
                                let words = self.words.clone();
                                self.all_nodes(|| Order::Words(words.clone()))?;
                            }
                        }
                        None => self.want(slot)?,
                    }
                }
            }
            Event::Gone { key, why } => {
                let slot = self.words.iter().position(|word| word.key == key);
                if let Some(slot) = slot.map(|slot| if self.args.chains { 0 } else { slot })
                    && !self.wanted.contains_key(&slot)
                {
                    let (copies, deaths) = (usize::from(self.args.copies), self.died.len());
                    if copies > 1 && deaths < copies {
                        let lost = format!(
                            "word {key} is lost: it has {copies} copies, and {deaths} nodes have died; {} was told: {why}",
                            self.workers.name(at)
                        );
                        return Err(Fault::failed(lost));
                    }
                    self.want(slot)?;
                }
            }
            Event::Fenced => {
                // This incarnation is over; the next one begins empty.
                self.workers.kill(at);
                self.joined[at] = false;
                self.restart(at)?;
            }
            Event::Stuck { what } => {
                return Err(Fault::Stuck(format!("{}: {what}", self.workers.name(at))));
            }
            Event::Copies { whole, stores } => self.has_copies = Some((whole, stores)),
            Event::Idle | Event::Looked | Event::Audited(_) | Event::Witnessed => {}
        }
        Ok(())
    }

    /// Wants a word in this place, from whoever is there.
    pub(super) fn want(&mut self, slot: usize) -> Result<(), Fault> {
        self.keys += 1;
        let key = self.keys;
        let up: Vec<usize> = (1..self.joined.len()).filter(|at| self.joined[*at]).collect();
        if up.is_empty() {
            return Err(Fault::failed("no node is left"));
        }
        let homes: Vec<usize> = up.iter().copied().filter(|at| !self.reborn.contains(at)).collect();
        if homes.is_empty() {
            return Err(Fault::failed(
                "every node has begun another incarnation in this round: give them a longer --timeout-ms",
            ));
        }
        let (asked, home) = (up[self.dice(up.len() as u64)], homes[self.dice(homes.len() as u64)]);
        self.wanted.insert(slot, (key, asked));
        let node = |at: usize| u16::try_from(at - 1).expect("at most 64 nodes");
        let order = if self.args.chains {
            // Each word has its key.
            self.keys += u64::from(self.args.words);
            Order::MakeStore { slot, key, homes: homes.into_iter().map(node).collect() }
        } else {
            Order::Allocate { slot, key, home: node(home) }
        };
        self.workers.order(asked, order)
    }

    pub(super) fn restart(&mut self, at: usize) -> Result<(), Fault> {
        self.incarnations += 1;
        self.reborn.push(at);
        let mut task = self.tasks[at].clone();
        // Its clients are others than those of its former incarnation.
        task.first_client += self.incarnations * 1000;
        let ended = std::mem::replace(&mut self.first_clients[at], task.first_client);
        if at != SWITCH {
            self.died.push(ended..ended + u64::from(task.threads));
        }
        task.seed = task.seed.wrapping_add(self.incarnations << 32);
        self.workers.restart(at, &task)?;
        self.ask_others(at)
    }

    /// What this place was asked to allocate, others are asked for.
    pub(super) fn ask_others(&mut self, at: usize) -> Result<(), Fault> {
        let asked: Vec<usize> =
            self.wanted.iter().filter(|(_, (_, asked))| *asked == at).map(|(slot, _)| *slot).collect();
        asked.into_iter().try_for_each(|slot| self.want(slot))
    }

    pub(super) fn hear_for(&mut self, span: Duration) -> Result<(), Fault> {
        let began = Instant::now();
        while began.elapsed() < span {
            if let Some((at, event)) = self.hear(&mut Waiting::default())? {
                self.on_event(at, event)?;
            }
        }
        Ok(())
    }

    pub(super) fn hear_until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<(), Fault> {
        let mut waiting = Waiting::default();
        while !done(self) {
            self.within(&waiting, what)?;
            if let Some((at, event)) = self.hear(&mut waiting)? {
                self.on_event(at, event)?;
            }
        }
        Ok(())
    }

    /// The next event, if one comes soon.
    pub(super) fn hear(&mut self, waiting: &mut Waiting) -> Result<Option<(usize, Event)>, Fault> {
        if self.interrupt.requested() {
            return Err(Fault::Interrupted);
        }
        waiting.look(Instant::now());
        self.workers.hear(LOOK_EVERY)
    }

    /// Complains about a wait that takes too long.
    pub(super) fn within(&self, waiting: &Waiting, what: &str) -> Result<(), Fault> {
        let most = self.args.stuck();
        if waiting.waited() <= most {
            return Ok(());
        }
        Err(Fault::Stuck(format!("waited {} s for {what}", most.as_secs())))
    }
}
