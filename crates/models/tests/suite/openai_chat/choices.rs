//! Choices and contents in the forms of many servers: all are read, or the response is refused.

use agent::ports::ModelErrorClass;
use agent::state::FinishReason;
use values::message::ContentPart;

use super::decoder::{read, stream};

const HELLO: &str = r#"{"choices":[{"index":0,"delta":{"content":"hello"}}]}"#;

#[test]
fn choices_that_complete_each_other_are_one_completion_and_alternatives_are_none() {
    let call = r#"{"index":INDEX"id":"c","function":{"name":"f","arguments":"{}"}}"#.replace("INDEX", "0,");
    let text = r#"{"content":"hello"}"#;
    let choice = |form: &str, number: &str, message: &str| {
        format!(r#"{{{number}"{form}":{message},"finish_reason":"tool_calls"}}"#)
    };
    let calls = format!(r#"{{"tool_calls":[{call}]}}"#);
    let whole = |number: [&str; 2]| {
        let choices = [choice("message", number[0], text), choice("message", number[1], &calls)];
        read(format!(r#"{{"choices":[{}]}}"#, choices.join(",")).as_bytes())
    };
    let streamed = |separate: bool| {
        let choices = [
            choice("delta", r#""index":0,"#, text),
            choice("delta", r#""index":1,"#, &calls),
        ];
        let choices = if separate {
            choices.to_vec()
        } else {
            vec![choices.join(",")]
        };
        let chunks: Vec<_> = choices
            .iter()
            .map(|choice| format!(r#"{{"choices":[{choice}]}}"#))
            .collect();
        stream(&chunks.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for outcome in [
        whole(["", ""]),
        whole([r#""index":0,"#, r#""index":1,"#]),
        whole([r#""index":0,"#, r#""index":0,"#]),
        streamed(true),
        streamed(false),
    ] {
        let response = outcome.1.unwrap();
        let [said, ContentPart::ToolCall(call)] = response.content.as_slice() else {
            panic!("{:?}", response.content);
        };
        assert_eq!((said, call.name.as_str()), (&ContentPart::text("hello"), "f"));
        assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    }
    let other = r#"{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}"#;
    let error = stream(&[HELLO, other]).1.unwrap_err();
    assert_eq!(error.message, "the response has several choices with text");
    let two = r#"{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}"#;
    let (events, end) = read(two.as_bytes());
    assert_eq!((events.len(), end.unwrap_err().class), (0, ModelErrorClass::Protocol));
}

#[test]
fn content_of_any_form_is_read_or_refused() {
    for (content, expected) in [
        (r#"{"type":"text","text":"hi"}"#, Some("hi")),
        (r#"{"text":"hi"}"#, Some("hi")),
        (r#"{"city":"Bern"}"#, Some(r#"{"city":"Bern"}"#)),
        (r#"[{"type":"output_text","text":"h"},"i"]"#, Some("hi")),
        (r#"[{"type":"novel","text":"hi"}]"#, Some("hi")),
        (r#"[{"type":"text","text":{"a":1}}]"#, Some(r#"{"a":1}"#)),
        ("42", Some("42")),
        (r#"[{"type":"novel","words":"hi"}]"#, None),
        ("[]", None),
        ("{}", None),
        ("null", None),
        (r#"" ""#, None),
    ] {
        let choice = |form: &str| {
            format!(r#"{{"choices":[{{"index":0,"{form}":{{"content":{content}}},"finish_reason":"stop"}}]}}"#)
        };
        let whole = read(choice("message").as_bytes());
        for (_, end) in [whole, stream(&[&choice("delta")])] {
            match expected {
                Some(text) => assert_eq!(end.unwrap().content, [ContentPart::text(text)], "{content}"),
                None => assert_eq!(end.unwrap_err().class, ModelErrorClass::Protocol, "{content}"),
            }
        }
    }
}
