//! Every order of a few appends to one chain: whatever was sent may arrive at any time, any number of times, at the switch, at the memory,
//! and back; the switch may forget or restart, and a connection may break. Breadth first, so that what is found is found on a
//! shortest way.
//!
//! What must hold in every state: who was told that its entry was appended finds it in the chain, behind the entry that it was told;
//! what was refused is in no chain, then or later; copies of a packet leave the switch alike. And where nothing more can
//! happen, everybody has been told something.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wire::chains::{Next, Reply, Word};
use wire::roce::{AtomicEth, Extension, Packet, Psn};
use wire::{AllRules, Rules, Without};

use crate::chains::rig::{Entry, Rig, client_end};
use crate::chains::scenarios::X;
use crate::chains::table::{Orders, ROWS};

const KEY: u64 = 7;

/// What is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    clients: u16,
    /// The switch knows the tail.
    is_taught: bool,
    /// Compare-and-swaps that each client sends at most.
    attempts: u8,
    forgets: u8,
    restarts: u8,
    breaks: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Told {
    Nothing,
    Appended {
        behind: Entry,
    },
    Indeterminate,
    /// It has lost too often.
    GaveUp,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Client {
    entry: Entry,
    cursor: Entry,
    psn: u32,
    attempts: u8,
    told: Told,
}

/// A compare-and-swap, as a client or the switch has sent it: whose, its number, and address, compare and swap.
type Sent = (u16, u32, [u64; 3]);

#[derive(Clone)]
struct World<R: Rules> {
    rig: Rig<R>,
    clients: Vec<Client>,
    requests: BTreeMap<(u16, u32), (Entry, Entry)>,
    /// What has left the switch.
    forwarded: BTreeSet<Sent>,
    refused: BTreeSet<Entry>,
    broken: BTreeSet<u16>,
    left: [u8; 3],
    has_restarted: bool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    AtSwitch(u16, u32),
    AtMemory(Sent),
    /// An answer passes the switch, and arrives or not.
    Answer(u16, u32, bool),
    Forget,
    Restart,
    Break(u16),
}

impl<R: Rules> World<R> {
    fn new(rules: R, scope: &Scope) -> Self {
        let mut rig = Rig::new(rules, scope.clients + 1, 5);
        rig.switch.admit(KEY);
        // Numbers repeat, as after many uses of slots: so they decide nothing by chance.
        rig.words.insert(X.0, Word::tail(X.version()));
        if scope.is_taught {
            let taught = Entry(2, 4);
            rig.write(scope.clients + 1, taught, KEY);
            rig.swap(scope.clients + 1, X, taught);
        }
        let mut world = Self {
            rig,
            clients: Vec::new(),
            requests: BTreeMap::new(),
            forwarded: BTreeSet::new(),
            refused: BTreeSet::new(),
            broken: BTreeSet::new(),
            left: [scope.forgets, scope.restarts, scope.breaks],
            has_restarted: false,
        };
        for number in 1..=scope.clients {
            let entry = Entry(10 + u32::from(number), u8::try_from(number % 2).unwrap() * 4);
            let client = Client { entry, cursor: X, psn: 0, attempts: scope.attempts, told: Told::Nothing };
            world.clients.push(client);
            world.write_and_swap(number);
        }
        world
    }

    fn client(&mut self, number: u16) -> &mut Client {
        &mut self.clients[usize::from(number) - 1]
    }

    fn write_and_swap(&mut self, number: u16) {
        let entry = self.client(number).entry;
        self.rig.write(number, entry, KEY);
        self.swap(number);
    }

    fn swap(&mut self, number: u16) {
        if self.client(number).attempts == 0 {
            self.client(number).told = Told::GaveUp;
            return;
        }
        let psn = self.rig.number(number).get();
        let client = self.client(number);
        client.attempts -= 1;
        client.psn = psn;
        let request = (client.cursor, client.entry);
        self.requests.insert((number, psn), request);
    }

    fn actions(&self) -> Vec<Action> {
        let alive = |number: &u16| !self.broken.contains(number);
        let mut actions: Vec<Action> = Vec::new();
        let requests = self.requests.keys().filter(|(number, _)| alive(number));
        actions.extend(requests.map(|(number, psn)| Action::AtSwitch(*number, *psn)));
        let forwarded = self.forwarded.iter().filter(|(number, ..)| alive(number));
        actions.extend(forwarded.map(|sent| Action::AtMemory(*sent)));
        for (number, psn) in self.requests.keys().filter(|(number, _)| alive(number)) {
            if self.rig.said(*number, *psn).is_some() {
                actions.extend([true, false].map(|arrives| Action::Answer(*number, *psn, arrives)));
            }
        }
        actions.extend((self.left[0] > 0).then_some(Action::Forget));
        actions.extend((self.left[1] > 0).then_some(Action::Restart));
        if self.left[2] > 0 {
            actions.extend((1..=self.clients.len() as u16).filter(alive).map(Action::Break));
        }
        actions
    }

    fn happen(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::AtSwitch(number, psn) => {
                let (tail, entry) = self.requests[&(number, psn)];
                let packet = self.rig.pass_to_memory(number, Psn::new(psn), tail, entry);
                let Extension::Atomic(word) = packet.extension else { unreachable!() };
                let sent = (number, psn, [word.address, word.compare, word.swap_or_add]);
                let unlike =
                    self.forwarded.iter().any(|other| (other.0, other.1) == (number, psn) && *other != sent);
                if unlike && !self.has_restarted {
                    return Err(format!("copies of packet {psn} of client {number} differ"));
                }
                self.forwarded.insert(sent);
            }
            Action::AtMemory((number, psn, [address, compare, swap_or_add])) => {
                let key = crate::chains::rig::REGION;
                let word = AtomicEth { address, key, swap_or_add, compare };
                let packet = crate::chains::rig::swap_packet(number, Psn::new(psn), X, X);
                self.rig.execute(number, &Packet { extension: Extension::Atomic(word), ..packet });
            }
            Action::Answer(number, psn, arrives) => {
                let original = self.rig.said(number, psn).expect("it was said");
                let told = self.rig.pass_to_client(number, Psn::new(psn), original);
                if let (Some(reply), true) = (told, arrives) {
                    self.hear(number, psn, reply);
                }
            }
            Action::Forget => {
                self.left[0] -= 1;
                self.rig.switch.forget();
            }
            Action::Restart => {
                self.left[1] -= 1;
                self.has_restarted = true;
                self.rig.switch.restart();
            }
            Action::Break(number) => {
                self.left[2] -= 1;
                self.broken.insert(number);
                self.rig.switch.disconnect(client_end(number));
                if self.client(number).told == Told::Nothing {
                    self.client(number).told = Told::Indeterminate;
                }
            }
        }
        self.check()
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
            Reply::Refused => {
                let refused = client.entry;
                client.entry = Entry(refused.0, refused.1.wrapping_add(1));
                self.refused.insert(refused);
                self.write_and_swap(number);
            }
            Reply::Indeterminate => client.told = Told::Indeterminate,
            Reply::Original(bits) => {
                let found = Word::from_bits(bits).filter(|word| word.entry == cursor.version());
                match found.map(|word| word.next) {
                    Some(Next::Tail) => client.told = Told::Appended { behind: cursor },
                    Some(Next::Entry(at, version)) => {
                        client.cursor = Entry(at.unit(), version.0);
                        self.swap(number);
                    }
                    // It knows no tail any more, and finds it anew.
                    Some(Next::Closed) | None => {
                        client.cursor = X;
                        self.swap(number);
                    }
                }
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let chain = self.rig.chain(X);
        for client in &self.clients {
            if let Told::Appended { behind } = client.told {
                let at = chain.iter().position(|entry| *entry == client.entry);
                if at.is_none_or(|at| at == 0 || chain[at - 1] != behind) {
                    return Err(format!("{client:?} is not there: {chain:?}"));
                }
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
            };
            let numbers = u64::from(client.psn) << 8 | u64::from(client.attempts);
            words.extend([entry(client.entry), entry(client.cursor), numbers, told]);
        }
        words.extend(self.left.map(u64::from));
        words.extend(self.broken.iter().map(|number| u64::from(*number)));
        words.push(u64::MAX);
        words.extend(self.rig.words.iter().flat_map(|(unit, word)| [u64::from(*unit), word.to_bits()]));
        words.push(u64::MAX);
        words.extend(self.rig.all_said());
        words.push(u64::MAX);
        for (number, psn, rewritten) in &self.forwarded {
            words.push(u64::from(*number) << 32 | u64::from(*psn));
            words.extend(rewritten);
        }
        words.push(u64::MAX);
        words.extend(self.refused.iter().map(|refused| entry(*refused)));
        words.push(u64::MAX);
        words.extend(self.rig.switch.cells().into_iter().flatten());
        words
    }
}

/// Looks at all states: how many there are, or what is wrong and how it came about.
pub(crate) fn explore<R: Rules>(rules: R, scope: &Scope) -> Result<usize, String> {
    let first = World::new(rules, scope);
    let mut found: BTreeMap<Vec<u64>, usize> = BTreeMap::from([(first.encode(), 0)]);
    let mut came_from: Vec<Option<(usize, Action)>> = vec![None];
    let mut queue = VecDeque::from([(0, first)]);
    while let Some((number, world)) = queue.pop_front() {
        let mut is_over = true;
        for action in world.actions() {
            let mut next = world.clone();
            let outcome = next.happen(action);
            let total = came_from.len();
            let is_new = outcome.is_err() || *found.entry(next.encode()).or_insert(total) == total;
            if is_new {
                is_over = false;
                came_from.push(Some((number, action)));
                outcome.map_err(|why| format!("{why}\n{}", trace(&came_from, total)))?;
                queue.push_back((total, next));
            } else {
                is_over &= found[&next.encode()] == number;
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

const SCOPES: [(&str, Scope); 8] = [
    ("two", Scope { clients: 2, is_taught: true, attempts: 2, forgets: 1, restarts: 0, breaks: 0 }),
    ("two untaught", Scope { clients: 2, is_taught: false, attempts: 3, forgets: 1, restarts: 0, breaks: 0 }),
    ("two, restart", Scope { clients: 2, is_taught: true, attempts: 2, forgets: 0, restarts: 1, breaks: 0 }),
    ("two, break", Scope { clients: 2, is_taught: true, attempts: 2, forgets: 0, restarts: 0, breaks: 1 }),
    ("three", Scope { clients: 3, is_taught: true, attempts: 1, forgets: 0, restarts: 0, breaks: 0 }),
    ("three, forget", Scope { clients: 3, is_taught: true, attempts: 2, forgets: 1, restarts: 0, breaks: 0 }),
    (
        "three untaught",
        Scope { clients: 3, is_taught: false, attempts: 2, forgets: 0, restarts: 0, breaks: 0 },
    ),
    ("three, break", Scope { clients: 3, is_taught: true, attempts: 1, forgets: 0, restarts: 0, breaks: 1 }),
];

#[test]
fn every_order_of_a_few_appends_is_right() {
    for (name, scope) in SCOPES {
        match explore(AllRules, &scope) {
            Ok(states) => println!("{name}: {states} states"),
            Err(why) => panic!("{name}: {why}"),
        }
    }
}

#[test]
fn rules_that_are_left_out_are_missed_in_some_order() {
    fn is_missed<R: Rules>(rules: R) -> bool {
        SCOPES.iter().any(|(_, scope)| explore(rules, scope).is_err())
    }
    for row in ROWS.iter().filter(|row| row.orders == Orders::Appends) {
        assert!(is_missed(Without(row.rule)), "{row:?}");
    }
}
