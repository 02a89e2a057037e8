//! What is asked of other nodes for chains, as words: of the metadata server, and of memory about connections.
//!
//! ```text
//!   serve     1 | incarnation | setup: lease | quarantine | more copies 32, units at each home 32 | generation | homes
//!   describe  2 | also one that cannot go on
//!   do        3 | store | thread | number | a client's call
//!   told      4 | store | thread | appends: key, behind 32 at 32, version 8 kind 32
//!   connect   5 | thread | first packet to memory 32, to the client 32 | outstanding | store | generation
//!   fence     6 | node 16, incarnation 32
//!   end       7 | store
//!   follow    8 | store | inputs that all backups have | number of the first one here | inputs
//!   stop      9 | store | generation
//!   reform    10 | address | the store
//!   back      11 | address | time | piece 32, pieces 32 | words of the store | the store | words
//!   changed   12 | home | copy | pass 32, unit 32
//!   home      address | key 32, incarnation 32
//!   input     kind 8, words 8 | when | client, number, call | client, append | key, outcome | client
//! ```
//!
//! A store is named by the home that it began with first. Where one has ended, another may have begun with the same address.
//! What must always hold: what is read is what was written, and nothing else is read; no location is read that cannot be.

use chain::metadata::ClientId;
use chain::server::{Batch, Input, Logged};
use chain::words::{slot, slot_of};
use chain::{Appended, Call, Outcome};
use wire::chain_pair::THREADS;
use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location};
use wire::roce::{Key, Psn};
use wire::{GlobalAddr, Incarnation, Nanos, NodeId};

use super::store::{Home, Setup, Store};

/// Parts of memory that have changed of which is told at a time.
pub(crate) const MOST_CHANGED: usize = 1024;

/// A connection begins, as its client says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Connect {
    pub(crate) thread: u16,
    pub(crate) to_memory: Psn,
    pub(crate) to_client: Psn,
    pub(crate) outstanding: u32,
    /// For which store, as it was in which generation.
    pub(crate) store: Home,
    pub(crate) generation: u32,
}

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Be the metadata server of a new store, whose address was allocated in this incarnation of its home: in another one,
    /// it is somebody else's.
    Serve { incarnation: Incarnation, setup: Setup },
    /// What is the store made of, that was named in this life of its address's node, or the one that is there? Of one whose server cannot
    /// go on, because all copies of something are dead, that is refused if not asked for.
    Describe { life: Option<Incarnation>, failed_too: bool },
    /// A client's call. The same number again: the same call, whose answer was lost.
    Do { store: Home, thread: u16, number: u32, call: Call },
    /// A client tells what it has appended. Nobody answers.
    Told { store: Home, thread: u16, appends: Vec<Appended> },
    /// Memory: a client's connection begins, or begins anew.
    Connect(Connect),
    /// Memory: that incarnation of a node is over; execute nothing of it any more.
    Fence { node: NodeId, incarnation: Incarnation },
    /// The store ends.
    End { store: Home },
    /// A backup of the metadata server: this is what has happened to the primary.
    Follow { store: Home, batch: Batch },
    /// End all connections of the store that were begun in an older generation, and begin none. Which one is the oldest by now that
    /// counts is answered.
    Stop { store: Home, generation: u32 },
    /// A backup of the metadata server: this is what the store is made of by now.
    Reform { store: Store },
    /// Memory: what has changed in this before that pass of that copy began, from this unit on? Pass 0: note it from now on. Answered are
    /// units, first 32 and behind the last 32, at most [`MOST_CHANGED`].
    Changed { home: Home, copy: u64, pass: u32, first: u32 },
    /// Be a backup of this store's metadata server, which knew this at that time: a piece of what it knew.
    Back { store: Store, at: Nanos, piece: u32, pieces: u32, words: Vec<u64> },
}

