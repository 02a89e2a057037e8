//! Subcommands and flags of our commands can be typed; packages and examples that cargo is told of are there.
//!
//! Commands are looked at in code blocks of a shell, and in backticks where they begin with the command. A flag alone in backticks has
//! to be one of some command.

use std::collections::BTreeMap;

use super::commands::Known;
use super::page::Page;
use super::repository::Repository;
use super::{Wrong, assert_all_true};

/// Flags of cargo, its test programs and other tools that our pages name.
const NOT_OURS: &[&str] = &[
    "--help",
    "--release",
    "--profile",
    "--package",
    "--workspace",
    "--example",
    "--test",
    "--features",
    "--ignored",
    "--exact",
    "--nocapture",
    "--locked",
    "--path",
    "--bin",
    "--all-targets",
    "--no-run",
    "--git",
];
/// Commands that take one of ours as an argument: so many words of their own stand before it.
const BEFORE: &[(&str, usize)] = &[
    ("$", 1),
    ("ssh", 2),
    ("sudo", 1),
    ("time", 1),
    ("timeout", 2),
    ("taskset", 3),
    ("nohup", 1),
    ("exec", 1),
    ("do", 1),
];

struct Rule<'a> {
    known: &'a BTreeMap<String, Known>,
    packages: Vec<String>,
    examples: Vec<String>,
}

impl<'a> Rule<'a> {
    fn new(known: &'a BTreeMap<String, Known>, repository: &Repository) -> Self {
        let name = |file: &String| {
            let text = repository.text(file);
            let line = text.lines().find_map(|line| line.strip_prefix("name = "));
            line.map(|name| name.trim_matches('"').to_owned())
        };
        let packages = repository.ending("Cargo.toml").filter_map(name).collect();
        let examples = repository.ending(".rs").filter_map(|file| {
            let (_, example) = file.split_once("/examples/")?;
            Some(example.split(['/', '.']).next().unwrap_or("").to_owned())
        });
        Self { known, packages, examples: examples.collect() }
    }

    fn wrong(&self, page: &Page) -> Vec<Wrong> {
        let mut all = Vec::new();
        for (line, span) in page.spans().into_iter().filter(|(line, _)| !page.is_past(*line)) {
            all.extend(self.wrong_in_span(&span).into_iter().map(|why| (line, format!("`{span}`: {why}"))));
        }
        for (_, lines) in page.blocks().into_iter().filter(|(language, _)| is_shell(language)) {
            let mut whole = String::new();
            for (line, text) in lines {
                let text = text.split_once(" #").map_or(text, |(text, _)| text);
                whole.push_str(text.trim_end_matches('\\'));
                if text.ends_with('\\') {
                    continue;
                }
                let text = std::mem::take(&mut whole);
                for part in text.split(['|', ';', '&', '(', ')']) {
                    all.extend(
                        self.wrong_command(part)
                            .into_iter()
                            .map(|why| (line, format!("`{}`: {why}", part.trim()))),
                    );
                }
            }
        }
        all
    }

    fn wrong_in_span(&self, span: &str) -> Vec<String> {
        if !span.starts_with("--") {
            return self.wrong_command(span);
        }
        let has = |flag: &String| {
            NOT_OURS.contains(&&**flag) || self.known.values().any(|command| command.has(flag))
        };
        span.split_whitespace()
            .flat_map(flags)
            .filter(|flag| !has(flag))
            .map(|flag| format!("nothing has {flag}"))
            .collect()
    }

