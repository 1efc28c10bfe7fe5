//! Compares a response that a document shows with the real one.
//!
//! `…` stands for what a document leaves out: any text within a string or a line, any lines where
//! it stands alone, further members of an object or a list. Times and durations only need to be
//! some. Ids, hashes and keys differ from run to run, so they are matched with each other: what a
//! document shows twice must be the same twice.

use std::collections::BTreeMap;

use values::json::Value;

use super::words::{Piece, pieces, without_durations, without_times};

const ELLIPSIS: char = '…';

/// Which shown id stands for which given one.
#[derive(Debug, Default)]
pub(super) struct Known {
    given: BTreeMap<String, String>,
    shown: BTreeMap<String, String>,
}

impl Known {
    /// Replaces the ids that the document shows by those that were given.
    pub(super) fn translate(&self, text: &str) -> String {
        self.given
            .iter()
            .fold(text.to_owned(), |text, (shown, given)| text.replace(shown, given))
    }

    /// Compares lines.
    pub(super) fn check_lines(&mut self, shown: &str, given: &str) -> Result<(), String> {
        let given: Vec<&str> = given.trim_end().lines().collect();
        let mut next = 0;
        let mut skips = false;
        for line in shown.trim_end().lines() {
            if line.trim() == "…" {
                skips = true;
                continue;
            }
            let mut fault = format!("nothing is left for the line\n  {line}");
            let found = (next..given.len()).find(|at| {
                let checked = (skips || *at == next).then(|| self.check_text(line, given[*at]));
                match checked {
                    Some(Ok(())) => true,
                    Some(Err(words)) => {
                        fault = words;
                        false
                    }
                    None => false,
                }
            });
            next = found.ok_or(fault)? + 1;
            skips = false;
        }
        if next < given.len() && !skips {
            return Err(format!("the document does not show the line\n  {}", given[next]));
        }
        Ok(())
    }

    /// Compares JSON; `path` leads to the value.
    pub(super) fn check_json(&mut self, path: &str, shown: &Value, given: &Value) -> Result<(), String> {
        match (shown, given) {
            (Value::String(shown), _) if shown == "…" => Ok(()),
            (Value::String(shown), Value::String(given)) => self
                .check_text(shown, given)
                .map_err(|fault| format!("{path}: {fault}")),
            (Value::Object(shown), Value::Object(given)) => {
                for (key, value) in shown.iter().filter(|(key, _)| *key != "…") {
                    let path = format!("{path}/{key}");
                    let given = given.get(key).ok_or_else(|| format!("{path}: was not given"))?;
                    self.check_json(&path, value, given)?;
                }
                let left_out = given.keys().find(|key| !shown.contains_key(*key));
                match left_out {
                    Some(key) if !shown.contains_key("…") => Err(format!("{path}/{key}: is not shown")),
                    _ => Ok(()),
                }
            }
            (Value::Array(shown), Value::Array(given)) => {
                let open = shown.last().is_some_and(|last| last == "…");
                let rows = if open { &shown[..shown.len() - 1] } else { &shown[..] };
                if given.len() < rows.len() || (given.len() > rows.len() && !open) {
                    return Err(format!(
                        "{path}: {} items are shown, {} were given",
                        rows.len(),
                        given.len()
                    ));
                }
                let pairs = rows.iter().zip(given).enumerate();
                pairs
                    .into_iter()
                    .try_for_each(|(at, (shown, given))| self.check_json(&format!("{path}/{at}"), shown, given))
            }
            (Value::Number(_), Value::Number(_)) if path.ends_with("duration_ms") => Ok(()),
            _ if shown == given => Ok(()),
            _ => Err(format!("{path}: {shown} is shown, {given} was given")),
        }
    }

