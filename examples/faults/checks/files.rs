//! Every session has exactly the files that its messages say, and no command whose end was emitted
//! ran again.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Findings;
use super::sessions::text_of;
use crate::facts::Facts;
use crate::replica::{SHELL, WRITE_FILE};
use crate::request::Kind;

/// The file to which commands add their words.
const LOG: &str = "log";
/// Parts of the results of calls that were interrupted: with their replica, with their worker, or
/// by the end of their worker.
const INTERRUPTED: [&str; 3] = [
    "was interrupted",
    "the worker that ran the command is lost",
    "the worker was shut down and killed the command",
];

/// The files of a session, as its messages describe them.
#[derive(Debug, Default)]
struct Expected {
    files: BTreeMap<String, String>,
    /// The words of commands by their files.
    words: BTreeMap<String, String>,
    /// The results of failed commands.
    failures: Vec<String>,
}

/// Checks the session of a run; `files` is the list of its files.
pub(super) fn check(fact: &Facts, session: &Value, files: &[Value], findings: &mut Findings) {
    let stated = read(session);
    let listed: BTreeMap<&str, &str> = files
        .iter()
        .filter_map(|file| Some((file["path"].as_str()?, file["hash"].as_str()?)))
        .collect();
    let expected: BTreeMap<&str, String> = stated
        .files
        .iter()
        .map(|(path, text)| (path.as_str(), blake3::hash(text.as_bytes()).to_string()))
        .collect();
    let is_same = listed.len() == expected.len()
        && listed
            .iter()
            .zip(&expected)
            .all(|(left, right)| (left.0, *left.1) == (right.0, right.1));
    if !is_same {
        findings.violation(
            fact,
            format!(
                "its session has the files {listed:?}, its messages say {:?}",
                stated.files
            ),
        );
    }
    findings.files += expected.len();
    // A mishap may interrupt a command, and is no reason for one to fail otherwise.
    let is_interrupted = |text: &&String| INTERRUPTED.iter().any(|part| text.contains(part));
    for failure in stated.failures.iter().filter(|text| !is_interrupted(text)) {
        findings.violation(fact, format!("a command failed: {failure}"));
    }
    // With the durability `session` all of the run happens again.
    if fact.request.kind == Kind::Drafts {
        return;
    }
    for (path, word) in fact.emitted.iter().filter_map(|text| written(text)) {
        if let Some(other) = stated.words.get(path).filter(|other| *other != word) {
            findings.violation(
                fact,
                format!("the command that wrote {word} to {path} ran again: {other}"),
            );
        }
    }
}

/// Reads what the messages say, in their order.
fn read(session: &Value) -> Expected {
    let mut stated = Expected::default();
    let mut calls: BTreeMap<&str, &str> = BTreeMap::new();
    let messages = session["message_history_state"]["messages"].as_array();
    let parts = messages.into_iter().flatten();
    let parts = parts.flat_map(|message| message["content"].as_array().into_iter().flatten());
    for part in parts {
        let text = |field: &str| part[field].as_str().unwrap_or_default();
        match part["type"].as_str() {
            Some("tool_call") => drop(calls.insert(text("id"), text("arguments"))),
            Some("tool_result") if part["name"] == SHELL && part["is_error"] == true => {
                stated.failures.push(text_of(part));
            }
            Some("tool_result") if part["is_error"] == true => (),
            Some("tool_result") if part["name"] == WRITE_FILE => {
                let arguments = calls.get(text("call_id")).copied().unwrap_or_default();
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
                stated.files.insert(argument("path"), argument("content"));
            }
            Some("tool_result") if part["name"] == SHELL => {
                let output = text_of(part);
                let Some((path, word)) = written(&output) else {
                    stated.failures.push(output);
                    continue;
                };
                stated.files.insert(path.to_owned(), format!("{word}\n"));
                stated.words.insert(path.to_owned(), word.to_owned());
                if !path.ends_with(UNLOGGED) {
                    stated.files.entry(LOG.to_owned()).or_default().extend([word, "\n"]);
                }
            }
            _ => (),
        }
    }
    stated
}

/// The part of a request that the log does not have, since its command may run before or after the
/// one of the same step.
const UNLOGGED: &str = " 5";

/// Reads the file and the word from the output of a command.
fn written(output: &str) -> Option<(&str, &str)> {
    output.trim_end().strip_prefix("wrote ")?.rsplit_once(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::Request;

    fn call(id: &str, name: &str, arguments: &Value) -> Value {
        json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments.to_string()})
    }

    fn result(id: &str, name: &str, text: &str, is_error: bool) -> Value {
        json!({"type": "tool_result", "call_id": id, "name": name, "is_error": is_error, "content": [{"type": "text", "text": text}]})
    }

    fn session(parts: &[Value]) -> Value {
        json!({"message_history_state": {"messages": [{"role": "assistant", "content": parts}]}})
    }

    /// Checks a session with files of these texts, and returns the number of violations.
    fn violations(parts: &[Value], files: &[(&str, &str)], emitted: &[&str]) -> usize {
        let request = Request {
            number: 1,
            kind: Kind::Builds,
            thread: None,
            is_repeated: false,
        };
        let mut fact = Facts::new(request);
        fact.emitted = emitted.iter().map(|text| (*text).to_owned()).collect();
        let listed =
            |(path, text): &(&str, &str)| json!({"path": path, "hash": blake3::hash(text.as_bytes()).to_string()});
        let files: Vec<_> = files.iter().map(listed).collect();
        let mut findings = Findings::default();
        check(&fact, &session(parts), &files, &mut findings);
        findings.violations.len()
    }

    #[test]
    fn files_that_no_message_explains_are_found() {
        let parts = [
            call("a", WRITE_FILE, &json!({"path": "n 1", "content": "first"})),
            result("a", WRITE_FILE, "Wrote it.", false),
            result("b", SHELL, "wrote n 2: f00\n", false),
            result("c", SHELL, "wrote n 5: ba5\n", false),
            result("d", SHELL, "the call was interrupted", true),
        ];
        let failed = result("e", SHELL, "[killed]", false);
        let whole = [("log", "f00\n"), ("n 1", "first"), ("n 2", "f00\n"), ("n 5", "ba5\n")];
        assert_eq!(violations(&parts, &whole, &[]), 0);
        // One is missing, one is too many, or one has other contents.
        assert_eq!(violations(&parts, &whole[1..], &[]), 1);
        assert_eq!(violations(&parts, &[&whole[..], &[("x", "")]].concat(), &[]), 1);
        assert_eq!(violations(&[&parts[..], &[failed]].concat(), &whole, &[]), 1);
        let twice = [&[("log", "f00\nf00\n")], &whole[1..]].concat();
        assert_eq!(violations(&parts, &twice, &[]), 1);
    }

    #[test]
    fn a_command_that_ran_again_is_found() {
        let parts = [result("b", SHELL, "wrote n 2: f00\n", false)];
        let files = [("log", "f00\n"), ("n 2", "f00\n")];
        assert_eq!(violations(&parts, &files, &["wrote n 2: f00\n", "wrote n 3: ba5\n"]), 0);
        assert_eq!(violations(&parts, &files, &["wrote n 2: ba5\n"]), 1);
    }
}
