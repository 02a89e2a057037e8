//! A Rust source as tokens: enough to see what it defines, without what comments and strings say.

/// A name or number, or one other letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Name(String),
    Sign(char),
}

impl Token {
    pub(super) fn is(&self, name: &str) -> bool {
        matches!(self, Self::Name(own) if own == name)
    }

    pub(super) fn is_sign(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Sign(_) => None,
        }
    }
}

/// All tokens of a source.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let letters: Vec<char> = source.chars().collect();
    let (mut at, mut all) = (0, Vec::new());
    while at < letters.len() {
        let letter = letters[at];
        let next = letters.get(at + 1).copied().unwrap_or(' ');
        match letter {
            '/' if next == '/' => at = find(&letters, at, '\n'),
            '/' if next == '*' => at = after_comment(&letters, at),
            '"' => at = after_string(&letters, at),
            'r' | 'b' if raw_hashes(&letters, at).is_some() => {
                let hashes = raw_hashes(&letters, at).expect("just seen");
                let mut end = find(&letters, at, '"') + 1;
                while end < letters.len()
                    && !(letters[end] == '"'
                        && letters[end + 1..].iter().take(hashes).all(|sign| *sign == '#'))
                {
                    end += 1;
                }
                at = end + 1 + hashes;
            }
            // A letter, or a lifetime.
            '\'' if next == '\\' => at = find(&letters, at + 3, '\'') + 1,
            '\'' if letters.get(at + 2) == Some(&'\'') => at += 3,
            _ if letter.is_alphanumeric() || letter == '_' => {
                let len = letters[at..]
                    .iter()
                    .take_while(|letter| letter.is_alphanumeric() || **letter == '_')
                    .count();
                all.push(Token::Name(letters[at..at + len].iter().collect()));
                at += len;
            }
            _ => {
                if !letter.is_whitespace() {
                    all.push(Token::Sign(letter));
                }
                at += 1;
            }
        }
    }
    all
}

fn find(letters: &[char], from: usize, letter: char) -> usize {
    (from..letters.len()).find(|at| letters[*at] == letter).unwrap_or(letters.len())
}

fn after_comment(letters: &[char], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at + 1 < letters.len() {
        match (letters[at], letters[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    letters.len()
}

fn after_string(letters: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < letters.len() && letters[at] != '"' {
        at += if letters[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// How many `#` a raw string that begins here has.
fn raw_hashes(letters: &[char], at: usize) -> Option<usize> {
    if at > 0 && (letters[at - 1].is_alphanumeric() || letters[at - 1] == '_') {
        return None;
    }
    let begin = if letters[at] == 'b' && letters.get(at + 1) == Some(&'r') { at + 2 } else { at + 1 };
    let is_raw = letters[begin - 1] == 'r';
    let hashes = letters[begin..].iter().take_while(|sign| **sign == '#').count();
    (is_raw && letters.get(begin + hashes) == Some(&'"')).then_some(hashes)
}

#[test]
fn comments_and_strings_are_left_out() {
    let source = r####"fn a<'x>(b: &'x str) { /* no /* no */ */ c("no \" no", r#"no " no"#, '"', '\'', b"no") } // no"####;
    let names: Vec<_> = tokens(source).iter().filter_map(|token| token.name().map(str::to_owned)).collect();
    assert_eq!(names, ["fn", "a", "x", "b", "x", "str", "c", "b"]);
}
