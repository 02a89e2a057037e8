//! What is asked of a node about names, and what it answers, as words.
//!
//! ```text
//!   request   what 8, discipline 8, version 32 at 32 | who keeps the name 16, with copies 1 | call | bytes of each | how many
//!             | bytes of name 16, tag 16, contents 32 | the bytes of all three
//!   answer    what | an error's kind and two numbers, or 0 | things with names, or locks (`locks.rs`)
//!   thing     discipline 8, maker 16, copies 8, version 32 | bytes of each | how many | address | number | times opened
//!             | bytes of name 16, tag 16, its life 32 | the bytes of both
//! ```
//!
//! Bytes are filled up to words. What must always hold: what is read is what was written, and nothing else is read.

use live::memory::locks::WatchedLock;
use wire::{Discipline, GlobalAddr, NodeId};
use zerocopy::IntoBytes as _;

use super::spec::{NamedInfo, NamedSpec};
use super::{LONGEST_NAME, is_usable, locks};
use crate::Error;
use crate::attach::{error_of, error_words};
use crate::copies::can_have_copies;
use crate::rack::random_session;

/// What is to be done with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Say what it names.
    Look = 1,
    /// The same, if it is what is asked for.
    Open = 2,
    /// Make something; there is nothing.
    Create = 3,
    /// The same, unless there is something.
    OpenOr = 4,
    /// The same, also if something was lost.
    Anew = 5,
    /// Take it away.
    Remove = 6,
    /// List the names that begin so, behind the one in the place of the tag.
    List = 7,
    /// Tell of the locks that the node watches, behind the address in the place of the length. There is no name.
    Locks = 8,
}

const ALL: [What; 8] =
    [What::Look, What::Open, What::Create, What::OpenOr, What::Anew, What::Remove, What::List, What::Locks];

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(super) what: What,
    /// The node that keeps the name, or the memory with copies.
    pub(super) keeper: NodeId,
    /// What is made outlives nodes.
    pub(super) copies: bool,
    /// A random number that the same call has when it is repeated, and no other one.
    pub(super) call: u64,
    pub(super) name: String,
    pub(super) spec: NamedSpec,
    /// What is to be there, followed by zeroes.
    pub(super) contents: Vec<u8>,
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Here it is; this call has made it.
    Made(NamedInfo),
    /// Here it is.
    Opened(NamedInfo),
    /// This has the name, and is something else.
    Differs(NamedInfo),
    /// Nothing has the name.
    Nothing,
    /// What had it is lost.
    Lost,
    /// There can be no more names.
    Full,
    /// It is gone.
    Removed,
    /// Somebody is inside of it: ask again.
    Busy,
    /// The memory of the rack failed.
    Failed(Error),
    /// These are there.
    List(Vec<NamedInfo>),
    /// These are watched.
    Locks(Vec<WatchedLock>),
}

const HEAD: usize = 6;
const LOCKS: u64 = 11;
const INFO: usize = 7;
const DEFAULT_DISCIPLINE: Discipline = Discipline::Coherent;

impl Request {
    pub(super) fn words(&self) -> Vec<u64> {
        let Self { what, keeper, copies, call, name, spec, contents } = self;
        let head = [
            *what as u64 | (spec.discipline as u64) << 8 | u64::from(spec.version) << 32,
            u64::from(keeper.0) | u64::from(*copies) << 16,
            *call,
            spec.len,
            spec.count,
            name.len() as u64 | (spec.tag.len() as u64) << 16 | (contents.len() as u64) << 32,
        ];
        let bytes = [name.as_bytes(), spec.tag.as_bytes(), contents].concat();
        [&head[..], &words_of(&bytes)].concat()
    }

    pub(super) fn parse(words: &[u64]) -> Option<Self> {
        let ([head, keeper, call, len, count, lens], rest) = words.split_first_chunk::<HEAD>()?;
        let (keeper, copies) = (NodeId(*keeper as u16), *keeper >> 16);
        let what = ALL.into_iter().find(|what| *what as u8 == *head as u8)?;
        let lens = [*lens as u16 as usize, (*lens >> 16) as u16 as usize, (*lens >> 32) as usize];
        let [name, tag, contents] = split(rest, lens)?;
        let discipline = Discipline::from_wire((*head >> 8) as u8)?;
        let spec = NamedSpec {
            discipline,
            len: *len,
            count: *count,
            tag: text(tag)?,
            version: (*head >> 32) as u32,
        };
        let name = text(name)?;
        let (is_list, tag) = (what == What::List, &spec.tag);
        let most = if is_list { LONGEST_NAME } else { NamedSpec::LONGEST_TAG };
        let is_usable = ((is_list || what == What::Locks) && name.is_empty()
            || is_usable(&name, LONGEST_NAME))
            && (tag.is_empty() || is_usable(tag, most));
        let contents = contents.to_vec();
        // Nothing else has copies.
        let can_be = copies == 0 || copies == 1 && can_have_copies(spec.discipline);
        (is_usable && can_be).then_some(Self {
            what,
            keeper,
            copies: copies == 1,
            call: *call,
            name,
            spec,
            contents,
        })
    }

