//! Conversations, as clients send them.

use serde_json::json;
use uuid::Uuid;

use super::*;
use values::clock::Timestamp;
use values::ids::MessageId;
use values::json::RawJson;
use values::message::{Message, ProviderFields};

fn text(role: Role, text: &str) -> Item {
    let content = vec![ContentPart::text(text)];
    Item::Message { role, content }
}

fn call(id: &str) -> Item {
    let (id, name, arguments) = (id.to_owned(), "f".to_owned(), "{}".to_owned());
    Item::Call(ToolCall {
        id,
        name,
        arguments,
        signature: None,
    })
}

fn output(call_id: &str) -> Item {
    let (call_id, content) = (call_id.to_owned(), vec![ContentPart::text("r")]);
    Item::Output { call_id, content }
}

fn arranged(items: Vec<Item>, open: &[&str]) -> Result<Arranged, Problem> {
    arrange(
        items.into_iter().enumerate().collect(),
        &open.iter().copied().collect(),
        "input",
    )
}

/// Writes a message as its role and its parts.
fn shown(messages: &[InputMessage]) -> Vec<String> {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(part) => part.text.clone(),
        ContentPart::ToolCall(call) => format!("{}?", call.id),
        ContentPart::ToolResult(result) => format!("{}!", result.call_id),
        other => serde_json::to_value(other).unwrap()["type"].to_string(),
    };
    let message = |message: &InputMessage| {
        let parts: Vec<String> = message.content.iter().map(part).collect();
        let role = json!(message.role);
        format!("{}: {}", role.as_str().unwrap(), parts.join(" "))
    };
    messages.iter().map(message).collect()
}

#[test]
fn a_turn_becomes_one_message_and_its_results_follow() {
    for (items, expected) in [
        (
            vec![
                text(Role::User, "q"),
                text(Role::Assistant, "t"),
                call("a"),
                call("b"),
                output("b"),
                output("a"),
            ],
            &["user: q", "assistant: t a? b?", "tool: a! b!"][..],
        ),
        (
            vec![call("a"), output("a"), call("b"), output("b")],
            &["assistant: a?", "tool: a!", "assistant: b?", "tool: b!"],
        ),
        (
            vec![call("a"), text(Role::User, "q"), output("a")],
            &["assistant: a?", "tool: a!", "user: q"],
        ),
        (
            vec![call("a"), output("a"), text(Role::User, "q"), call("a"), output("a")],
            &["assistant: a?", "tool: a!", "user: q", "assistant: a?", "tool: a!"],
        ),
        (
            vec![text(Role::Assistant, "t"), text(Role::Assistant, "u")],
            &["assistant: t", "assistant: u"],
        ),
    ] {
        assert_eq!(shown(&arranged(items, &[]).unwrap().messages), expected);
    }
}

/// Reasoning with the marks of a message.
fn marked(words: &str) -> Item {
    let id = MessageId::from_uuid(Uuid::nil());
    let mut message = Message::text(id, Role::Assistant, words, Timestamp::UNIX_EPOCH);
    let field = ("reasoning_content".to_owned(), RawJson::new("\"hm\""));
    message.provider_fields = Some(ProviderFields {
        fields: vec![field],
        ..ProviderFields::owner("p")
    });
    let (text, marks) = (String::new(), Marks::of(&message));
    Item::Reasoning { text, marks }
}

