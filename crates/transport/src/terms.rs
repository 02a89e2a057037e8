//! What two processes have to agree on before they talk: the version of what they say, and the settings that must be the
//! same in all processes of a rack. Greetings carry both.
//!
//! A transport does not know what the settings mean. It is given a list of names and values, compares it with a peer's,
//! and names what differs. The list itself is sent, not a hash of it: it is short, and a hash could not say which
//! setting differs. What must always hold: equal settings are equal bytes; parsing takes any bytes whatever, and what it
//! accepts can be shown on a terminal.

use std::fmt;
use std::sync::Arc;

/// The version of all that processes of a rack say to each other: greetings, messages, and what is in them. Every change
/// of any of it raises this. Greetings keep their front in all versions, so that a process can say which one it has met.
pub const WIRE_VERSION: u8 = 15;

/// The longest list of settings, in bytes: a greeting with it fits the shortest datagram that every path carries.
pub const MOST_TERMS: usize = 1024;

/// The settings that must be the same in all processes of a rack, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms(Arc<str>);

/// A setting that two processes do not agree on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// Its value in this process.
    pub ours: String,
    /// Its value in the other one.
    pub theirs: String,
}

/// The value of a setting that the other process does not have.
const ABSENT: &str = "not set";
/// Between a name and its value, and behind each value.
const IS: char = '\t';
const END: char = '\n';

impl Terms {
    /// These settings. All processes must name them in the same order.
    ///
    /// # Panics
    /// If a name or a value is empty or has anything but printable ASCII in it, or all of them are too long together: a bug
    /// of whoever made the list.
    pub fn new<V: fmt::Display>(fields: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        let text: String =
            fields.into_iter().map(|(name, value)| format!("{name}{IS}{value}{END}")).collect();
        Self::parse(text.as_bytes()).unwrap_or_else(|| panic!("no list of settings: {text:?}"))
    }

    /// What a peer sent. None: nobody writes such a list.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MOST_TERMS)?;
        let plain =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let whole = text.is_empty() || text.ends_with(END);
        let is_field =
            |line: &str| line.split_once(IS).is_some_and(|(name, value)| plain(name) && plain(value));
        (whole && text.split_terminator(END).all(is_field)).then(|| Self(text.into()))
    }

    /// As they are sent.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Names and values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split_terminator(END).filter_map(|line| line.split_once(IS))
    }

    /// The settings that differ between this process and a peer. None of them: they agree.
    pub fn compare(&self, theirs: &Self) -> Vec<Difference> {
        if self == theirs {
            return Vec::new();
        }
        let value = |terms: &Self, name| {
            terms.fields().find(|(other, _)| *other == name).map_or(ABSENT, |(_, value)| value).to_owned()
        };
        let unknown = theirs.fields().filter(|(name, _)| self.fields().all(|(ours, _)| ours != *name));
        let differences: Vec<_> = self
            .fields()
            .chain(unknown)
            .map(|(name, _)| Difference {
                field: name.to_owned(),
                ours: value(self, name),
                theirs: value(theirs, name),
            })
            .filter(|one| one.ours != one.theirs)
            .collect();
        if differences.is_empty() {
            // Other bytes with the same values: another order, or a name twice. No version writes that.
            let texts = [self, theirs].map(|terms| format!("{} settings", terms.fields().count()));
            let [ours, theirs] = texts;
            return vec![Difference { field: "rack.toml".to_owned(), ours, theirs }];
        }
        differences
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {} here and {} there", self.field, self.ours, self.theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, MOST_TERMS, Terms};

    fn differences(ours: &Terms, theirs: &Terms) -> Vec<(String, String, String)> {
        let parts = |one: Difference| (one.field, one.ours, one.theirs);
        ours.compare(theirs).into_iter().map(parts).collect()
    }

    fn owned(parts: [&str; 3]) -> (String, String, String) {
        let [field, ours, theirs] = parts.map(str::to_owned);
        (field, ours, theirs)
    }

    #[test]
    fn every_setting_that_differs_is_named_with_both_values() {
        let ours = Terms::new([("block", "4 KiB"), ("memory", "1 GiB"), ("queue", "false")]);
        let theirs = Terms::new([("block", "8 KiB"), ("memory", "1 GiB"), ("queue", "true")]);
        let expected = [owned(["block", "4 KiB", "8 KiB"]), owned(["queue", "false", "true"])];
        assert_eq!(differences(&ours, &theirs), expected);
        assert_eq!(differences(&ours, &ours.clone()), []);
        let said = ours.compare(&theirs)[0].to_string();
        assert_eq!(said, "`block` is 4 KiB here and 8 KiB there");
    }

    #[test]
    fn a_setting_that_only_one_of_them_has_is_named() {
        let (ours, theirs) = (Terms::new([("block", 1), ("old", 2)]), Terms::new([("block", 1), ("new", 3)]));
        let expected = [owned(["old", "2", "not set"]), owned(["new", "not set", "3"])];
        assert_eq!(differences(&ours, &theirs), expected);
    }

    #[test]
    fn lists_that_differ_in_nothing_but_their_order_do_not_agree() {
        let (ours, theirs) = (Terms::new([("a", 1), ("b", 2)]), Terms::new([("b", 2), ("a", 1)]));
        assert_eq!(ours.compare(&theirs).len(), 1);
    }

    #[test]
    fn what_could_not_be_shown_or_is_cut_is_no_list() {
        let terms = Terms::new([("block", "4 KiB"), ("name", "lab")]);
        assert_eq!(Terms::parse(terms.as_bytes()).as_ref(), Some(&terms));
        assert_eq!(Terms::parse(b""), Some(Terms::default()));
        let ends = [14 - 2];
        for length in (1..terms.as_bytes().len()).filter(|length| !ends.contains(length)) {
            assert_eq!(Terms::parse(&terms.as_bytes()[..length]), None, "{length} bytes");
        }
        for bytes in
            [&b"a\tb"[..], b"a\n", b"\tb\n", b"a\t\n", b"a\tb\tc\n", b"a\t\x1b[2J\n", b"a\t\xff\n", b"\n"]
        {
            assert_eq!(Terms::parse(bytes), None, "{bytes:?}");
        }
        let long = format!("a\t{}\n", "b".repeat(MOST_TERMS - 3));
        assert!(Terms::parse(long.as_bytes()).is_some());
        assert!(Terms::parse(format!("a{long}").as_bytes()).is_none());
    }
}
