//! Decisions: the JSON object in which a model states what it does next. Parses and writes them
//! only.

use serde::Serialize;

use values::json::{Object, Value, parse_strict, parse_strict_prefix};

/// The keys of a decision.
const THOUGHT: &str = "thought";
const ACTION: &str = "action";
const ANSWER: &str = "answer";

/// The decision of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decision {
    /// The reasoning; may be empty.
    pub(super) thought: String,
    /// The next action.
    pub(super) choice: Choice,
}

/// The next action of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Choice {
    /// To call a tool.
    Act {
        /// The tool's name.
        tool: String,
        /// The arguments: a JSON object.
        arguments: String,
    },
    /// To finish: with this text, or with the JSON of a value.
    Answer(String),
}

/// Parses the only decision in a text. Ignores other text and a code fence around it. Repairs
/// nothing.
pub(super) fn read_decision(text: &str) -> Result<Decision, String> {
    let mut found = None;
    let mut rest = text;
    while let Some(at) = object_start(rest) {
        let (value, end) =
            parse_strict_prefix(&rest[at..]).map_err(|error| format!("its JSON is not valid: {error}"))?;
        rest = &rest[at + end..];
        let Value::Object(object) = value else { continue };
        if ![THOUGHT, ACTION, ANSWER].iter().any(|key| object.contains_key(*key)) {
            continue;
        }
        if found.replace(object).is_some() {
            return Err("it has more than one decision; exactly one is expected".to_owned());
        }
    }
    let object = found.ok_or_else(|| format!("it has no JSON object with {ACTION:?} or {ANSWER:?}"))?;
    decision_of(object)
}

/// Writes the decision to call a tool in the format that the model uses. Equal decisions give equal
/// bytes.
pub(super) fn written_action(thought: &str, tool: &str, arguments: &str) -> String {
    // Arguments that are not JSON are written as a string.
    let arguments = parse_strict(arguments).unwrap_or_else(|_| Value::from(arguments));
    written(&Written {
        thought,
        action: Some(WrittenAction { tool, arguments }),
        answer: None,
    })
}

/// Writes the decision to finish.
pub(super) fn written_answer(answer: Value) -> String {
    written(&Written {
        thought: "",
        action: None,
        answer: Some(answer),
    })
}

/// A decision in the order in which a model should write it: it thinks first.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    thought: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<WrittenAction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
}

#[derive(Serialize)]
struct WrittenAction<'a> {
    tool: &'a str,
    arguments: Value,
}

fn written(decision: &Written<'_>) -> String {
    // Every map has text keys, so this can't fail.
    serde_json::to_string(decision).unwrap_or_default()
}

/// Returns where the first JSON object begins: at an opening brace before a key or a closing brace.
/// Other text may contain other braces.
fn object_start(text: &str) -> Option<usize> {
    text.match_indices('{')
        .map(|(at, _)| at)
        .find(|at| text[at + 1..].trim_start().starts_with(['"', '}']))
}

fn decision_of(mut object: Object) -> Result<Decision, String> {
    let thought = match object.remove(THOUGHT) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(thought)) => thought,
        Some(_) => return Err(format!("its {THOUGHT:?} is not a text")),
    };
    let given = |value: &Value| !value.is_null();
    let action = object.remove(ACTION).filter(given);
    let answer = object.remove(ANSWER).filter(given);
    if let Some(key) = object.keys().next() {
        return Err(format!("its key {key:?} is not known"));
    }
    let choice = match (action, answer) {
        (Some(action), None) => act(action)?,
        (None, Some(answer)) => answered(answer)?,
        (Some(_), Some(_)) => return Err(format!("it has both {ACTION:?} and {ANSWER:?}")),
        (None, None) => return Err(format!("it has neither {ACTION:?} nor {ANSWER:?}")),
    };
    Ok(Decision { thought, choice })
}

fn act(action: Value) -> Result<Choice, String> {
    let Value::Object(mut action) = action else {
        return Err(format!("its {ACTION:?} is not an object"));
    };
    let tool = match action.remove("tool") {
        Some(Value::String(tool)) if !tool.is_empty() => tool,
        _ => return Err(format!("its {ACTION:?} names no \"tool\"")),
    };
    let arguments = match action.remove("arguments") {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err("its \"arguments\" are not an object".to_owned()),
    };
    if let Some(key) = action.keys().next() {
        return Err(format!("the key {key:?} of its {ACTION:?} is not known"));
    }
    let arguments = Value::Object(arguments).to_string();
    Ok(Choice::Act { tool, arguments })
}

