//! Property files, in the format that `java.util.Properties` reads, which is what YCSB's workload files are.
//!
//! `key=value`, `key: value` or `key value`; comments start with `#` or `!`; a backslash at the end of a line
//! continues it, elsewhere it escapes. A key that is given twice has its last value.
//! Spaces after a value are dropped, which Java does not do: they are never meant in a workload file.

/// One property, and the line that it starts on (counted from 1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Property {
    pub(crate) line: usize,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// All properties of a file, in its order.
pub(crate) fn parse(text: &str) -> Result<Vec<Property>, String> {
    logical_lines(text)
        .into_iter()
        .map(|(line, text)| {
            let (key, value) = split(&text);
            Ok(Property { line, key: unescape(key, line)?, value: unescape(value.trim_end(), line)? })
        })
        .collect()
}

/// Lines without comments and blank ones, each joined with those that continue it.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start_matches([' ', '\t', '\x0c']);
        if !continues && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let goes_on = backslashes % 2 == 1;
        let line = if goes_on { &line[..line.len() - 1] } else { line };
        match lines.last_mut() {
            Some((_, last)) if continues => last.push_str(line),
            _ => lines.push((index + 1, line.to_owned())),
        }
        continues = goes_on;
    }
    lines
}

/// Key and value of a logical line, still escaped.
fn split(line: &str) -> (&str, &str) {
    let blank = [' ', '\t', '\x0c'];
    let mut escaped = false;
    let end = line
        .char_indices()
        .find(|(_, c)| {
            let ends = !escaped && (matches!(c, '=' | ':') || blank.contains(c));
            escaped = !escaped && *c == '\\';
            ends
        })
        .map_or(line.len(), |(at, _)| at);
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(blank))
}

fn unescape(text: &str, line: usize) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let unit = Some(&digits)
                    .filter(|digits| digits.len() == 4 && digits.chars().all(|c| c.is_ascii_hexdigit()))
                    .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                    .and_then(char::from_u32);
                let wrong =
                    || format!("line {line}: `\\u{digits}` is not a character: write four hex digits");
                out.push(unit.ok_or_else(wrong)?);
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(usize, String, String)> {
        parse(text).unwrap().into_iter().map(|p| (p.line, p.key, p.value)).collect()
    }

    fn one(text: &str) -> (String, String) {
        let mut all = pairs(text);
        assert_eq!(all.len(), 1, "{text:?}");
        let (_, key, value) = all.remove(0);
        (key, value)
    }

    #[test]
    fn key_and_value_are_separated_by_an_equals_sign_a_colon_or_blanks() {
        for text in ["k=v", "k = v", "k:v", "k: v", "k v", "k\tv", "  k=v", "k=v  ", "k =v\r\n"] {
            assert_eq!(one(text), ("k".into(), "v".into()), "{text:?}");
        }
    }

    #[test]
    fn only_the_first_separator_separates() {
        assert_eq!(one("k=a=b:c d"), ("k".into(), "a=b:c d".into()));
        assert_eq!(one("url : http://host"), ("url".into(), "http://host".into()));
    }

    #[test]
    fn a_key_alone_has_an_empty_value() {
        assert_eq!(one("insertcount="), ("insertcount".into(), String::new()));
        assert_eq!(one("insertcount"), ("insertcount".into(), String::new()));
    }

    #[test]
    fn comments_and_blank_lines_say_nothing_but_count_as_lines() {
        assert_eq!(
            pairs("# one\n! two\n\n   \n  # five\na=b # no comment\n"),
            [(6, "a".into(), "b # no comment".into())]
        );
    }

    #[test]
    fn a_backslash_at_the_end_continues_a_line_and_two_do_not() {
        assert_eq!(
            pairs("a=1\\\n   2\nb=c\\\\\nd=e"),
            [(1, "a".into(), "12".into()), (3, "b".into(), "c\\".into()), (4, "d".into(), "e".into())]
        );
        assert_eq!(one("a=1\\\n#2"), ("a".into(), "1#2".into()));
    }

    #[test]
    fn escapes_are_those_of_java() {
        assert_eq!(one(r"a\=b\:c\ d=\t\u0041\\x"), ("a=b:c d".into(), "\tA\\x".into()));
        assert!(parse("\na=\\u00g1").unwrap_err().contains("line 2"));
        assert!(parse("a=\\u12").is_err());
    }

    #[test]
    fn no_text_makes_the_parser_panic() {
        let mut random = crate::ycsb::random::Random::new(7, 0);
        let alphabet: Vec<char> = "\\u=: \t\r\n#!aé0\u{1F600}".chars().collect();
        for _ in 0..20_000 {
            let len = random.below(24);
            let text: String = (0..len)
                .map(|_| alphabet[usize::try_from(random.below(alphabet.len() as u64)).unwrap()])
                .collect();
            let _ = parse(&text);
        }
    }
}
