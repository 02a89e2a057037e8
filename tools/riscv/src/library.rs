//! The software path: what a routine of an OpenSHMEM library executes, for programs that say which one they call.
//!
//! A program that is compiled for the software path (`RAE_SOFTWARE` in `programs/include/shmem.h`) writes to a control register before
//! each operation: a routine's number, and how many bytes it moves. The machine charges the instructions that this routine was counted
//! to execute in a library. They are counted by `rackmem-lab routines` on the library that is installed, and recorded in
//! `tools/riscv/libraries`, with versions.
//!
//! What must always hold: nothing is charged that was not counted. A routine, or a size, that was not is an error.

use core::fmt;

/// The control register: custom, readable and writable by programs (privileged specification, table 2.1).
pub(crate) const REGISTER: i32 = 0x8c0;

/// A routine of OpenSHMEM. The numbers are those of `programs/include/shmem.h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "they are named as OpenSHMEM names them")]
pub enum Routine {
    FetchAdd = 1,
    CompareSwap,
    Add,
    Fetch,
    Set,
    Swap,
    FetchInc,
    Inc,
    FetchAnd,
    FetchOr,
    FetchXor,
    P,
    G,
    Quiet,
    Fence,
    BarrierAll,
    GetMem,
    PutMem,
    ToAll,
}

impl Routine {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 19] = [
        Self::FetchAdd,
        Self::CompareSwap,
        Self::Add,
        Self::Fetch,
        Self::Set,
        Self::Swap,
        Self::FetchInc,
        Self::Inc,
        Self::FetchAnd,
        Self::FetchOr,
        Self::FetchXor,
        Self::P,
        Self::G,
        Self::Quiet,
        Self::Fence,
        Self::BarrierAll,
        Self::GetMem,
        Self::PutMem,
        Self::ToAll,
    ];

    /// As in files of counts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FetchAdd => "fetch_add",
            Self::CompareSwap => "compare_swap",
            Self::Add => "add",
            Self::Fetch => "fetch",
            Self::Set => "set",
            Self::Swap => "swap",
            Self::FetchInc => "fetch_inc",
            Self::Inc => "inc",
            Self::FetchAnd => "fetch_and",
            Self::FetchOr => "fetch_or",
            Self::FetchXor => "fetch_xor",
            Self::P => "p",
            Self::G => "g",
            Self::Quiet => "quiet",
            Self::Fence => "fence",
            Self::BarrierAll => "barrier_all",
            Self::GetMem => "getmem",
            Self::PutMem => "putmem",
            Self::ToAll => "to_all",
        }
    }

    /// The one of this number.
    pub fn numbered(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|routine| u64::from(*routine as u8) == number)
    }

    /// Whether what it takes depends on how many bytes it moves, or on how many processes take part.
    pub const fn is_sized(self) -> bool {
        matches!(self, Self::GetMem | Self::PutMem | Self::ToAll | Self::BarrierAll)
    }
}

/// What was counted for a routine, and for a size of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// Which.
    pub routine: Routine,
    /// Bytes that it moves, of those that are sized; of a barrier, processes that meet.
    pub size: u64,
    /// Instructions of a call in the run that had the fewest. This is what is charged.
    pub least: u64,
    /// In the run that had the most: a routine that waits polls, and how often is up to how long that takes.
    pub most: u64,
}

/// What the routines of a library execute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Library {
    name: String,
    versions: Vec<String>,
    /// By routine and size.
    counts: Vec<Count>,
}

/// Libraries that were counted, with the name of each: what is in `tools/riscv/libraries`.
pub const COUNTED: [(&str, &str); 2] = [
    ("openmpi-shm", include_str!("../libraries/openmpi-shm.txt")),
    ("openmpi-tcp", include_str!("../libraries/openmpi-tcp.txt")),
];

/// A file of counts is none: in this line, for this reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoLibrary {
    line: usize,
    why: String,
}

impl fmt::Display for NoLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl core::error::Error for NoLibrary {}

