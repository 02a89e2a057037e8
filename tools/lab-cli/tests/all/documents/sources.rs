//! What the sources define: types with their members, and what else has a name, by file.
//!
//! A scan, not a compiler: names inside of a macro call in an `impl` count as members, and methods of traits as those of whoever
//! implements them.

use std::collections::{BTreeMap, BTreeSet};

use super::repository::Repository;
use super::tokens::{Token, tokens};

/// Everything that has a name.
#[derive(Default)]
pub(super) struct Sources {
    /// Functions, constants, variants, fields and types of each type; traits that it implements.
    members: BTreeMap<String, BTreeSet<String>>,
    traits: BTreeMap<String, BTreeSet<String>>,
    /// What each file names at all, by definition or `use`.
    files: BTreeMap<String, BTreeSet<String>>,
}

/// What is between two brackets.
#[derive(Clone)]
enum Scope {
    Other,
    /// Of an `impl` or trait.
    Items(String),
    Variants(String),
    Fields(String),
    /// A macro call among items.
    Macro(String),
}

/// Derived, or of every type.
const DERIVED: &[&str] = &["default", "clone", "from", "into", "drop", "eq", "cmp", "hash", "fmt"];

impl Sources {
    pub(super) fn of(repository: &Repository) -> Self {
        let mut all = Self::default();
        for file in repository.ending(".rs") {
            all.add(file, &tokens(&repository.text(file)));
        }
        all
    }

    /// Why `owner::name` is not so, for a type.
    pub(super) fn wrong_member(&self, owner: &str, name: &str) -> Option<String> {
        let Some(members) = self.members.get(owner) else { return Some(format!("there is no type {owner}")) };
        let traits = self.traits.get(owner).into_iter().flatten();
        let inherited = traits.filter_map(|of| self.members.get(of)).any(|members| members.contains(name));
        let has = members.contains(name) || inherited || DERIVED.contains(&name);
        (!has).then(|| format!("{owner} has no {name}"))
    }

    /// Why `module::name` is not so.
    pub(super) fn wrong_item(&self, module: &str, name: &str) -> Option<String> {
        let file_name = format!("{}.rs", module);
        let folder = module.replace('_', "-");
        let is_in =
            |file: &str| file.split('/').any(|part| part == module || part == file_name || part == folder);
        let mut files = self.files.iter().filter(|(file, _)| is_in(file)).peekable();
        if files.peek().is_none() {
            return Some(format!("there is no module {module}"));
        }
        let submodule = format!("{module}/{name}");
        let has = files.any(|(file, names)| names.contains(name) || file.contains(&submodule));
        (!has).then(|| format!("{module} has no {name}"))
    }

    fn member(&mut self, owner: &str, name: &str) {
        self.members.entry(owner.to_owned()).or_default().insert(name.to_owned());
    }

    pub(super) fn add(&mut self, file: &str, tokens: &[Token]) {
        let mut names = BTreeSet::new();
        let mut scopes = vec![Scope::Other];
        let mut pending = Scope::Other;
        let mut macros: BTreeMap<&str, &str> = BTreeMap::new();
        let sign = |at: usize, sign: char| tokens.get(at).is_some_and(|token| token.is_sign(sign));
        let mut at = 0;
        while at < tokens.len() {
            let begins = at == 0 || "{},;])".chars().any(|end| sign(at - 1, end));
            let next = tokens.get(at + 1).and_then(Token::name);
            let scope = scopes.last().expect("the file's own").clone();
            match &tokens[at] {
                Token::Sign('{' | '(' | '[') => {
                    let inner = if sign(at, '{') {
                        std::mem::replace(&mut pending, Scope::Other)
                    } else {
                        Scope::Other
                    };
                    scopes.push(match scope {
                        Scope::Macro(owner) => Scope::Macro(owner),
                        Scope::Items(owner) if at > 0 && sign(at - 1, '!') => Scope::Macro(owner),
                        _ if called(tokens, at).is_some_and(|name| macros.contains_key(name)) => {
                            let name = called(tokens, at).expect("just seen");
                            Scope::Macro(macros[name].to_owned())
                        }
                        _ => inner,
                    });
                }
                Token::Sign('}' | ')' | ']') if scopes.len() > 1 => _ = scopes.pop(),
                Token::Sign(';') => pending = Scope::Other,
                Token::Sign(_) => {}
                Token::Name(word) => match (&**word, next, scope) {
                    (_, _, Scope::Macro(owner)) => self.member(&owner, word),
                    ("macro_rules", ..) => {
                        macros.extend(tokens.get(at + 2).and_then(Token::name).zip(made(&tokens[at + 3..])));
                    }
                    ("struct" | "union", Some(name), _) => {
                        self.members.entry(name.to_owned()).or_default();
                        pending = Scope::Fields(name.to_owned());
                        names.insert(name.to_owned());
                    }
                    ("enum" | "trait", Some(name), _) => {
                        self.members.entry(name.to_owned()).or_default();
                        let name = name.to_owned();
                        names.insert(name.clone());
                        pending = if word == "enum" { Scope::Variants(name) } else { Scope::Items(name) };
                    }
                    ("type", Some(name), Scope::Other) => {
                        self.members.entry(name.to_owned()).or_default();
                        names.insert(name.to_owned());
                        self.alias(name, &tokens[at + 2..]);
                    }
                    // A word before it is a qualifier; in a type, a sign is.
                    ("impl", ..) if begins || at > 0 && tokens[at - 1].name().is_some() => {
                        let header = tokens[at + 1..].iter().position(|token| token.is_sign('{'));
                        let header = &tokens[at + 1..at + 1 + header.unwrap_or(0)];
                        if let Some((owner, of)) = implemented(header) {
                            self.members.entry(owner.clone()).or_default();
                            self.traits.entry(owner.clone()).or_default().extend(of);
                            pending = Scope::Items(owner);
                        }
                        // Not what its bounds say.
                        at += header.len();
                    }
                    ("fn" | "const" | "static" | "type" | "mod", Some(name), scope) => {
                        names.insert(name.to_owned());
                        if let Scope::Items(owner) = scope {
                            self.member(&owner, name);
                        }
                    }
                    ("use", ..) => {
                        let path = tokens[at..].iter().take_while(|token| !token.is_sign(';'));
                        names.extend(path.filter_map(Token::name).map(str::to_owned));
                    }
                    (_, _, Scope::Variants(owner)) if begins => self.member(&owner, word),
                    (_, _, Scope::Fields(owner)) if sign(at + 1, ':') => self.member(&owner, word),
                    _ => {}
                },
            }
            at += 1;
        }
        self.files.insert(file.to_owned(), names);
    }