    /// About a name as such, to the node or the memory that keeps it.
    pub(super) fn about(what: What, name: &str, keeper: NodeId) -> Self {
        let spec =
            NamedSpec { discipline: DEFAULT_DISCIPLINE, len: 0, count: 0, tag: String::new(), version: 0 };
        let (name, call) = (name.to_owned(), random_session());
        Self { what, keeper, copies: false, call, name, spec, contents: Vec::new() }
    }
}

impl Answer {
    pub(super) fn words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        let (what, infos): (u64, &[NamedInfo]) = match self {
            Self::Made(info) => (1, std::slice::from_ref(info)),
            Self::Opened(info) => (2, std::slice::from_ref(info)),
            Self::Differs(info) => (3, std::slice::from_ref(info)),
            Self::Nothing => (4, &[]),
            Self::Lost => (5, &[]),
            Self::Full => (6, &[]),
            Self::Removed => (7, &[]),
            Self::Busy => (8, &[]),
            Self::Failed(_) => (9, &[]),
            Self::List(infos) => (10, infos),
            Self::Locks(_) => (LOCKS, &[]),
        };
        words.push(what);
        words.extend(if let Self::Failed(why) = self { error_words(why) } else { [0; 3] });
        infos.iter().for_each(|info| put_info(info, &mut words));
        if let Self::Locks(all) = self {
            all.iter().for_each(|lock| locks::put(lock, &mut words));
        }
        words
    }

    pub(super) fn parse(words: &[u64]) -> Option<Self> {
        let ([what, error @ ..], mut rest) = words.split_first_chunk::<4>()?;
        if *what == LOCKS {
            let mut all = Vec::new();
            while !rest.is_empty() {
                let (lock, behind) = locks::parse(rest)?;
                all.push(lock);
                rest = behind;
            }
            return Some(Self::Locks(all));
        }
        let mut infos = Vec::new();
        while !rest.is_empty() {
            let (info, behind) = info_of(rest)?;
            infos.push(info);
            rest = behind;
        }
        let one = |make: fn(NamedInfo) -> Self, mut infos: Vec<NamedInfo>| {
            let info = infos.pop()?;
            infos.is_empty().then(|| make(info))
        };
        match what {
            1 => one(Self::Made, infos),
            2 => one(Self::Opened, infos),
            3 => one(Self::Differs, infos),
            10 => Some(Self::List(infos)),
            _ if !infos.is_empty() => None,
            4 => Some(Self::Nothing),
            5 => Some(Self::Lost),
            6 => Some(Self::Full),
            7 => Some(Self::Removed),
            8 => Some(Self::Busy),
            9 => error_of(*error).map(Self::Failed),
            _ => None,
        }
    }
}

pub(super) fn put_info(info: &NamedInfo, words: &mut Vec<u64>) {
    let NamedInfo { name, spec, addr, making, maker, copies, life, opened } = info;
    words.extend([
        spec.discipline as u64
            | u64::from(maker.0) << 8
            | u64::from(*copies) << 24
            | u64::from(spec.version) << 32,
        spec.len,
        spec.count,
        addr.bits(),
        *making,
        *opened,
        name.len() as u64 | (spec.tag.len() as u64) << 16 | u64::from(*life) << 32,
    ]);
    words.extend(words_of(&[name.as_bytes(), spec.tag.as_bytes()].concat()));
}

pub(super) fn info_of(words: &[u64]) -> Option<(NamedInfo, &[u64])> {
    let ([head, len, count, addr, making, opened, lens], rest) = words.split_first_chunk::<INFO>()?;
    let (lens, life) = ([*lens, *lens >> 16].map(|len| len as u16 as usize), (*lens >> 32) as u32);
    let (bytes, behind) = rest.split_at_checked(lens.iter().sum::<usize>().div_ceil(8))?;
    let [name, tag] = split(bytes, lens)?;
    let discipline = Discipline::from_wire(*head as u8)?;
    let spec =
        NamedSpec { discipline, len: *len, count: *count, tag: text(tag)?, version: (*head >> 32) as u32 };
    let (name, addr) = (text(name)?, GlobalAddr::from_bits(*addr));
    let (maker, copies) = (NodeId((*head >> 8) as u16), (*head >> 24) as u8);
    let (making, opened) = (*making, *opened);
    Some((NamedInfo { name, spec, addr, making, maker, copies, life, opened }, behind))
}