impl Library {
    /// One of [`COUNTED`].
    pub fn counted(name: &str) -> Option<Self> {
        let (name, text) = COUNTED.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(name, text).unwrap_or_else(|error| panic!("libraries/{name}.txt: {error}")))
    }

    /// From a file of counts. A line is empty, a comment after `#`, `version` and a text, or `count`, a routine, its size if it has one,
    /// and the least and the most instructions.
    ///
    /// # Errors
    /// What is no such line.
    pub fn parse(name: &str, text: &str) -> Result<Self, NoLibrary> {
        let mut library = Self { name: name.to_owned(), versions: Vec::new(), counts: Vec::new() };
        for (at, line) in text.lines().enumerate() {
            library.take(line).map_err(|why| NoLibrary { line: at + 1, why })?;
        }
        library.counts.sort_by_key(|count| (count.routine, count.size));
        let twice = library.counts.windows(2).find(|two| two[0].is_of(two[1].routine, two[1].size));
        match twice {
            Some(two) => Err(NoLibrary {
                line: text.lines().count(),
                why: format!("{} is there twice", two[0].routine.name()),
            }),
            None => Ok(library),
        }
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "" => {}
            "version" => self.versions.push(rest.trim().to_owned()),
            "count" => self.counts.push(Count::parse(rest)?),
            other => return Err(format!("`{other}` is neither version nor count")),
        }
        Ok(())
    }

    /// As a file of counts.
    pub fn text(name: &str, versions: &[String], counts: &[Count]) -> String {
        let mut text = format!(
            "# {name}: instructions of a call, counted by callgrind: rackmem-lab routines\n\
             # routine, bytes if it moves some (of barriers, processes), the least and the most of all runs\n"
        );
        versions.iter().for_each(|version| text += &format!("version {version}\n"));
        for Count { routine, size, least, most } in counts {
            let size = if routine.is_sized() { format!(" {size}") } else { String::new() };
            text += &format!("count {}{size} {least} {most}\n", routine.name());
        }
        text
    }

    /// How it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was counted with what.
    pub fn versions(&self) -> &[String] {
        &self.versions
    }

    /// All that was counted.
    pub fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Instructions of a call. Between two sizes that were counted it is the smaller one's: never more than the library takes. So it is of
    /// barriers of more processes than were counted.
    pub fn instructions(&self, routine: Routine, size: u64) -> Option<u64> {
        let mut of = self.counts.iter().filter(|count| count.routine == routine);
        if !routine.is_sized() {
            return of.next().map(|count| count.least);
        }
        let largest = of.clone().next_back()?;
        if size > largest.size && routine != Routine::BarrierAll {
            return None;
        }
        of.rfind(|count| count.size <= size).map(|count| count.least)
    }
}

impl Count {
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let routine = Routine::ALL.into_iter().find(|routine| routine.name() == name);
        let routine = routine.ok_or_else(|| format!("there is no routine `{name}`"))?;
        let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
        let (size, least, most) = match (numbers.as_deref(), routine.is_sized()) {
            (Ok([least, most]), false) => (0, *least, *most),
            (Ok([size, least, most]), true) => (*size, *least, *most),
            _ => {
                return Err(format!(
                    "{name} has {} numbers",
                    if routine.is_sized() { "three" } else { "two" }
                ));
            }
        };
        if least == 0 || most < least {
            return Err(format!("{name} takes {least} instructions at least and {most} at most?"));
        }
        Ok(Self { routine, size, least, most })
    }

    const fn is_of(&self, routine: Routine, size: u64) -> bool {
        self.routine as u8 == routine as u8 && self.size == size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for (name, text) in COUNTED {
            let library = Library::counted(name).unwrap();
            assert_eq!(Library::text(name, library.versions(), library.counts()), text);
            assert!(!library.versions().is_empty() && library.name() == name);
        }
        assert_eq!(Library::counted("another"), None);
    }

    #[test]
    fn a_size_between_two_takes_the_smaller_and_one_beyond_all_was_not_counted() {
        let library =
            Library::parse("x", "count getmem 8 40 50\ncount getmem 64 90 90\ncount g 7 7").unwrap();
        let of = |bytes| library.instructions(Routine::GetMem, bytes);
        assert_eq!([7, 8, 63, 64, 65].map(of), [None, Some(40), Some(40), Some(90), None]);
        assert_eq!(library.instructions(Routine::G, 0), Some(7));
        assert_eq!(library.instructions(Routine::P, 0), None);
    }

    #[test]
    fn a_barrier_of_more_processes_than_were_counted_takes_what_the_most_took() {
        let library = Library::parse("x", "count barrier_all 2 14 50\ncount barrier_all 6 20 90").unwrap();
        let of = |processes| library.instructions(Routine::BarrierAll, processes);
        assert_eq!([1, 2, 5, 6, 64].map(of), [None, Some(14), Some(14), Some(20), Some(20)]);
    }

    #[test]
    fn a_line_that_is_no_count_is_refused_with_its_number() {
        for text in [
            "count g 7",
            "count h 7 7",
            "counts g 7 7",
            "count g 0 7",
            "count g 8 7",
            "count getmem 7 7",
            "count g x 7",
        ] {
            let error = Library::parse("x", &format!("# counts\n{text}\n")).unwrap_err().to_string();
            assert!(error.starts_with("line 2: "), "{text}: {error}");
        }
        assert!(Library::parse("x", "count g 7 7\ncount g 8 8").is_err());
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        let header = include_str!("../programs/include/shmem.h");
        let names = header.lines().filter_map(|line| line.trim().strip_prefix("RAE_ROUTINE_"));
        let names: Vec<String> = names
            .map(|name| name.trim_end_matches([',', ' ']).replace("FETCH_ADD = 1", "FETCH_ADD"))
            .collect();
        let ours = Routine::ALL.map(|routine| routine.name().to_uppercase());
        assert_eq!(names, ours);
        for (at, routine) in (1..).zip(Routine::ALL) {
            assert_eq!(Routine::numbered(at), Some(routine));
        }
        assert_eq!((Routine::numbered(0), Routine::numbered(20)), (None, None));
    }
}
