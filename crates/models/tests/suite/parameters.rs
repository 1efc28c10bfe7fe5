//! The effect of an agent's parameters on a request of chat completions.

use std::sync::Arc;

use agent::ports::ModelRequest;
use serde_json::{Value, json};
use test_support::wires::{chat_settings, encode_request};

use super::support::{message, parameters, request, user};

fn encoded(request: &ModelRequest) -> String {
    String::from_utf8(encode_request(request, &chat_settings("p"), true)).unwrap()
}

fn with(fields: Value) -> ModelRequest {
    ModelRequest {
        parameters: parameters(fields),
        ..request(vec![])
    }
}

#[test]
fn parameters_have_their_fields_after_the_messages() {
    const HEAD: &str = r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}"#;
    for (parameters, rest) in [
        (json!({}), ""),
        (json!({"temperature": 0.0}), r#","temperature":0.0"#),
        (
            json!({"temperature": 0.5, "top_p": 0.25, "stop": ["a", "b"], "reasoning_effort": "low", "extra": {"seed": 7, "logit_bias": null}}),
            r#","temperature":0.5,"top_p":0.25,"stop":["a","b"],"reasoning_effort":"low","logit_bias":null,"seed":7"#,
        ),
        (
            json!({"top_p": 0.5, "extra": {"model": "no", "messages": [], "stream": false, "top_p": 1, "temperature": 1}}),
            r#","top_p":0.5,"temperature":1"#,
        ),
    ] {
        assert_eq!(
            encoded(&with(parameters.clone())),
            format!("{HEAD}{rest}}}"),
            "{parameters}"
        );
    }
    let deeper = encoded(&with(
        json!({"extra": {"stream_options": {"include_usage": false, "more": 1}}}),
    ));
    assert_eq!(
        deeper,
        r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true,"more":1}}"#
    );
}

#[test]
fn a_limit_of_the_agents_own_is_sent_as_it_is() {
    let mut large = with(json!({"max_output_tokens": 32_000}));
    large.max_output_tokens = Some(20_000);
    assert!(encoded(&large).ends_with(r#","max_tokens":20000}"#));
}

#[test]
fn the_next_request_begins_with_the_bytes_of_this_one() {
    let parameters =
        json!({"temperature": 1.0, "stop": ["x"], "extra": {"response_format": {"type": "text"}, "seed": 1}});
    let answer = message(values::message::Role::Assistant, vec![]);
    let history = [user("one"), answer, user("two")];
    let of = |count: usize, limit| ModelRequest {
        messages: history[..count].iter().cloned().map(Arc::new).collect(),
        max_output_tokens: limit,
        ..with(parameters.clone())
    };
    let (first, second) = (encoded(&of(1, Some(5))), encoded(&of(3, None)));
    let (prefix, rest) = first.split_once("],\"stream\"").unwrap();
    assert!(second.starts_with(prefix) && second.len() > first.len(), "{second}");
    let own = rest.replace(",\"max_tokens\":5", "");
    assert!(
        second.ends_with(&own),
        "what does not change has the same place: {second}"
    );
}