impl Ask {
    /// As it travels.
    pub(crate) fn words(&self) -> Vec<u64> {
        match self {
            Self::Serve { incarnation, setup } => {
                [vec![1, u64::from(incarnation.0)], setup_words(setup)].concat()
            }
            Self::Describe { life, failed_too } => {
                let of = life.map(|life| u64::from(life.0));
                [2, (*failed_too).into()].into_iter().chain(of).collect()
            }
            Self::Do { store, thread, number, call } => {
                let [addr, key] = home_words(store);
                [vec![3, addr, key, u64::from(*thread), u64::from(*number)], call_words(call)].concat()
            }
            Self::Told { store, thread, appends } => {
                let appends = appends.iter().flat_map(append_words);
                let [addr, key] = home_words(store);
                [4, addr, key, u64::from(*thread)].into_iter().chain(appends).collect()
            }
            Self::Connect(Connect { thread, to_memory, to_client, outstanding, store, generation }) => {
                let first = u64::from(to_memory.get()) << 32 | u64::from(to_client.get());
                let [addr, key] = home_words(store);
                vec![5, u64::from(*thread), first, u64::from(*outstanding), addr, key, u64::from(*generation)]
            }
            Self::Fence { node, incarnation } => vec![6, u64::from(node.0) << 32 | u64::from(incarnation.0)],
            Self::End { store } => {
                let [addr, key] = home_words(store);
                vec![7, addr, key]
            }
            Self::Follow { store, batch: Batch { all_have, from, inputs } } => {
                let [addr, key] = home_words(store);
                let inputs = inputs.iter().flat_map(input_words);
                [8, addr, key, *all_have, *from].into_iter().chain(inputs).collect()
            }
            Self::Stop { store, generation } => {
                let [addr, key] = home_words(store);
                vec![9, addr, key, u64::from(*generation)]
            }
            Self::Changed { home, copy, pass, first } => {
                let [addr, key] = home_words(home);
                vec![12, addr, key, *copy, u64::from(*pass) << 32 | u64::from(*first)]
            }
            Self::Reform { store } => [vec![10, store.addr.bits()], store_words(store)].concat(),
            Self::Back { store, at, piece, pieces, words } => {
                let its = store_words(store);
                let pieces = u64::from(*piece) << 32 | u64::from(*pieces);
                let head = [11, store.addr.bits(), at.0, pieces, its.len() as u64];
                [&head[..], &its, words].concat()
            }
        }
    }

    /// Reads one.
    pub(crate) fn parse(words: &[u64]) -> Option<Self> {
        let thread = |word: u64| u16::try_from(word).ok().filter(|thread| *thread < THREADS);
        match *words {
            [1, incarnation, ref setup @ ..] => Some(Self::Serve {
                incarnation: Incarnation(u32::try_from(incarnation).ok()?),
                setup: setup_of(setup)?,
            }),
            [2, failed_too @ (0 | 1), ref of @ ..] => {
                let life = match *of {
                    [] => None,
                    [life] => Some(Incarnation(u32::try_from(life).ok()?)),
                    _ => return None,
                };
                Some(Self::Describe { life, failed_too: failed_too == 1 })
            }
            [3, addr, key, by, number, ref call @ ..] => {
                let (store, number) = (home_of(&[addr, key]), u32::try_from(number).ok()?);
                Some(Self::Do { store, thread: thread(by)?, number, call: call_of(call)? })
            }
            [4, addr, key, by, ref appends @ ..] => {
                let store = home_of(&[addr, key]);
                let (appends, rest) = appends.as_chunks::<3>();
                let appends = appends.iter().map(append_of).collect::<Option<_>>()?;
                rest.is_empty().then_some(Self::Told { store, thread: thread(by)?, appends })
            }
            [5, by, first, outstanding, addr, key, generation] => {
                let outstanding = u32::try_from(outstanding).ok().filter(|many| (1..=256).contains(many))?;
                let psn = |bits: u64| (bits >> 24 == 0).then(|| Psn::new(bits as u32));
                Some(Self::Connect(Connect {
                    thread: thread(by)?,
                    to_memory: psn(first >> 32)?,
                    to_client: psn(first & 0xffff_ffff)?,
                    outstanding,
                    store: home_of(&[addr, key]),
                    generation: u32::try_from(generation).ok()?,
                }))
            }
            [6, whose] => {
                let node = NodeId(u16::try_from(whose >> 32).ok()?);
                Some(Self::Fence { node, incarnation: Incarnation(whose as u32) })
            }
            [7, addr, key] => Some(Self::End { store: home_of(&[addr, key]) }),
            [8, addr, key, all_have, from, ref rest @ ..] => {
                let (mut inputs, mut rest) = (Vec::new(), rest);
                while let [head, left @ ..] = rest {
                    let (words, left) = left.split_at_checked((head >> 8) as usize)?;
                    inputs.push(input_of(*head & 0xff, words)?);
                    rest = left;
                }
                Some(Self::Follow { store: home_of(&[addr, key]), batch: Batch { all_have, from, inputs } })
            }
            [9, addr, key, generation] => {
                Some(Self::Stop { store: home_of(&[addr, key]), generation: u32::try_from(generation).ok()? })
            }
            [10, addr, ref store @ ..] => {
                Some(Self::Reform { store: store_of(GlobalAddr::from_bits(addr), store)? })
            }
            [11, addr, at, pieces, its, ref rest @ ..] => {
                let (store, words) = rest.split_at_checked(usize::try_from(its).ok()?)?;
                let store = store_of(GlobalAddr::from_bits(addr), store)?;
                let (piece, pieces) = ((pieces >> 32) as u32, pieces as u32);
                Some(Self::Back { store, at: Nanos(at), piece, pieces, words: words.to_vec() })
            }
            [12, addr, key, copy, pass] => {
                let (pass, first) = ((pass >> 32) as u32, pass as u32);
                Some(Self::Changed { home: home_of(&[addr, key]), copy, pass, first })
            }
            _ => None,
        }
    }
}

