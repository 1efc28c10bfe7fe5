//! Requests leave out reasoning, fields and completions that a server would refuse.

use models::{ProviderKind, ProviderSettings};
use serde_json::json;
use test_support::wires::{self, chat_settings, encode_request};
use values::json::RawJson;
use values::message::{ContentPart, Message, ProviderFields, Role};

use super::request::encoded;
use crate::support::{message, opaque, request, says, thought, user};

fn made(provider: &str, fields: &[(&str, &str)]) -> ProviderFields {
    let fields = fields
        .iter()
        .map(|(name, json)| ((*name).to_owned(), RawJson::new(*json)));
    ProviderFields {
        model: Some("m".to_owned()),
        fields: fields.collect(),
        ..ProviderFields::owner(provider)
    }
}

#[test]
fn reasoning_without_a_provider_and_broken_fields_are_left_out() {
    let reasoning = thought("hm", None);
    let odd = Message {
        provider_fields: Some(made(
            "p",
            &[("broken", "{"), ("content", "\"other\""), ("fine", "[1 ]")],
        )),
        ..message(Role::Assistant, vec![reasoning, ContentPart::text("x")])
    };
    let text = String::from_utf8(encode_request(&request(vec![odd]), &chat_settings("p"), false)).unwrap();
    assert_eq!(
        text,
        r#"{"model":"m","messages":[{"role":"assistant","content":"x","fine":[1 ]}],"stream":false}"#
    );
}

#[test]
fn an_empty_completion_is_left_out() {
    let reasoning = || thought("hm", None);
    let owned = |name: &str| Message {
        provider_fields: Some(made("p", &[(name, "\"x\"")])),
        ..message(Role::Assistant, vec![reasoning()])
    };
    let foreign = opaque("other", "{}");
    let body = encoded(&request(vec![
        user("one"),
        message(Role::Assistant, vec![reasoning()]),
        message(Role::Assistant, vec![ContentPart::text(""), foreign]),
        owned("reasoning_content"),
        owned("reasoning_details"),
        owned("extra_content"),
        user("two"),
    ]));
    let expected = json!([
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "", "extra_content": "x"},
        {"role": "user", "content": "two"},
    ]);
    assert_eq!(body["messages"], expected);
}

#[test]
fn own_fields_are_sent_once_and_neither_fill_nor_part_messages() {
    let answer = |text: &str, fields: &[(&str, &str)]| Message {
        provider_fields: Some(made("p", fields)),
        ..says(text)
    };
    let answers = vec![
        user("one"),
        answer("", &[("content", "\"other\""), ("refusal", "\"no\"")]),
        answer("a", &[("name", "{"), ("name", "\"x\""), ("name", "\"y\"")]),
        answer("b", &[("name", "\"z\""), ("fine", "1")]),
    ];
    let joining = wires::settings("p", ProviderKind::OpenAiChat);
    let text = |settings: &ProviderSettings| {
        let body = encode_request(&request(answers.clone()), settings, false);
        String::from_utf8(body).unwrap()
    };
    assert_eq!(
        text(&chat_settings("p")),
        r#"{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"a","name":"x"},{"role":"assistant","content":"b","name":"z","fine":1}],"stream":false}"#
    );
    assert_eq!(
        text(&joining),
        r#"{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"a\n\nb","name":"x","fine":1}],"stream":false}"#
    );
}
