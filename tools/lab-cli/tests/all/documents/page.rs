//! What a Markdown file is made of, as far as our rules look: lines, code blocks, spans of code, headings, links.
//!
//! Not all of Markdown; what our pages use. A span of code may go on in the next line.

/// A Markdown file.
pub(super) struct Page {
    /// Relative to the root.
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
}

/// A line, counted from 1.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) kind: LineKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LineKind {
    Text,
    Table,
    /// In a code block of this language; `None` for the two lines around it.
    Code(Option<String>),
}

/// Something of a page, and the line in which it begins.
pub(super) type At<T> = (usize, T);

impl Page {
    pub(super) fn new(name: &str, text: &str) -> Self {
        let mut fence: Option<(String, String)> = None;
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let bare = line.trim_start();
            let mark: String = bare.chars().take_while(|letter| *letter == '`').collect();
            let kind = match &fence {
                Some((open, _)) if bare.trim_end() == open => {
                    fence = None;
                    LineKind::Code(None)
                }
                Some((_, language)) => LineKind::Code(Some(language.clone())),
                None if mark.len() >= 3 => {
                    let language = bare[mark.len()..].split([',', ' ']).next().unwrap_or("").to_owned();
                    fence = Some((mark, language));
                    LineKind::Code(None)
                }
                None if bare.starts_with('|') => LineKind::Table,
                None => LineKind::Text,
            };
            lines.push(Line { number: index + 1, text: line.to_owned(), kind });
        }
        Self { name: name.to_owned(), lines }
    }

    /// The folder that it is in, with a slash at the end, or nothing.
    pub(super) fn folder(&self) -> &str {
        self.name.rfind('/').map_or("", |slash| &self.name[..=slash])
    }

    /// Whether a line of the changelog tells what was before: names that are gone stand there.
    pub(super) fn is_past(&self, number: usize) -> bool {
        let headings = self.lines[..number].iter().rev().filter(|line| line.text.starts_with('#'));
        self.name == "CHANGELOG.md"
            && headings.take(1).any(|line| matches!(&*line.text, "### Changed" | "### Removed"))
    }

    /// Runs of lines that belong together: a span may begin in one and end in the next. Cells and list items stand alone.
    fn paragraphs(&self) -> Vec<Vec<&Line>> {
        let mut all: Vec<Vec<&Line>> = vec![Vec::new()];
        for line in &self.lines {
            let alone = line.kind != LineKind::Text || line.text.trim().is_empty();
            let begins = alone || line.text.trim_start().starts_with(['#', '-', '*', '>', '!']);
            if begins {
                all.push(Vec::new());
            }
            if !matches!(line.kind, LineKind::Code(_)) {
                all.last_mut().expect("one is open").push(line);
            }
            if alone {
                all.push(Vec::new());
            }
        }
        all
    }

    /// What stands in backticks outside of code blocks, and the text around it with blanks for it.
    fn split(&self) -> (Vec<At<String>>, Vec<At<String>>) {
        let (mut spans, mut texts) = (Vec::new(), Vec::new());
        for lines in self.paragraphs() {
            let mut letters = lines.iter().flat_map(|line| {
                line.text.chars().map(|letter| (line.number, letter)).chain([(line.number, '\n')])
            });
            let all: Vec<(usize, char)> = letters.by_ref().collect();
            let (mut at, mut text) = (0, Vec::new());
            while at < all.len() {
                let open = all[at..].iter().take_while(|(_, letter)| *letter == '`').count();
                if open == 0 {
                    text.push(all[at]);
                    at += 1;
                    continue;
                }
                let Some(end) = closing(&all, at + open, open) else {
                    at += open;
                    continue;
                };
                let inside: String = all[at + open..end].iter().map(|(_, letter)| *letter).collect();
                spans.push((all[at].0, inside.replace('\n', " ").trim().to_owned()));
                // A link may have a span in its text.
                text.push((all[at].0, '\u{1}'));
                text.extend(all[at + open..end].iter().filter(|(_, letter)| *letter == '\n'));
                at = end + open;
            }
            if let Some((first, _)) = text.first() {
                texts.push((*first, text.iter().map(|(_, letter)| *letter).collect()));
            }
        }
        (spans, texts)
    }

    /// What stands in backticks, outside of code blocks.
    pub(super) fn spans(&self) -> Vec<At<String>> {
        self.split().0
    }

    /// The targets of links and pictures.
    pub(super) fn links(&self) -> Vec<At<String>> {
        let mut links = Vec::new();
        for (first, text) in self.split().1 {
            let mut from = 0;
            while let Some(found) = text[from..].find("](") {
                let begin = from + found + 2;
                let Some(len) = text[begin..].find(')') else { break };
                let line = first + text[..begin].matches('\n').count();
                let target = text[begin..begin + len].split_whitespace().next().unwrap_or("");
                links.push((line, target.to_owned()));
                from = begin + len;
            }
        }
        links
    }

    /// The names by which headings are linked to, as GitHub makes them.
    pub(super) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for line in self.lines.iter().filter(|line| line.kind == LineKind::Text) {
            let text = line.text.trim_start_matches('#');
            if text.len() == line.text.len() || !text.starts_with(' ') {
                continue;
            }
            let slug = slug(text);
            let same = |anchor: &String| *anchor == slug || anchor.strip_prefix(&slug).is_some_and(is_count);
            let before = anchors.iter().filter(|anchor| same(anchor)).count();
            anchors.push(if before == 0 { slug } else { format!("{slug}-{before}") });
        }
        anchors
    }

    /// The lines of each code block, with its language.
    pub(super) fn blocks(&self) -> Vec<(&str, Vec<At<&str>>)> {
        let mut blocks: Vec<(&str, Vec<At<&str>>)> = Vec::new();
        let mut inside = false;
        for line in &self.lines {
            match &line.kind {
                LineKind::Code(Some(language)) => {
                    if !inside {
                        blocks.push((language, Vec::new()));
                    }
                    inside = true;
                    blocks.last_mut().expect("one was begun").1.push((line.number, &line.text));
                }
                _ => inside = false,
            }
        }
        blocks
    }
}