fn append_words(append: &Appended) -> [u64; 3] {
    let Appended { key, behind, at, version, kind } = *append;
    let locations = u64::from(behind.to_bits()) << 32 | u64::from(at.to_bits());
    [key, locations, u64::from(version.0) << 32 | kind as u64]
}

fn append_of([key, locations, rest]: &[u64; 3]) -> Option<Appended> {
    let kind = match *rest as u32 {
        1 => EntryKind::Value,
        2 => EntryKind::Deleted,
        _ => return None,
    };
    let version = EntryVersion(u8::try_from(rest >> 32).ok()?);
    let (behind, at) = (location(locations >> 32)?, location(locations & 0xffff_ffff)?);
    Some(Appended { key: *key, behind, at, version, kind })
}

/// What has happened to a metadata server.
fn input_words(Logged { at, input }: &Logged) -> Vec<u64> {
    let (kind, words) = match input {
        Input::Call(client, number, call) => {
            (1, [vec![client.0, u64::from(*number)], call_words(call)].concat())
        }
        Input::Told(client, append) => (2, [&[client.0][..], &append_words(append)].concat()),
        Input::Outcome(key, outcome) => (3, [vec![*key], outcome_words(outcome)].concat()),
        Input::Death(client) => (4, vec![client.0]),
        Input::Due => (5, Vec::new()),
    };
    [kind | (words.len() as u64 + 1) << 8, at.0].into_iter().chain(words).collect()
}

/// Reads it: of this kind.
fn input_of(kind: u64, words: &[u64]) -> Option<Logged> {
    let (at, words) = words.split_first()?;
    let input = match (kind, words) {
        (1, [client, number, call @ ..]) => {
            Input::Call(ClientId(*client), u32::try_from(*number).ok()?, call_of(call)?)
        }
        (2, [client, append @ ..]) => Input::Told(ClientId(*client), append_of(append.try_into().ok()?)?),
        (3, [key, outcome @ ..]) => Input::Outcome(*key, outcome_of(outcome)?),
        (4, [client]) => Input::Death(ClientId(*client)),
        (5, []) => Input::Due,
        _ => return None,
    };
    Some(Logged { at: Nanos(*at), input })
}

fn outcome_words(outcome: &Outcome) -> Vec<u64> {
    match outcome {
        Outcome::Read(None) => vec![1],
        Outcome::Read(Some(head)) => [&[2][..], &head.to_words()].concat(),
        Outcome::Written => vec![3],
        Outcome::Swapped(word) => vec![4, *word],
        // What a metadata server does about both is the same.
        Outcome::Unknown | Outcome::Superseded => vec![5],
        Outcome::Dead => vec![6],
    }
}

fn outcome_of(words: &[u64]) -> Option<Outcome> {
    Some(match *words {
        [1] => Outcome::Read(None),
        [2, ref head @ ..] => Outcome::Read(Some(EntryHead::from_words(head.try_into().ok()?)?)),
        [3] => Outcome::Written,
        [4, word] => Outcome::Swapped(word),
        [5] => Outcome::Unknown,
        [6] => Outcome::Dead,
        _ => return None,
    })
}

