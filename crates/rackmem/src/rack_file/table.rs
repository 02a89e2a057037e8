//! A table of the file, and its values as the types that they must have.
//!
//! What must always hold: a value that is not taken as it stands leaves a mistake, with its line and with what would
//! do; reading goes on with the next one.

use std::net::SocketAddr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use transport::udp::Advertised;
use wire::Nanos;

use super::error::Mistakes;
use super::keys::Keys;
use super::location::advertised;
use super::units;

/// A value, and where in the text it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) at: usize,
}

/// One table of the file.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    /// As it stands in the file: `[rack]`.
    pub(super) name: &'static str,
    /// Where it begins.
    pub(super) at: usize,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn new(name: &'static str, at: usize, entries: &'a DeTable<'a>) -> Self {
        Self { name, at, entries }
    }

    /// Finds keys that do not belong here. `keys` are those that do, by table, this table's first.
    pub(super) fn refuse_unknown(&self, keys: &[Keys], mistakes: &mut Mistakes<'_>) {
        let names = |(_, settings): &Keys| settings.iter().map(|setting| setting.name).collect::<Vec<_>>();
        let own = names(&keys[0]);
        for key in self.entries.keys().filter(|key| !own.contains(&key.get_ref().as_ref())) {
            let name: &str = key.get_ref().as_ref();
            let elsewhere = keys[1..].iter().find(|theirs| names(theirs).contains(&name));
            let alike = own.iter().map(|known| (distance(known, name), *known)).min();
            let instead = match (elsewhere, alike) {
                (_, Some((0..=1, known))) | (None, Some((2, known))) => format!("did you mean `{known}`?"),
                (Some((table, _)), _) => format!("write it under {table}"),
                _ => format!("remove it; the keys of {} are {}", self.name, own.join(", ")),
            };
            mistakes.add(key.span().start, format_args!("`{name}` is not a key of {}: {instead}", self.name));
        }
    }

    /// Where the key stands, or else the table.
    pub(super) fn place_of(&self, key: &str) -> usize {
        self.entries.get_key_value(key).map_or(self.at, |(key, _)| key.span().start)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// A key that must not be without.
    pub(super) fn require(&self, key: &str, example: &str, mistakes: &mut Mistakes<'_>) -> bool {
        if !self.has(key) {
            mistakes.add(self.at, format_args!("{} has no `{key}`: write {key} = {example}", self.name));
        }
        self.has(key)
    }

    pub(super) fn text(
        &self,
        key: &str,
        example: &str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Placed<&'a str>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(Placed { value: text.as_ref(), at: value.span().start }),
            other => {
                wrong(key, value.span().start, other, "text in quotes", example, mistakes);
                None
            }
        }
    }

    pub(super) fn flag(&self, key: &str, mistakes: &mut Mistakes<'_>) -> Option<bool> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            other => {
                wrong(key, value.span().start, other, "true or false, without quotes", "true", mistakes);
                None
            }
        }
    }

    /// A whole number of 0 or more.
    pub(super) fn number(
        &self,
        key: &str,
        example: &str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Placed<u64>> {
        let value = self.value(key)?;
        let at = value.span().start;
        let number = value.get_ref().as_integer();
        match number.map(|number| u64::from_str_radix(number.as_str(), number.radix())) {
            Some(Ok(number)) => Some(Placed { value: number, at }),
            Some(Err(_)) => {
                let found = number.map(ToString::to_string).unwrap_or_default();
                mistakes.add(at, format_args!("`{key}` cannot be {found}: write {key} = {example}"));
                None
            }
            None => {
                wrong(key, at, value.get_ref(), "a number, without quotes", example, mistakes);
                None
            }
        }
    }

    /// A number of bytes.
    pub(super) fn bytes(&self, key: &str, example: &str, mistakes: &mut Mistakes<'_>) -> Option<Placed<u64>> {
        self.amount(key, example, "a size in B, KiB, MiB, GiB or TiB", units::bytes, mistakes)
    }

    /// A span of time.
    pub(super) fn span(
        &self,
        key: &str,
        example: &str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Placed<Nanos>> {
        self.amount(key, example, "a span of time in us, ms, s or min", units::span, mistakes)
    }

    fn amount<T>(
        &self,
        key: &str,
        example: &str,
        kind: &str,
        read: fn(&str) -> Option<T>,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Placed<T>> {
        let value = self.value(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::String(text) => {
                let amount = read(text);
                if amount.is_none() {
                    mistakes.add(at, format_args!("`{text}` is not {kind}: write {key} = {example}"));
                }
                amount.map(|value| Placed { value, at })
            }
            other => {
                let kind = format!("{kind}, with the unit, in quotes");
                wrong(key, at, other, &kind, example, mistakes);
                None
            }
        }
    }

    /// An address with its port.
    pub(super) fn address(
        &self,
        key: &str,
        example: &str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Placed<SocketAddr>> {
        let text = self.text(key, example, mistakes)?;
        match text.value.parse() {
            Ok(value) => Some(Placed { value, at: text.at }),
            Err(_) => {
                mistakes.add(
                    text.at,
                    format_args!(
                        "`{}` is not an IP address with a port: write {key} = {example} (names are not looked up)",
                        text.value
                    ),
                );
                None
            }
        }
    }

    /// What others use to reach a place: an address or a name, with a port.
    pub(super) fn advertised(
        &self,
        key: &str,
        example: &str,
        mistakes: &mut Mistakes<'_>,
    ) -> Option<Placed<Advertised>> {
        let text = self.text(key, example, mistakes)?;
        match advertised(text.value, &mistakes.place(text.at)) {
            Ok(value) => Some(Placed { value, at: text.at }),
            Err(what) => {
                mistakes.add(text.at, format_args!("{what}, for example {key} = {example}"));
                None
            }
        }
    }

    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entries.get(key)
    }
}

fn wrong(key: &str, at: usize, found: &DeValue<'_>, kind: &str, example: &str, mistakes: &mut Mistakes<'_>) {
    let found = found.type_str();
    mistakes
        .add(at, format_args!("`{key}` must be {kind}, and not of type {found}: write {key} = {example}"));
}

/// How many letters must be added, removed or replaced to make one word of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (taken, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = taken + 1;
        for (index, theirs) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *theirs);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_count_letters_added_removed_and_replaced() {
        for (one, other, letters) in [
            ("cache", "cache", 0),
            ("cache", "cach", 1),
            ("cache", "cahce", 2),
            ("mtu", "cache", 5),
            ("", "id", 2),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (letters, letters), "{one} {other}");
        }
    }
}