/// Where as many backticks stand again.
fn closing(all: &[(usize, char)], from: usize, count: usize) -> Option<usize> {
    let mut at = from;
    while at < all.len() {
        let run = all[at..].iter().take_while(|(_, letter)| *letter == '`').count();
        if run == count {
            return Some(at);
        }
        at += run.max(1);
    }
    None
}

fn is_count(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|digits| digits.parse::<u32>().is_ok())
}

fn slug(heading: &str) -> String {
    // Of a link in a heading its text stays.
    let mut text = heading.trim().to_owned();
    while let Some(middle) = text.find("](") {
        let Some(end) = text[middle..].find(')') else { break };
        text.replace_range(middle..=middle + end, "");
    }
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    text.to_lowercase().chars().filter(kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn a_page_is_taken_apart() {
    let page = Page::new(
        "docs/a.md",
        "# A `b` & c\n## Twice\n## Twice\nsee `one\ntwo` and ``a`b`` [x `y`](z.md#q)\n| `cell` |\n```sh\n`no`\n```\n",
    );
    assert_eq!(page.anchors(), ["a-b--c", "twice", "twice-1"]);
    let spans = [(1, "b"), (4, "one two"), (5, "a`b"), (5, "y"), (6, "cell")];
    assert_eq!(page.spans(), spans.map(|(line, span)| (line, span.to_owned())));
    assert_eq!(page.links(), [(5, "z.md#q".to_owned())]);
    assert_eq!(page.blocks(), [("sh", vec![(8, "`no`")])]);
    assert_eq!(page.folder(), "docs/");
    let log = Page::new("CHANGELOG.md", "### Added\na\n### Changed\nb\n");
    assert_eq!([log.is_past(2), log.is_past(4)], [false, true]);
}
