//! The guard before the template engine: it refuses tags and operators that build values, whatever they are given.
//!
//! It reads tags as the engine's own lexer does: quotes with escapes, comments, and no raw blocks, which it refuses.

/// The statements that a prompt may use.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Something that a prompt may not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Forbidden {
    /// Where it stands, in bytes.
    pub(super) at: usize,
    /// What it is, in words.
    pub(super) words: String,
}

/// Returns the first thing in the template that a prompt may not have.
pub(super) fn find_forbidden(template: &str) -> Option<Forbidden> {
    let mut at = 0;
    while let Some(offset) = template[at..].find('{') {
        at += offset;
        let rest = &template[at..];
        at += if rest.starts_with("{#") {
            rest.find("#}")? + 2
        } else if let Some(code) = rest.strip_prefix("{{") {
            match scan_tag(code, "}}") {
                Ok(length) => length + 2,
                Err(found) => return Some(found.moved(at + 2)),
            }
        } else if let Some(code) = rest.strip_prefix("{%") {
            let code = code.trim_start_matches(['-', '+']).trim_start();
            let word: String = code.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !STATEMENTS.contains(&word.as_str()) {
                let words = format!("a prompt may use {}, not {word:?}", STATEMENTS.join(", "));
                return Some(Forbidden { at, words });
            }
            let code_at = rest.len() - code.len();
            match scan_tag(code, "%}") {
                Ok(length) => code_at + length,
                Err(found) => return Some(found.moved(at + code_at)),
            }
        } else {
            1
        };
    }
    None
}

impl Forbidden {
    fn moved(self, by: usize) -> Self {
        Self {
            at: self.at + by,
            ..self
        }
    }
}

/// Returns the length of the tag's code with its end; a tag without an end reaches to the end of the template.
fn scan_tag(code: &str, end: &str) -> Result<usize, Forbidden> {
    let mut previous = ' ';
    let mut at = 0;
    while let Some(c) = code[at..].chars().next() {
        if code[at..].starts_with(end) {
            return Ok(at + end.len());
        }
        let opens_list = c == '[' && !(previous.is_alphanumeric() || matches!(previous, '_' | ']' | ')'));
        let adds = c == '+' && at > 0 && !code[at + 1..].starts_with(end);
        if matches!(c, '~' | '*' | ',' | '{') || adds || opens_list {
            let words = format!("a prompt shows values and does not build them: {c:?} is not allowed");
            return Err(Forbidden { at, words });
        }
        if c == '"' || c == '\'' {
            at += string_length(&code[at..], c);
        } else {
            at += c.len_utf8();
        }
        if !c.is_whitespace() {
            previous = c;
        }
    }
    Ok(code.len())
}

/// Returns the length of a quoted text with its quotes; one without an end reaches to the end of the template.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !escaped && c == quote {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}