    /// What another name stands for has the same members.
    fn alias(&mut self, name: &str, rest: &[Token]) {
        let Some(begin) = rest.iter().position(|token| token.is_sign('=')) else { return };
        if let Some(target) = path(&rest[begin + 1..]) {
            self.traits.entry(name.to_owned()).or_default().insert(target);
        }
    }
}

/// The macro whose call begins with this bracket.
fn called(tokens: &[Token], at: usize) -> Option<&str> {
    tokens.get(at.checked_sub(1)?)?.is_sign('!').then(|| tokens.get(at.checked_sub(2)?)?.name())?
}

/// The type that a macro with this body makes: what it is called with has the type's members.
fn made(body: &[Token]) -> Option<&str> {
    let mut depth = 0;
    for (at, token) in body.iter().enumerate() {
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign('}' | ')' | ']') => depth -= 1,
            Token::Name(word) if word == "enum" || word == "struct" => {
                if let Some(name) = body.get(at + 1).and_then(Token::name) {
                    return Some(name);
                }
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    None
}

/// The type of an `impl`, and the trait, if there is one.
fn implemented(header: &[Token]) -> Option<(String, Option<String>)> {
    let mut at = 0;
    if header.first()?.is_sign('<') {
        let mut depth = 0;
        while at < header.len() {
            let arrow = at > 0 && header[at - 1].is_sign('-');
            depth += i32::from(header[at].is_sign('<')) - i32::from(header[at].is_sign('>') && !arrow);
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    let header = &header[at..];
    let is_for =
        |at: usize| header[at].is("for") && !header.get(at + 1).is_some_and(|next| next.is_sign('<'));
    match (0..header.len()).find(|at| is_for(*at)) {
        Some(middle) => Some((path(&header[middle + 1..])?, path(&header[..middle]))),
        None => Some((path(header)?, None)),
    }
}

/// The last name of a path.
fn path(tokens: &[Token]) -> Option<String> {
    let lifetime = |at: usize| at > 0 && tokens[at - 1].is_sign('\'');
    let skipped = |at: &usize| matches!(&tokens[*at], Token::Name(name) if name != "dyn" && name != "mut" && !lifetime(*at));
    let mut at = (0..tokens.len()).find(skipped)?;
    while tokens.get(at + 1..at + 3).is_some_and(|two| two.iter().all(|token| token.is_sign(':'))) {
        let Some(Token::Name(_)) = tokens.get(at + 3) else { break };
        at += 3;
    }
    tokens[at].name().map(str::to_owned)
}

#[test]
fn what_a_source_defines_is_known() {
    let mut sources = Sources::default();
    let source = "pub struct A<T> where T: B { pub c: u8 } enum D { E, F { g: u8 }, #[x] H(u8) = 3 }
        impl<'a, T: Fn() -> u8> m::B for A<&'a T> { fn i(&self) -> impl J { fn k() {} } const L: u8 = 1; words! { n (o) } }
        trait B { fn p(&self) {} } type Q = m::A<u8>; pub fn r() { let s = 1; } mod t; pub use u::{V, w};
        macro_rules! x { ($($a:ident)*) => { enum Y { $($a,)* } } } x! { Z }";
    sources.add("crates/a/src/b.rs", &tokens(source));
    for (owner, name) in [
        ("A", "c"),
        ("D", "E"),
        ("D", "F"),
        ("D", "H"),
        ("A", "i"),
        ("A", "L"),
        ("A", "o"),
        ("A", "p"),
        ("Y", "Z"),
        ("Q", "i"),
    ] {
        assert_eq!(sources.wrong_member(owner, name), None, "{owner}::{name}");
    }
    for (owner, name) in [("A", "k"), ("D", "g"), ("A", "E"), ("B", "i"), ("A", "s"), ("X", "i")] {
        assert!(sources.wrong_member(owner, name).is_some(), "{owner}::{name}");
    }
    for (module, name) in [("a", "A"), ("b", "r"), ("b", "t"), ("a", "V"), ("src", "b")] {
        assert_eq!(sources.wrong_item(module, name), None, "{module}::{name}");
    }
    for (module, name) in [("a", "X"), ("b", "s"), ("x", "A")] {
        assert!(sources.wrong_item(module, name).is_some(), "{module}::{name}");
    }
}