#[test]
fn marks_belong_to_the_message_with_their_words() {
    let thought = || Item::Reasoning {
        text: "hm".to_owned(),
        marks: None,
    };
    for (items, expected, owned) in [
        (
            vec![marked("t"), text(Role::Assistant, "t"), call("a"), output("a")],
            &["assistant: t a?", "tool: a!"][..],
            &[true, false][..],
        ),
        // A response that begins with words has its marks after them.
        (
            vec![
                text(Role::Assistant, "s"),
                text(Role::Assistant, "t"),
                thought(),
                text(Role::Assistant, "u"),
                marked("tu"),
                call("a"),
                output("a"),
            ],
            &["assistant: s", "assistant: \"reasoning\" t u a?", "tool: a!"],
            &[false, true, false],
        ),
        // The client has changed the first words.
        (
            vec![
                marked("tu"),
                text(Role::Assistant, "other"),
                thought(),
                text(Role::Assistant, "u"),
                call("a"),
                output("a"),
                thought(),
            ],
            &[
                "assistant: \"reasoning\" other u a?",
                "tool: a!",
                "assistant: \"reasoning\"",
            ],
            &[true, false, false],
        ),
        // The marks are of another message, without words.
        (
            vec![text(Role::Assistant, "t"), marked(""), call("a"), output("a")],
            &["assistant: t", "assistant: a?", "tool: a!"],
            &[false, true, false],
        ),
        (
            vec![
                text(Role::Assistant, "s"),
                marked("t"),
                text(Role::Assistant, "t"),
                marked("u"),
                text(Role::Assistant, "u"),
            ],
            &["assistant: s", "assistant: t", "assistant: u"],
            &[false, true, true],
        ),
        (
            vec![marked("tu"), text(Role::Assistant, "t"), text(Role::Assistant, "u")],
            &["assistant: tu"],
            &[true],
        ),
        (vec![marked(""), text(Role::User, "q")], &["user: q"], &[false]),
    ] {
        let messages = arranged(items, &[]).unwrap().messages;
        assert_eq!(shown(&messages), expected);
        let found: Vec<bool> = messages
            .iter()
            .map(|message| message.provider_fields.is_some())
            .collect();
        assert_eq!(found, owned);
    }
}

#[test]
fn a_message_with_several_blocks_is_restored() {
    let content = json!([
        {"type": "reasoning", "text": "hm", "signature": "s"}, {"type": "text", "text": "t", "signature": "v"},
        {"type": "reasoning", "text": "so", "signature": "w"}, {"type": "text", "text": "u"},
        {"type": "reasoning", "text": "go", "signature": "x"},
        {"type": "tool_call", "id": "a", "name": "f", "arguments": "{}", "signature": "y"},
    ]);
    let content: Vec<ContentPart> = serde_json::from_value(content).unwrap();
    let id = MessageId::from_uuid(Uuid::nil());
    let mut message = Message::new(id, Role::Assistant, content, Timestamp::UNIX_EPOCH);
    message.provider_fields = Some(ProviderFields::owner("p"));
    let thought = |text: &str, marks| Item::Reasoning {
        text: text.to_owned(),
        marks,
    };
    let items = vec![
        thought("hm", Marks::of(&message)),
        text(Role::Assistant, "t"),
        thought("so", None),
        text(Role::Assistant, "u"),
        thought("go", None),
        call("a"),
        output("a"),
    ];
    let messages = arranged(items, &[]).unwrap().messages;
    assert_eq!(shown(&messages[1..]), ["tool: a!"]);
    assert_eq!(messages[0].content, message.content);
    assert_eq!(messages[0].provider_fields, message.provider_fields);
}

#[test]
fn results_of_open_calls_are_answers() {
    let found = arranged(vec![call("a"), output("a"), text(Role::User, "q")], &["a"]).unwrap();
    assert_eq!(shown(&found.messages), ["user: q"]);
    assert_eq!(
        found.outputs,
        [Output {
            call_id: "a".to_owned(),
            content: vec![ContentPart::text("r")]
        }]
    );
}

#[test]
fn a_call_has_exactly_one_result() {
    for (items, words) in [
        (vec![call("a")], "No tool output found for function call a."),
        (
            vec![output("a")],
            "No tool call found for function call output with call_id a.",
        ),
        (vec![call("a"), output("a"), output("a")], "No tool call found"),
    ] {
        let problem = arranged(items, &[]).unwrap_err();
        let found = &problem.first_error().unwrap().message;
        assert!(found.contains(words), "{found}");
    }
}