    fn wrong_command(&self, text: &str) -> Vec<String> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        while let Some(first) = words.first() {
            let assigns = first.split_once('=').is_some_and(|(name, _)| {
                name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
            });
            let own = BEFORE.iter().find(|(before, _)| before == first).map(|(_, own)| *own);
            match (assigns, own) {
                (true, _) => _ = words.remove(0),
                (_, Some(own)) => _ = words.drain(..own.min(words.len())),
                _ => break,
            }
        }
        let Some((first, rest)) = words.split_first() else { return Vec::new() };
        match (*first, rest) {
            ("cargo", ["lab", rest @ ..]) => self.typed("rackmem-lab", rest),
            ("cargo", ["count", rest @ ..]) => {
                self.typed("rackmem-lab", &[&["bench", "instructions"], rest].concat())
            }
            ("cargo", rest) => self.cargo(rest),
            (program, rest) => self.typed(program.rsplit('/').next().unwrap_or(program), rest),
        }
    }

    fn cargo(&self, words: &[&str]) -> Vec<String> {
        let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let (own, after) = words.split_at(end);
        let named = |flags: &[&str]| -> Vec<&str> {
            own.windows(2).filter(|pair| flags.contains(&pair[0])).map(|pair| pair[1]).collect()
        };
        let (packages, examples) = (named(&["-p", "--package"]), named(&["--example"]));
        let is_name =
            |name: &&&str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
        let unknown = |names: &[&str], known: &[String], what: &str| -> Vec<String> {
            let strange =
                names.iter().filter(is_name).filter(|name| !known.iter().any(|known| known == *name));
            strange
                .filter(|name| **name != "CRATE")
                .map(|name| format!("there is no {what} {name}"))
                .collect()
        };
        let mut all = unknown(&packages, &self.packages, "package");
        all.extend(unknown(&examples, &self.examples, "example"));
        if own.first() == Some(&"run") && examples.is_empty() {
            let lab = packages.contains(&"rackmem-lab-cli");
            all.extend(
                self.typed(if lab { "rackmem-lab" } else { "rackmem" }, after.get(1..).unwrap_or(&[])),
            );
        }
        all
    }

    /// What stands behind one of our commands.
    fn typed(&self, program: &str, words: &[&str]) -> Vec<String> {
        let Some(mut command) = self.known.get(program) else { return Vec::new() };
        let (mut path, mut all, mut before) = (program.to_owned(), Vec::new(), program);
        for word in words {
            if [">", "2>", ">>", "<"].contains(word) {
                break;
            }
            let is_name = word.starts_with(|first: char| first.is_ascii_lowercase());
            // What follows a flag is its value.
            if is_name
                && path.ends_with(before)
                && !command.values.is_empty()
                && !command.values.contains(*word)
            {
                all.push(format!("{path} has no {word}"));
            }
            before = word;
            if is_name && !command.subcommands.is_empty() {
                let Some(sub) = command.subcommands.get(*word) else {
                    all.push(format!("{path} has no subcommand {word}"));
                    break;
                };
                command = sub;
                path = format!("{path} {word}");
            }
            let strange =
                flags(word).into_iter().filter(|flag| flag != "--help" && !command.flags.contains(flag));
            all.extend(strange.map(|flag| format!("{path} has no {flag}")));
        }
        all
    }
}

/// The flags in a word as `[--flag=a|--other]`.
fn flags(word: &str) -> Vec<String> {
    let begins = |at: &usize| word[..*at].chars().last().is_none_or(|before| "[(|/".contains(before));
    let all = word.match_indices("--").map(|(at, _)| at).filter(begins);
    let name = |at: usize| -> String {
        word[at..].chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect()
    };
    all.map(name).filter(|flag| flag.len() > 2).collect()
}

fn is_shell(language: &str) -> bool {
    matches!(language, "sh" | "bash" | "shell" | "console")
}

#[test]
fn flags_and_subcommands_can_be_typed() {
    let (known, repository) = (Known::all(), Repository::here());
    let rule = Rule::new(&known, &repository);
    assert_all_true(&repository, |page| rule.wrong(page));
}

#[test]
fn what_cannot_be_typed_is_found() {
    let (known, repository) = (Known::all(), Repository::here());
    let rule = Rule::new(&known, &repository);
    let found = |text: &str| rule.wrong(&Page::new("docs/a.md", text)).len();
    for true_one in [
        "`rackmem up --nodes 3`",
        "`rackmem status [--config FILE \\| --rack NAME] [--json]`",
        "`cargo run --release -- ycsb --workload A`",
        "`--json`",
        "`cargo lab bench hit --json`",
        "`cargo lab figure concordia-9 --out figures`",
        "```sh\nRACKMEM_LISTEN=0.0.0.0:1 rackmem node --id 0 & # --nobody\nssh a rackmem switch; cd rackmem\n```",
        "```text\nrackmem nobody\n```",
    ] {
        assert_eq!(found(true_one), 0, "{true_one}");
    }
    for false_one in [
        "`rackmem up --nobody`",
        "`rackmem nobody`",
        "`rackmem status [--config FILE \\| --nobody NAME]`",
        "`cargo run --release -- nobody`",
        "`cargo run -p nobody --example hand_over`",
        "`cargo run -p rackmem --example nobody`",
        "`--nobody`",
        "`cargo lab bench nobody`",
        "`cargo lab explain nobody`",
        "`cargo lab figure concordia-1`",
        "`cargo lab bench hit --seeds 3`",
        "```sh\nssh a rackmem switch --nobody\n```",
        "```sh\nrackmem up \\\n  --nobody\n```",
        "```sh\ntrue; target/release/rackmem-lab nobody\n```",
    ] {
        assert_eq!(found(false_one), 1, "{false_one}");
    }
}