/// Memory of a store.
fn home_words(home: &Home) -> [u64; 2] {
    [home.addr.bits(), u64::from(home.key.0) << 32 | u64::from(home.incarnation.0)]
}

/// Reads it.
fn home_of(&[addr, key]: &[u64; 2]) -> Home {
    Home {
        addr: GlobalAddr::from_bits(addr),
        key: Key((key >> 32) as u32),
        incarnation: Incarnation(key as u32),
    }
}

/// A store's description.
pub(crate) fn setup_words(setup: &Setup) -> Vec<u64> {
    let Setup { lease, quarantine, each, copies, generation, homes } = setup;
    let homes = homes.iter().flat_map(home_words);
    let units = u64::from(copies - 1) << 32 | u64::from(*each);
    [lease.0, quarantine.0, units, u64::from(*generation)].into_iter().chain(homes).collect()
}

/// A store, as a server of it says what it is: incarnation, servers 32 at 32 | its name | servers: node 32, incarnation 32 | setup.
pub(crate) fn store_words(store: &Store) -> Vec<u64> {
    let Store { incarnation, name, servers, setup, .. } = store;
    let head = (servers.len() as u64) << 32 | u64::from(incarnation.0);
    let servers = servers.iter().map(|(node, its)| u64::from(node.0) << 32 | u64::from(its.0));
    [head].into_iter().chain(home_words(name)).chain(servers).chain(setup_words(setup)).collect()
}

/// Reads it: of the store at this address.
pub(crate) fn store_of(addr: GlobalAddr, words: &[u64]) -> Option<Store> {
    let [head, name, key, rest @ ..] = words else { return None };
    let (servers, setup) = rest.split_at_checked((head >> 32) as usize)?;
    let server = |word: &u64| Some((NodeId(u16::try_from(word >> 32).ok()?), Incarnation(*word as u32)));
    Some(Store {
        addr,
        incarnation: Incarnation(*head as u32),
        name: home_of(&[*name, *key]),
        servers: servers.iter().map(server).collect::<Option<_>>()?,
        setup: setup_of(setup)?,
    })
}

/// Reads one.
pub(crate) fn setup_of(words: &[u64]) -> Option<Setup> {
    let [lease, quarantine, each, generation, homes @ ..] = words else { return None };
    let (homes, left) = homes.as_chunks::<2>();
    let homes: Vec<Home> = homes.iter().map(home_of).collect();
    let copies = u8::try_from(*each >> 32).ok()?.checked_add(1)?;
    let (lease, quarantine) = (Nanos(*lease), Nanos(*quarantine));
    let generation = u32::try_from(*generation).ok()?;
    let setup = Setup { lease, quarantine, each: *each as u32, copies, generation, homes };
    let is_whole = left.is_empty() && setup.homes.len().is_multiple_of(copies.into());
    let are_copies = is_whole && setup.is_spread();
    let is_one = lease < quarantine && setup.homes.iter().all(|home| home.addr.home().index() < 64);
    let has_units = Setup::units(setup.each, setup.parts()).is_some();
    (are_copies && is_one && has_units).then_some(setup)
}

fn location(bits: u64) -> Option<Location> {
    Location::from_bits(u32::try_from(bits).ok()?)
}

fn call_words(call: &Call) -> Vec<u64> {
    match *call {
        Call::Find { key } => vec![1, key],
        Call::FindSome { key, more } => vec![6, key, u64::from(more)],
        Call::Slots { class, count } => vec![2, u64::from(class.number()), u64::from(count)],
        Call::Create { key, at, version } => vec![3, key, slot(at, version)],
        Call::Settle { is_in_flight: true, key, at, version } => vec![4, key, slot(at, version)],
        Call::Settle { is_in_flight: false, key, at, version } => vec![8, key, slot(at, version)],
        Call::Renew { at, version } => vec![5, slot(at, version)],
        Call::Finish { key } => vec![7, key],
    }
}

