//! Pictures and files that a model does not take, and limits of pictures.

use std::sync::Arc;

use agent::ports::ModelRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use models::{Capabilities, Files, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};
use test_support::wires::encode_request;
use values::message::{ContentPart, Message, Role};

use super::{file, picture};
use crate::support::{
    ask, at_url, base64, call, image, impatient, message, model_of, provider, request, result, says, user,
};

/// The header of a GIF with these sides, and more bytes.
fn gif(width: u16, height: u16, more: usize) -> ContentPart {
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend([width.to_le_bytes(), height.to_le_bytes()].concat());
    bytes.resize(bytes.len() + more, 0);
    image(base64("image/gif", &STANDARD.encode(bytes)))
}

fn claude(messages: Vec<Message>) -> Vec<u8> {
    let settings = ProviderSettings::new("p", ProviderKind::Anthropic);
    encode_request(&request(messages), &settings, true)
}

/// Returns the kinds and the texts of the blocks of the first turn.
fn first_turn(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let blocks = body["messages"][0]["content"].as_array().unwrap().iter();
    let shown = blocks.map(|block| block["text"].as_str().or(block["type"].as_str()).unwrap().to_owned());
    shown.collect()
}

#[test]
fn a_picture_beyond_the_limits_is_left_out_of_the_request() {
    let shown = |part: ContentPart| first_turn(&claude(vec![message(Role::User, vec![part])]));
    assert_eq!(shown(gif(8_000, 8_000, 100)), ["image"]);
    for (part, line) in [
        (
            gif(10, 8_001, 100),
            "[a picture, left out: a side of 8001 pixels is longer than 8000]",
        ),
        (
            gif(10, 10, 4 << 20),
            "[a picture, left out: its 5592420 bytes of base64 are more than 5242880]",
        ),
        (
            image(base64("image/tiff", "AAAA")),
            "[a picture, left out: this model takes no pictures of the type image/tiff]",
        ),
        (
            file("audio/mpeg"),
            "[a file \"a.bin\", left out: this model takes no files of the type audio/mpeg]",
        ),
    ] {
        assert_eq!(shown(part), [line]);
    }
}

#[test]
fn of_too_many_pictures_the_oldest_are_left_out() {
    let of = |count: usize, part: &ContentPart| {
        let messages = vec![message(Role::User, vec![part.clone(); count])];
        let shown = first_turn(&claude(messages));
        let pictures = shown.iter().filter(|kind| *kind == "image").count();
        let lines = shown
            .iter()
            .take_while(|line| line.starts_with("[a picture, left out"))
            .count();
        assert_eq!(
            (shown.len(), lines),
            (count, count - pictures),
            "the oldest are left out"
        );
        pictures
    };
    let small = picture();
    assert_eq!([100, 101, 150, 151].map(|count| of(count, &small)), [100, 50, 99, 100]);
    // Many pictures must have shorter sides.
    let large = gif(2_001, 10, 20);
    assert_eq!([20, 21, 30].map(|count| of(count, &large)), [20, 10, 19]);
    // The bytes of a request are limited, too.
    let heavy = gif(10, 10, 3 << 20);
    assert_eq!([6, 7, 8].map(|count| of(count, &heavy)), [6, 3, 4]);
}

/// Requests that begin alike are served by the prompt cache.
#[test]
fn the_beginning_of_requests_rarely_changes() {
    let mut messages = Vec::new();
    let (mut last, mut changes) = (Vec::new(), 0);
    for number in 0..250 {
        messages.push(message(
            Role::User,
            vec![ContentPart::text(number.to_string()), picture()],
        ));
        messages.push(says("ok"));
        messages.push(user("go on"));
        let body = claude(messages.clone());
        let end = body.windows(11).rposition(|window| window == b"],\"stream\":").unwrap();
        let same = last.len() < end && body.starts_with(&last);
        changes += usize::from(!same && !last.is_empty());
        // The last turn may be added to.
        let turn = body.windows(9).rposition(|window| window == b"{\"role\":\"").unwrap();
        last = body[..turn].to_vec();
    }
    assert_eq!(changes, 3);
}

#[tokio::test]
async fn a_text_model_reads_that_there_was_a_picture() {
    let tool = message(Role::Assistant, vec![call("c1", "{}")]);
    let at_url = image(at_url("https://h.example/a.png"));
    let history = vec![
        message(
            Role::User,
            vec![
                ContentPart::text("See"),
                at_url,
                file("application/pdf"),
                file("text/plain"),
            ],
        ),
        tool,
        result("c1", vec![ContentPart::text("shot"), picture()]),
    ];
    let reply = json!({"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]});
    for (name, settings, sees) in [
        ("deepseek-chat", "", false),
        ("my-model", "pictures", false),
        ("my-model", "", true),
    ] {
        let server = ModelServer::start(vec![Reply::new(200, "application/json", reply.to_string())]).await;
        let mut of_provider = ProviderSettings {
            kind: ProviderKind::OpenAiChat,
            ..provider("test", server.url("/v1"))
        };
        if !settings.is_empty() {
            let text_only = Capabilities {
                pictures: Some(false),
                files: Some(Files::None),
                ..Capabilities::default()
            };
            of_provider.capabilities = Arc::new([("*".to_owned(), text_only)].into());
        }
        let model = model_of(of_provider, &impatient(0));
        let request = ModelRequest {
            model: name.to_owned(),
            ..request(history.clone())
        };
        ask(model.as_ref(), request).await.end.unwrap();
        let body = server.captured()[0].json();
        if sees {
            assert_eq!(body["messages"][0]["content"][1]["type"], "image_url", "{body}");
            assert_eq!(body["messages"][3]["content"][1]["type"], "image_url", "{body}");
            continue;
        }
        let words = "See\n\n[a picture at https://h.example/a.png, left out: this model takes no pictures]\n\n\
                     [a file \"a.bin\", left out: this model takes no files]\n\n\
                     <file name=\"a.bin\">\n%PDF-\n</file>";
        let texts = body["messages"][0]["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap());
        assert_eq!(texts.collect::<Vec<_>>().join("\n\n"), words);
        let shot = "shot\n[a picture, left out: this model takes no pictures]";
        assert_eq!(body["messages"][2]["content"], shot, "{body}");
        assert_eq!(body["messages"].as_array().unwrap().len(), 3, "{body}");
    }
}