/// Bytes as words, the last one filled up with zeroes.
pub(super) fn words_of(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
    words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Pieces of these lengths, one behind the other, which are all that there is.
fn split<const PIECES: usize>(words: &[u64], lens: [usize; PIECES]) -> Option<[&[u8]; PIECES]> {
    let whole: usize = lens.iter().sum();
    if words.len() != whole.div_ceil(8) {
        return None;
    }
    let mut rest = words.as_bytes();
    Some(lens.map(|len| {
        let (piece, behind) = rest.split_at(len);
        rest = behind;
        piece
    }))
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, tag: &str) -> NamedInfo {
        let spec = NamedSpec {
            discipline: Discipline::Locked,
            len: 24,
            count: u64::MAX,
            tag: tag.to_owned(),
            version: u32::MAX,
        };
        let (addr, maker) = (GlobalAddr::new(NodeId(3), 4096), NodeId(u16::MAX));
        let (making, copies, life) = (u64::MAX, 3, u32::MAX);
        NamedInfo { name: name.to_owned(), spec, addr, making, maker, copies, life, opened: 5 }
    }

    #[test]
    fn requests_are_read_as_they_were_written_and_nothing_else() {
        for (what, contents) in ALL.into_iter().zip([0, 1, 7, 8, 9, 100, 3, 2]) {
            let NamedInfo { name, spec, .. } = info("ñame", "crate::Type");
            let (keeper, copies) = (NodeId(u16::MAX), contents > 7);
            let discipline = if copies { Discipline::Coherent } else { spec.discipline };
            let spec = NamedSpec { discipline, ..spec };
            let request = Request { what, keeper, copies, call: 77, name, spec, contents: vec![3; contents] };
            let mut words = request.words();
            assert_eq!(Request::parse(&words).as_ref(), Some(&request));
            words.push(0);
            assert_eq!(Request::parse(&words), None);
            words.truncate(words.len() - 2);
            assert_eq!(Request::parse(&words), None);
        }
        let mut words = Request::about(What::Look, "abc", NodeId(1)).words();
        words[0] = words[0] & !0xff | 9;
        assert_eq!(Request::parse(&words), None, "no such request");
        let mut words = Request::about(What::Look, "abc", NodeId(1)).words();
        words[1] |= 2 << 16;
        assert_eq!(Request::parse(&words), None, "with or without copies");
        let mut request = Request { copies: true, ..Request::about(What::Create, "abc", NodeId(1)) };
        assert!(Request::parse(&request.words()).is_some());
        request.spec.discipline = Discipline::Word;
        assert_eq!(Request::parse(&request.words()), None, "words have no copies");
        let mut words = Request::about(What::Look, "abc", NodeId(1)).words();
        words[6] = u64::MAX;
        assert_eq!(Request::parse(&words), None, "no text");
        for (what, name, tag) in [
            (What::Look, "", ""),
            (What::Create, "a\0", ""),
            (What::Create, &*"x".repeat(256), ""),
            (What::OpenOr, "a", "b\n"),
            (What::Anew, "a", &"t".repeat(65)),
            (What::List, "a", &"t".repeat(256)),
        ] {
            let mut request = Request::about(what, name, NodeId(0));
            request.spec.tag = tag.to_owned();
            assert_eq!(Request::parse(&request.words()), None, "{what:?} {name:?} {tag:?}");
        }
        for what in [What::List, What::Locks] {
            assert!(Request::parse(&Request::about(what, "", NodeId(0)).words()).is_some(), "all of them");
        }
    }

    #[test]
    fn answers_are_read_as_they_were_written_and_nothing_else() {
        let (one, other) = (info("a", ""), info("a longer name", "u64"));
        for answer in [
            Answer::Made(one.clone()),
            Answer::Opened(other.clone()),
            Answer::Differs(one.clone()),
            Answer::Nothing,
            Answer::Lost,
            Answer::Full,
            Answer::Removed,
            Answer::Busy,
            Answer::Failed(Error::OutOfMemory { len: 7, home: 3 }),
            Answer::List(vec![]),
            Answer::List(vec![one, other]),
            Answer::Locks(vec![]),
            Answer::Locks(vec![locks::example("a"), locks::example("another")]),
        ] {
            let mut words = answer.words();
            assert_eq!(Answer::parse(&words).as_ref(), Some(&answer));
            words.push(0);
            assert_eq!(Answer::parse(&words), None, "{answer:?}");
            words.truncate(3);
            assert_eq!(Answer::parse(&words), None);
        }
        assert_eq!(Answer::parse(&[12, 0, 0, 0]), None, "no such answer");
    }
}
