//! Every order of a few appends where words are bound to queue pairs: whatever was sent may arrive at any time, any number of times, at the
//! switch, at the memory (whose queue pairs keep their order), and back; a chain may be closed meanwhile, the switch may forget or restart,
//! a bound queue pair may begin anew, and a client's connection may break. Breadth first.
//!
//! What must hold in every state is what must hold without binding ([`crate::chains::exhaustive`]), and: who was told that it has closed the chain finds it
//! closed, for ever. What stands for an atomic in its client's own queue pair does nothing there, so it is executed when it has left the
//! switch; its answer may take any time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use switch::chains::Binding;
use wire::chains::{Next, Reply, Word};
use wire::roce::{NakCode, Psn};
use wire::{AllRules, Rules, Without};

use crate::chains::bed::{Bed, Does, Wire};
use crate::chains::bound::{ATOMICS, WRITES};
use crate::chains::rig::{Entry, client_end};
use crate::chains::scenarios::X;
use crate::chains::table::{Orders, ROWS};

const KEY: u64 = 7;
const TAUGHT: Entry = Entry(2, 4);

/// What is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    binding: Binding,
    /// Clients that append; one more closes the chain, if it is closed.
    clients: u16,
    closes: bool,
    /// One whom the switch does not steer, for its entry was written before.
    unseen: bool,
    /// Compare-and-swaps that each client sends at most.
    attempts: u8,
    forgets: u8,
    restarts: u8,
    anew: u8,
    breaks: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Told {
    Nothing,
    Appended {
        behind: Entry,
    },
    Closed,
    Indeterminate,
    /// It has lost too often.
    GaveUp,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Client {
    /// None: it closes the chain.
    entry: Option<Entry>,
    cursor: Entry,
    psn: u32,
    attempts: u8,
    told: Told,
}

#[derive(Clone)]
struct World<R: Rules> {
    bed: Bed<R>,
    clients: Vec<Client>,
    requests: BTreeMap<(u16, u32), (Entry, Next)>,
    /// What stands for them in their own queue pairs was executed.
    filled: BTreeSet<(u16, u32)>,
    refused: BTreeSet<Entry>,
    broken: BTreeSet<u16>,
    left: [u8; 4],
}

#[derive(Clone, Copy, Debug)]
enum Action {
    AtSwitch(u16, u32),
    AtMemory(Wire),
    /// An answer on a bound queue pair passes the switch; what the client is told of it arrives or not.
    Answer(u32, u32, bool),
    /// So does one to what stands for an atomic.
    Fill(u16, u32, bool),
    /// The memory asks for what is missing.
    Nak(u32),
    Forget,
    Restart,
    Anew(usize),
    Break(u16),
}

impl<R: Rules> World<R> {
    fn new(rules: R, scope: &Scope) -> Self {
        let count = scope.clients + u16::from(scope.closes) + u16::from(scope.unseen);
        let mut bed = Bed::new(rules, count + 1, scope.binding);
        bed.switch.admit(KEY);
        bed.words.insert(X.0, Word::tail(X.version()));
        bed.write(count + 1, TAUGHT, KEY);
        bed.swap(count + 1, X, TAUGHT.next());
        bed.told.clear();
        bed.wires.clear();
        let mut world = Self {
            bed,
            clients: Vec::new(),
            requests: BTreeMap::new(),
            filled: BTreeSet::new(),
            refused: BTreeSet::new(),
            broken: BTreeSet::new(),
            left: [scope.forgets, scope.restarts, scope.anew, scope.breaks],
        };
        for number in 1..=count {
            let entry = Entry(10 + u32::from(number), u8::try_from(number % 2).unwrap() * 4);
            let closes = scope.closes && number == scope.clients + 1;
            let is_seen = number <= scope.clients;
            // Those who close or are not steered know where the tail was.
            let cursor = if is_seen { X } else { TAUGHT };
            world.clients.push(Client {
                entry: (!closes).then_some(entry),
                cursor,
                psn: 0,
                attempts: scope.attempts,
                told: Told::Nothing,
            });
            if closes {
                world.swap(number);
            } else if is_seen {
                world.write_and_swap(number);
            } else {
                world.bed.words.insert(entry.0, Word::tail(entry.version()));
                world.swap(number);
            }
        }
        world
    }

    fn client(&mut self, number: u16) -> &mut Client {
        &mut self.clients[usize::from(number) - 1]
    }

    fn write_and_swap(&mut self, number: u16) {
        let entry = self.client(number).entry.expect("it appends");
        self.bed.write(number, entry, KEY);
        self.swap(number);
    }

    fn swap(&mut self, number: u16) {
        if self.client(number).attempts == 0 {
            self.client(number).told = Told::GaveUp;
            return;
        }
        let psn = self.bed.number(number).get();
        let client = self.client(number);
        client.attempts -= 1;
        client.psn = psn;
        let request = (client.cursor, client.entry.map_or(Next::Closed, Entry::next));
        self.requests.insert((number, psn), request);
    }

    fn actions(&self) -> Vec<Action> {
        let alive = |number: &u16| !self.broken.contains(number);
        let requests = || self.requests.keys().filter(|(number, _)| alive(number));
        let mut actions: Vec<Action> =
            requests().map(|(number, psn)| Action::AtSwitch(*number, *psn)).collect();
        actions.extend(self.bed.wires.iter().map(|wire| Action::AtMemory(*wire)));
        for (from, responder) in &self.bed.bound {
            for psn in responder.said.keys() {
                actions.extend([true, false].map(|arrives| Action::Answer(*from, *psn, arrives)));
            }
            let is_ahead =
                |wire: &&Wire| wire.0 == *from && Psn::new(wire.1).since(Psn::new(responder.expected)) > 0;
            actions.extend(self.bed.wires.iter().find(is_ahead).map(|_| Action::Nak(*from)));
        }
        for (number, psn) in self.filled.iter().filter(|(number, _)| alive(number)) {
            actions.extend([true, false].map(|arrives| Action::Fill(*number, *psn, arrives)));
        }
        let [forgets, restarts, anew, breaks] = self.left;
        actions.extend((forgets > 0).then_some(Action::Forget));
        actions.extend((restarts > 0).then_some(Action::Restart));
        if anew > 0 {
            actions.extend((0..self.bed.switch.config().binding.queue_pairs).map(Action::Anew));
        }
        if breaks > 0 {
            actions.extend((1..=self.clients.len() as u16).filter(alive).map(Action::Break));
        }
        actions
    }

    fn happen(&mut self, action: Action) -> Result<(), String> {
        let before = self.bed.wires.clone();
        let mut arrives = true;
        match action {
            Action::AtSwitch(number, psn) => {
                let (tail, next) = self.requests[&(number, psn)];
                if self.bed.ask(number, Psn::new(psn), tail, next).is_some() {
                    self.filled.insert((number, psn));
                }
            }
            Action::AtMemory(wire) => self.bed.deliver(wire),
            Action::Answer(from, psn, does) => {
                arrives = does;
                self.bed.answer(from, psn);
            }
            Action::Fill(number, psn, does) => {
                if let Some(reply) = self.bed.fill(number, Psn::new(psn))
                    && does
                {
                    self.hear(number, psn, reply);
                }
            }
            Action::Nak(from) => self.bed.nak(from, NakCode::SequenceError),
            Action::Forget => {
                self.left[0] -= 1;
                self.bed.switch.forget();
            }
            Action::Restart => {
                self.left[1] -= 1;
                self.bed.restart();
                self.bed.bind_all();
                // The key is held again, and a client begins its connection anew: the last one, if it is told nothing yet.
                self.bed.switch.admit(KEY);
                let (last, chain) = (self.clients.len() as u16, self.bed.chain(X));
                let client = self.client(last);
                if let (Told::Nothing, Some(entry)) = (client.told, client.entry)
                    && !chain.contains(&entry)
                {
                    // What it had asked is indeterminate, and will not be executed: it goes on with its slot in another use.
                    client.entry = Some(Entry(entry.0, entry.1.wrapping_add(1)));
                    self.requests.retain(|(number, _), _| *number != last);
                    self.filled.retain(|(number, _)| *number != last);
                    self.bed.connect(last);
                    self.write_and_swap(last);
                }
            }
            Action::Anew(at) => {
                self.left[2] -= 1;
                self.bed.begin_anew(at);
            }
            Action::Break(number) => {
                self.left[3] -= 1;
                self.broken.insert(number);
                self.bed.switch.disconnect(client_end(number));
                self.bed.take_sent();
                if self.client(number).told == Told::Nothing {
                    self.client(number).told = Told::Indeterminate;
                }
            }
        }
        for (number, psn, reply) in std::mem::take(&mut self.bed.told) {
            if arrives {
                self.hear(number, psn, reply);
            }
        }
        self.copies(&before)?;
        self.check()
    }

    /// Copies of a number are alike, or do nothing.
    fn copies(&self, before: &BTreeSet<Wire>) -> Result<(), String> {
        let new = self.bed.wires.difference(before).filter(|wire| wire.2 != Does::Nothing);
        for (to, psn, does) in new {
            let other = before.iter().find(|wire| (wire.0, wire.1) == (*to, *psn));
            if other.is_some_and(|other| other.2 != *does) {
                return Err(format!("copies of number {psn} of {to} differ: {does:?}"));
            }
        }
        Ok(())
    }

    fn hear(&mut self, number: u16, psn: u32, reply: Reply) {
        let client = self.client(number);
        if client.told != Told::Nothing || client.psn != psn {
            return;
        }
        let cursor = client.cursor;
        match reply {
            Reply::Steered(at, version) => {
                client.told = Told::Appended { behind: Entry(at.unit(), version.0) };
            }
            Reply::Refused => match client.entry {
                Some(refused) => {
                    client.entry = Some(Entry(refused.0, refused.1.wrapping_add(1)));
                    self.refused.insert(refused);
                    self.write_and_swap(number);
                }
                None => client.told = Told::GaveUp,
            },
            Reply::Indeterminate => client.told = Told::Indeterminate,
            Reply::Original(bits) => {
                let found = Word::from_bits(bits).filter(|word| word.entry == cursor.version());
                match (found.map(|word| word.next), client.entry) {
                    (Some(Next::Tail), Some(_)) => client.told = Told::Appended { behind: cursor },
                    (Some(Next::Tail), None) => client.told = Told::Closed,
                    (Some(Next::Entry(at, version)), Some(_)) => {
                        client.cursor = Entry(at.unit(), version.0);
                        self.swap(number);
                    }
                    // It knows no tail any more.
                    _ => client.told = Told::GaveUp,
                }
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let chain = self.bed.chain(X);
        for client in &self.clients {
            if let (Told::Appended { behind }, Some(entry)) = (client.told, client.entry) {
                let at = chain.iter().position(|other| *other == entry);
                if at.is_none_or(|at| at == 0 || chain[at - 1] != behind) {
                    return Err(format!("{client:?} is not there: {chain:?}"));
                }
            }
            if client.told == Told::Closed && self.bed.words[&client.cursor.0].next != Next::Closed {
                return Err(format!("it was closed, and goes on: {chain:?}"));
            }
        }
        let back = chain.iter().find(|entry| self.refused.contains(entry));
        back.map_or(Ok(()), |entry| Err(format!("{entry:?} was refused, and is there: {chain:?}")))
    }

    /// All that decides what can follow.
    fn encode(&self) -> Vec<u64> {
        let mut words = Vec::new();
        let entry = |entry: Entry| u64::from(entry.0) << 8 | u64::from(entry.1);
        for client in &self.clients {
            let told = match client.told {
                Told::Nothing => 0,
                Told::Appended { behind } => 1 << 32 | entry(behind),
                Told::Indeterminate => 2 << 32,
                Told::GaveUp => 3 << 32,
                Told::Closed => 4 << 32,
            };
            let numbers = u64::from(client.psn) << 8 | u64::from(client.attempts);
            words.extend([client.entry.map_or(0, entry), entry(client.cursor), numbers, told]);
        }
        words.extend(self.left.map(u64::from));
        words.extend(self.broken.iter().map(|number| u64::from(*number)));
        words.push(u64::MAX);
        words.extend(self.bed.words.iter().flat_map(|(unit, word)| [u64::from(*unit), word.to_bits()]));
        words.push(u64::MAX);
        for (from, responder) in &self.bed.bound {
            words.extend([u64::from(*from), u64::from(responder.expected)]);
            let said = responder.said.iter();
            words.extend(said.flat_map(|(psn, said)| [u64::from(*psn), said.map_or(u64::MAX, |said| said)]));
            words.push(u64::MAX);
        }
        for (to, psn, does) in &self.bed.wires {
            words.push(u64::from(*to) << 32 | u64::from(*psn));
            words.extend(match *does {
                Does::Nothing => [0, 0, 0],
                Does::Write { unit, word } => [1, u64::from(unit), word],
                Does::Swap { unit, compare, swap } => [2 | u64::from(unit) << 8, compare, swap],
            });
        }
        words.push(u64::MAX);
        words.extend(self.filled.iter().map(|(number, psn)| u64::from(*number) << 32 | u64::from(*psn)));
        words.push(u64::MAX);
        words.extend(self.refused.iter().map(|refused| entry(*refused)));
        words.push(u64::MAX);
        words.extend(self.bed.switch.cells().into_iter().flatten());
        words
    }
}

/// More states than there are, but for a mutant that has no end. (Where there is no capacity, each repeat takes a number, which has no end, either: a
/// scenario looks at that.)
const MOST: usize = 30_000;
/// As many are looked at where a rule is left out.
const FEW: usize = 2_500;

/// Looks at all states: how many there are, or what is wrong and how it came about.
pub(crate) fn explore<R: Rules>(rules: R, scope: &Scope, most: usize) -> Result<usize, String> {
    let first = World::new(rules, scope);
    let mut found: BTreeMap<Vec<u64>, usize> = BTreeMap::from([(first.encode(), 0)]);
    let mut came_from: Vec<Option<(usize, Action)>> = vec![None];
    let mut queue = VecDeque::from([(0, first)]);
    while let Some((number, world)) = queue.pop_front() {
        if came_from.len() > most {
            break;
        }
        let mut is_over = true;
        for action in world.actions() {
            let mut next = world.clone();
            let outcome = next.happen(action);
            let total = came_from.len();
            let known = match &outcome {
                Ok(()) => *found.entry(next.encode()).or_insert(total),
                Err(_) => total,
            };
            is_over &= known == number;
            if known == total {
                came_from.push(Some((number, action)));
                outcome.map_err(|why| format!("{why}\n{}", trace(&came_from, total)))?;
                queue.push_back((total, next));
            }
        }
        if is_over && world.clients.iter().any(|client| client.told == Told::Nothing) {
            return Err(format!("somebody waits for ever\n{}", trace(&came_from, number)));
        }
    }
    Ok(came_from.len())
}

fn trace(came_from: &[Option<(usize, Action)>], mut at: usize) -> String {
    let mut actions = Vec::new();
    while let Some((before, action)) = came_from[at] {
        actions.push(format!("{action:x?}"));
        at = before;
    }
    actions.reverse();
    actions.join("\n")
}

const ONE: Scope = Scope {
    binding: WRITES,
    clients: 1,
    closes: false,
    unseen: false,
    attempts: 2,
    forgets: 0,
    restarts: 0,
    anew: 0,
    breaks: 0,
};
const TWO: Scope = Scope { clients: 2, ..ONE };
const SCOPES: [(&str, Scope); 10] = [
    ("two, atomics", Scope { binding: ATOMICS, ..TWO }),
    ("two", TWO),
    ("two, forget", Scope { forgets: 1, attempts: 1, ..TWO }),
    ("two, two queue pairs", Scope { binding: Binding { queue_pairs: 2, ..WRITES }, ..TWO }),
    ("two, restart", Scope { restarts: 1, ..TWO }),
    ("two, anew", Scope { anew: 1, ..TWO }),
    ("two, break", Scope { breaks: 1, ..TWO }),
    ("one, closed", Scope { closes: true, ..ONE }),
    ("one and one unseen", Scope { unseen: true, attempts: 2, ..ONE }),
    ("three", Scope { clients: 3, attempts: 1, ..ONE }),
];

#[test]
fn every_order_of_a_few_bound_appends_is_right() {
    for (name, scope) in SCOPES {
        let begun = std::time::Instant::now();
        match explore(AllRules, &scope, MOST) {
            Ok(states) if states > MOST => panic!("{name}: more than {states} states"),
            Ok(states) => println!("{name}: {states} states, {:?}", begun.elapsed()),
            Err(why) => panic!("{name}: {why}"),
        }
    }
}

#[test]
fn rules_of_binding_that_are_left_out_are_missed_in_some_order() {
    fn is_missed<R: Rules>(rules: R) -> bool {
        SCOPES.iter().any(|(_, scope)| explore(rules, scope, FEW).is_err())
    }
    for row in ROWS.iter().filter(|row| row.orders == Orders::Bound) {
        assert!(is_missed(Without(row.rule)), "{row:?}");
    }
}