fn answered(answer: Value) -> Result<Choice, String> {
    match answer {
        Value::String(words) if words.trim().is_empty() => Err(format!("its {ANSWER:?} is empty")),
        Value::String(words) => Ok(Choice::Answer(words)),
        value => Ok(Choice::Answer(value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn act(thought: &str, tool: &str, arguments: &str) -> Decision {
        let choice = Choice::Act {
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        };
        let thought = thought.to_owned();
        Decision { thought, choice }
    }

    fn answer(thought: &str, words: &str) -> Decision {
        let choice = Choice::Answer(words.to_owned());
        let thought = thought.to_owned();
        Decision { thought, choice }
    }

    #[test]
    fn decisions_are_read_in_fences_and_in_text() {
        for (text, expected) in [
            (r#"{"thought": "t", "answer": "Bern"}"#, answer("t", "Bern")),
            (r#"{"answer": "Bern"}"#, answer("", "Bern")),
            (r#"{"thought": null, "answer": "a", "action": null}"#, answer("", "a")),
            (r#"{"answer": {"b": 1, "a": [2]}}"#, answer("", r#"{"a":[2],"b":1}"#)),
            (r#"{"answer": 7}"#, answer("", "7")),
            (
                "```json\n{\"thought\": \"t\", \"action\": {\"tool\": \"calc\", \"arguments\": {\"x\": \"}{\"}}}\n```",
                act("t", "calc", r#"{"x":"}{"}"#),
            ),
            (
                "I'd use {calc} {now}:\n{ \"action\": {\"tool\": \"calc\"}} That's all.",
                act("", "calc", "{}"),
            ),
            (r#"{"note": 1} {"answer": "a"}"#, answer("", "a")),
            (r#"[{"answer": "a"}]"#, answer("", "a")),
            (
                r#"{"answer": "{\"answer\": \"inner\"}"}"#,
                answer("", r#"{"answer": "inner"}"#),
            ),
        ] {
            assert_eq!(read_decision(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_an_error() {
        for (text, words) in [
            ("", r#"no JSON object with "action" or "answer""#),
            ("The answer is Bern.", r#"no JSON object with "action" or "answer""#),
            ("{} {\"tool\": \"calc\"}", r#"no JSON object with "action" or "answer""#),
            (r#"{"actions": []}"#, r#"no JSON object with "action" or "answer""#),
            (r#"{"thought": "t"}"#, r#"neither "action" nor "answer""#),
            (r#"{"answer": null}"#, r#"neither "action" nor "answer""#),
            (
                r#"{"action": {"tool": "a"}, "answer": "b"}"#,
                r#"both "action" and "answer""#,
            ),
            (r#"{"answer": "a"} {"answer": "b"}"#, "more than one decision"),
            (r#"[{"answer": "a"}, {"answer": "a"}]"#, "more than one decision"),
            (r#"{"answer": "a", "answer": "b"}"#, "appears twice"),
            (r#"{"thought": "t", "answer": "a"#, "is not valid"),
            (r#"{"answer": "a",}"#, "is not valid"),
            (
                r#"{"answer": "a", "observation": "o"}"#,
                r#"key "observation" is not known"#,
            ),
            (r#"{"thought": 1, "answer": "a"}"#, r#""thought" is not a text"#),
            (r#"{"answer": " "}"#, r#""answer" is empty"#),
            (r#"{"action": "calc"}"#, r#""action" is not an object"#),
            (r#"{"action": {"arguments": {}}}"#, r#"names no "tool""#),
            (r#"{"action": {"tool": ""}}"#, r#"names no "tool""#),
            (r#"{"action": {"tool": "a", "arguments": [1]}}"#, "are not an object"),
            (
                r#"{"action": {"tool": "a", "input": {}}}"#,
                r#"key "input" of its "action""#,
            ),
        ] {
            let fault = read_decision(text).unwrap_err();
            assert!(fault.contains(words), "{text}: {fault}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let cases = [
            (
                written_action("t", "calc", r#"{"x": 1}"#),
                act("t", "calc", r#"{"x":1}"#),
            ),
            (written_action("", "calc", "{}"), act("", "calc", "{}")),
            (written_answer(json!("Bern")), answer("", "Bern")),
            (written_answer(json!({"a": 1})), answer("", r#"{"a":1}"#)),
        ];
        for (written, expected) in cases {
            assert_eq!(read_decision(&written), Ok(expected), "{written}");
        }
        let unreadable = written_action("t", "calc", "{\"x\": ");
        assert_eq!(
            unreadable,
            r#"{"thought":"t","action":{"tool":"calc","arguments":"{\"x\": "}}"#
        );
    }

    proptest! {
        #[test]
        fn any_decision_is_read_in_any_text_without_braces(
            thought in ".{0,20}", words in "[^{ ]{1,20}", before in "[^{]{0,20}", after in "[^{]{0,20}",
        ) {
            let decision = json!({"thought": thought, "answer": words});
            let read = read_decision(&format!("{before}{decision}{after}"));
            prop_assert_eq!(read, if words.trim().is_empty() { read_decision(&decision.to_string()) } else { Ok(answer(&thought, &words)) });
        }

        #[test]
        fn no_text_without_a_key_of_a_decision_is_one(text in "[{}\\[\\]\":, a-f0-9\\\\`\n]{0,80}") {
            prop_assert!(read_decision(&text).is_err());
        }
    }
}