    fn check_text(&mut self, shown: &str, given: &str) -> Result<(), String> {
        let differs = || Err(format!("shown\n  {shown}\ngiven\n  {given}"));
        let (translated, timeless) = (without_times(&self.translate(shown)), without_times(given));
        if shown.contains(ELLIPSIS) {
            return if fits(&translated, &timeless) {
                Ok(())
            } else {
                differs()
            };
        }
        let (left, right) = (pieces(shown), pieces(given));
        if left.len() != right.len() {
            return differs();
        }
        for (left, right) in left.iter().zip(&right) {
            let is_same = match (left, right) {
                (Piece::Id(shown), Piece::Id(given)) => self.pair(shown, given),
                (Piece::Plain(shown), Piece::Plain(given)) => without_durations(shown) == without_durations(given),
                (left, right) => left == right,
            };
            if !is_same {
                return differs();
            }
        }
        Ok(())
    }

    /// Pairs two texts; returns whether neither has another partner.
    fn pair(&mut self, shown: &str, given: &str) -> bool {
        let first = self.given.entry(shown.to_owned()).or_insert_with(|| given.to_owned());
        let back = self.shown.entry(given.to_owned()).or_insert_with(|| shown.to_owned());
        first == given && back == shown
    }
}

/// Reads JSON in which a bare `…` stands for further members.
pub(super) fn parse_shown(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&as_json(text))
}

/// Makes JSON of what a document shows, with a member `…` for each bare one.
pub(super) fn as_json(text: &str) -> String {
    let (mut json, mut open, mut in_string, mut escaped) = (String::new(), Vec::new(), false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => in_string = !in_string,
            '{' | '[' if !in_string => open.push(c),
            '}' | ']' if !in_string => drop(open.pop()),
            ELLIPSIS if !in_string => {
                json.push_str(if open.last() == Some(&'{') {
                    "\"…\": \"…\""
                } else {
                    "\"…\""
                });
                continue;
            }
            _ => (),
        }
        escaped = in_string && c == '\\' && !escaped;
        json.push(c);
    }
    json
}

/// Returns whether the text has the parts between the ellipses, in order, and ends where they end.
fn fits(pattern: &str, text: &str) -> bool {
    let parts: Vec<&str> = pattern.split(ELLIPSIS).collect();
    let (Some((first, rest)), Some(last)) = (parts.split_first(), parts.last()) else {
        return false;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    for part in &rest[..rest.len() - 1] {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[test]
fn only_forbidden_differences_are_found() {
    let (a, b) = (
        "01a1fd8f-1377-7581-847a-0e0a2f37f5f2",
        "01a1fd8f-1377-7581-847a-0e0a2f37f5f3",
    );
    let check = |shown: &str, given: &str| {
        let (shown, given) = (parse_shown(shown).unwrap(), serde_json::from_str(given).unwrap());
        Known::default().check_json("", &shown, &given)
    };
    let same = [
        (r#"{"a": 1, …}"#, r#"{"a": 1, "b": 2}"#.to_owned()),
        (
            r#"{"a": [1, …], "t": "2026-01-01T00:00:00Z"}"#,
            r#"{"a": [1, 2], "t": "2027-02-02T10:00:00.5Z"}"#.to_owned(),
        ),
        (
            r#"{"a": "one … four", "duration_ms": 3}"#,
            r#"{"a": "one two three four", "duration_ms": 4}"#.to_owned(),
        ),
    ];
    for (shown, given) in same {
        check(shown, &given).unwrap();
    }
    for (shown, given) in [
        (r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"a": 1, …}"#, r#"{"b": 2}"#),
        (r#"{"a": "one … four"}"#, r#"{"a": "one two"}"#),
        (r#"{"a": [1]}"#, r#"{"a": [1, 2]}"#),
        (r#"{"a": "x"}"#, r#"{"a": "y"}"#),
    ] {
        check(shown, given).unwrap_err();
    }
    let twice = format!(r#"{{"a": "{a}", "b": "{a}"}}"#);
    check(&twice, &twice.replace(a, b)).unwrap();
    check(&twice, &format!(r#"{{"a": "{a}", "b": "{b}"}}"#)).unwrap_err();
    let mut known = Known::default();
    known.check_lines("one\n…\nlast", "one\ntwo\nthree\nlast\n").unwrap();
    known.check_lines("one\nlast", "one\ntwo\nlast").unwrap_err();
    known.check_lines("one", "one\ntwo").unwrap_err();
}