fn call_of(words: &[u64]) -> Option<Call> {
    match *words {
        [1, key] => Some(Call::Find { key }),
        [7, key] => Some(Call::Finish { key }),
        [6, key, more] => Some(Call::FindSome { key, more: u32::try_from(more).ok()? }),
        [2, class, count] => {
            let class = Class::new(u8::try_from(class).ok()?)?;
            Some(Call::Slots { class, count: u32::try_from(count).ok()? })
        }
        [5, word] => slot_of(word).map(|(at, version)| Call::Renew { at, version }),
        [what @ (3 | 4 | 8), key, word] => {
            let (at, version) = slot_of(word)?;
            Some(if what == 3 {
                Call::Create { key, at, version }
            } else {
                Call::Settle { is_in_flight: what == 4, key, at, version }
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chain::Answer;
    use chain::words::{answer_of, answer_words};
    use wire::chains::{Next, UNITS, Word};

    fn at(class: u8, unit: u32) -> Location {
        Location::new(Class::new(class).unwrap(), unit)
    }

    #[test]
    fn what_is_asked_is_read_as_it_was_written() {
        let (location, version) = (at(15, UNITS - 1), EntryVersion(255));
        let home = Home {
            addr: GlobalAddr::new(NodeId(63), 77),
            key: Key(u32::MAX),
            incarnation: Incarnation(u32::MAX),
        };
        let (lease, quarantine) = (Nanos(1), Nanos(2));
        let generation = u32::MAX;
        let setup = Setup { lease, quarantine, each: 9, copies: 1, generation, homes: vec![home; 2] };
        let at_two = |node| Home { addr: GlobalAddr::new(NodeId(node), 64), ..home };
        let two = Setup { copies: 2, homes: [0, 1, 1, 0].map(at_two).into(), ..setup.clone() };
        let together = Setup { copies: 2, homes: [0, 0, 0, 0].map(at_two).into(), ..setup.clone() };
        let in_one_part = Setup { copies: 2, homes: [0, 1].map(at_two).into(), ..setup.clone() };
        let odd = Setup { copies: 2, homes: [0, 1, 2].map(at_two).into(), ..setup.clone() };
        assert_eq!(setup_of(&setup_words(&in_one_part)), Some(in_one_part));
        for none in [together, odd] {
            assert_eq!(setup_of(&setup_words(&none)), None, "{none:?}");
        }
        let calls = [
            Call::Find { key: u64::MAX },
            Call::FindSome { key: u64::MAX, more: 9 },
            Call::Slots { class: Class::new(15).unwrap(), count: 9 },
            Call::Create { key: 1, at: location, version },
            Call::Settle { is_in_flight: true, key: 2, at: at(0, 1), version },
            Call::Settle { is_in_flight: false, key: 2, at: at(0, 1), version },
            Call::Renew { at: location, version },
            Call::Finish { key: u64::MAX },
        ];
        let append = Appended { key: 1, behind: at(0, 1), at: location, version, kind: EntryKind::Deleted };
        let connect = Connect {
            thread: 1023,
            to_memory: Psn::new(1),
            to_client: Psn::new(0xff_ffff),
            outstanding: 7,
            store: home,
            generation: u32::MAX,
        };
        let head = EntryHead {
            word: Word { next: Next::Closed, entry: version, transaction: 0 },
            key: u64::MAX,
            at: location,
            len: 9,
            kind: EntryKind::Value,
        };
        let outcomes = [
            Outcome::Read(None),
            Outcome::Read(Some(head)),
            Outcome::Written,
            Outcome::Swapped(u64::MAX),
            Outcome::Unknown,
            Outcome::Dead,
        ];
        let store = Store::new(GlobalAddr::new(NodeId(3), 64), Incarnation(u32::MAX), two.clone());
        let client = ClientId(u64::MAX);
        let inputs = calls.map(|call| Input::Call(client, u32::MAX, call)).into_iter();
        let inputs = inputs.chain(outcomes.map(|outcome| Input::Outcome(u64::MAX, outcome)));
        let inputs = inputs.chain([Input::Told(client, append), Input::Death(client), Input::Due]);
        let inputs: Vec<Logged> = inputs.map(|input| Logged { at: Nanos(u64::MAX), input }).collect();
        let all =
            calls.map(|call| Ask::Do { store: home, thread: 3, number: u32::MAX, call }).into_iter().chain([
                Ask::Serve { incarnation: Incarnation(0), setup },
                Ask::Serve { incarnation: Incarnation(u32::MAX), setup: two },
                Ask::Stop { store: home, generation: u32::MAX },
                Ask::Reform { store: store.clone() },
                Ask::Changed { home, copy: u64::MAX, pass: u32::MAX, first: 7 },
                Ask::Back { store, at: Nanos(u64::MAX), piece: u32::MAX, pieces: 7, words: vec![1, 2, 3] },
                Ask::Describe { life: None, failed_too: true },
                Ask::Describe { life: Some(Incarnation(0)), failed_too: false },
                Ask::Describe { life: Some(Incarnation(u32::MAX)), failed_too: true },
                Ask::Told { store: home, thread: 0, appends: vec![append; 3] },
                Ask::Connect(connect),
                Ask::Fence { node: NodeId(5), incarnation: Incarnation(u32::MAX) },
                Ask::End { store: home },
                Ask::Follow { store: home, batch: Batch { all_have: 0, from: 7, inputs: Vec::new() } },
                Ask::Follow { store: home, batch: Batch { all_have: u64::MAX, from: u64::MAX, inputs } },
            ]);
        for ask in all {
            let words = ask.words();
            assert_eq!(Ask::parse(&words), Some(ask.clone()));
            assert_ne!(Ask::parse(&words[..words.len() - 1]), Some(ask));
        }
        for none in [
            &[0][..],
            &[],
            &[3, 9, 9, 1024, 0, 1, 0],
            &[3, 9, 9, 0, 0, 3, 1, 0],
            &[4, 9, 9, 0, 1, 1 << 32, 1],
            &[5, 0, 0, 0],
            &[2, 2],
            &[2, 1, 1 << 32],
            &[2, 1, 0, 0],
            &[7],
            &[12, 9, 9, 0],
            &[8, 9, 9, 0, 0, 0x205],
            &[8, 9, 9, 0, 0, 5],
            &[8, 9, 9, 0, 0, 0x106, 1],
        ] {
            assert_eq!(Ask::parse(none), None, "{none:?}");
        }
    }

    #[test]
    fn what_a_store_is_made_of_is_read_as_it_was_written() {
        let home = |node| Home {
            addr: GlobalAddr::new(NodeId(node), 4096),
            key: Key(u32::MAX),
            incarnation: Incarnation(u32::MAX),
        };
        let homes = [0, 1, 1, 0].map(home).into();
        let (lease, quarantine) = (Nanos(1), Nanos(2));
        let setup = Setup { lease, quarantine, each: 9, copies: 2, generation: 0, homes };
        let store = Store::new(GlobalAddr::new(NodeId(3), 64), Incarnation(u32::MAX), setup.clone());
        // Another home came in the place of the one that it is called by.
        let homes = [2, 1, 1, 2].map(home).into();
        let later = store.with(Setup { generation: 7, homes, ..setup });
        assert_eq!((later.name, later.servers.len()), (home(0), 2));
        for store in [store, later] {
            let words = store_words(&store);
            assert_eq!(store_of(store.addr, &words), Some(store.clone()));
            assert_ne!(store_of(store.addr, &words[..words.len() - 1]), Some(store.clone()));
            let nonsense = [&[u64::MAX][..], &words[1..]].concat();
            assert_eq!(store_of(store.addr, &nonsense), None);
        }
    }

    #[test]
    fn what_is_answered_is_read_as_it_was_written() {
        let slots = vec![(at(3, 7), EntryVersion(1)), (at(15, UNITS - 1), EntryVersion(255))];
        let found = Answer::Found(at(0, 1), EntryVersion(9));
        let free = Answer::Free(EntryVersion(255));
        let others = vec![(u64::MAX, at(3, 7), EntryVersion(2)), (0, at(0, 1), EntryVersion(255))];
        let some = Answer::FoundSome(at(1, 5), EntryVersion(4), others);
        for answer in
            [found, some, Answer::Absent, Answer::Slots(slots), Answer::Created, Answer::Linked, free]
        {
            assert_eq!(answer_of(&answer_words(&answer)), Some(answer));
        }
        assert_eq!(answer_of(&[1, 0]), None, "unit 0 is nobody's");
        assert_eq!(answer_of(&[]), None);
    }
}
