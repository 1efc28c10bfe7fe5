//! Anthropic Messages: <https://platform.claude.com/docs/en/api/messages>, and "Extended thinking",
//! "Vision" and "Tool use" of its guide.

use serde_json::Value;

use super::{check_answers, check_turns, has_words, is_plain, list};

/// Fails unless the API accepts the messages.
#[track_caller]
pub fn check_messages(body: &Value) {
    let turns = list(body, "messages");
    check_turns(turns, "assistant");
    let end = turns.last().unwrap();
    let last_block = list(end, "content").last().unwrap();
    // The API itself continues what ends with a block of its own tools.
    let is_paused = !["text", "thinking", "redacted_thinking", "tool_use"]
        .iter()
        .any(|kind| last_block["type"] == *kind);
    assert!(end["role"] == "user" || is_paused, "no prefill: {body}");
    for block in list(body, "system") {
        assert!(block["type"] == "text" && has_words(&block["text"]), "{block}");
    }
    let mut pictures = 0;
    let mut open: Vec<&str> = Vec::new();
    for turn in turns {
        let blocks = list(turn, "content");
        assert!(!blocks.is_empty(), "a turn without content: {body}");
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result");
        let results: Vec<_> = results.map(|block| block["tool_use_id"].as_str().unwrap()).collect();
        check_answers(&open, &results);
        for block in blocks.iter().skip(results.len()) {
            assert_ne!(block["type"], "tool_result", "results come first: {turn}");
        }
        for block in blocks {
            pictures += check_block(block, turn);
        }
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        open = calls.map(|block| block["id"].as_str().unwrap()).collect();
        let last = blocks.last().unwrap();
        if turn["role"] == "assistant" {
            let is_thinking = matches!(last["type"].as_str(), Some("thinking" | "redacted_thinking"));
            assert!(!is_thinking, "thinking that nothing follows: {turn}");
            if !open.is_empty() {
                assert_eq!(last["type"], "tool_use", "calls are last: {turn}");
            }
        }
    }
    assert!(
        open.is_empty() && pictures <= 100,
        "{pictures} pictures, calls {open:?}"
    );
}

/// Checks a block, and returns the number of its pictures.
#[track_caller]
fn check_block(block: &Value, turn: &Value) -> usize {
    match block["type"].as_str().unwrap() {
        "text" => {
            assert!(has_words(&block["text"]), "a blank text: {turn}");
            0
        }
        "thinking" => {
            assert!(has_words(&block["signature"]), "thinking without a signature: {turn}");
            0
        }
        "tool_use" => {
            assert!(is_plain(block["id"].as_str().unwrap(), 128), "{block}");
            assert!(is_plain(block["name"].as_str().unwrap(), 128), "{block}");
            assert!(block["input"].is_object(), "{block}");
            0
        }
        "tool_result" => check_result(block),
        "image" => {
            check_picture(&block["source"]);
            1
        }
        "document" => {
            let source = &block["source"];
            assert_ne!(
                (source["type"].as_str(), source["media_type"] != "application/pdf"),
                (Some("base64"), true),
                "{source}"
            );
            0
        }
        _ => 0,
    }
}

#[track_caller]
fn check_result(block: &Value) -> usize {
    let content = list(block, "content");
    if block["is_error"] == true {
        assert!(content.iter().all(|part| part["type"] == "text"), "{block}");
        assert!(!content.is_empty() || has_words(&block["content"]), "{block}");
    }
    content.iter().map(|part| check_block(part, block)).sum()
}

#[track_caller]
fn check_picture(source: &Value) {
    if source["type"] == "base64" {
        let media_type = source["media_type"].as_str().unwrap();
        let known = ["image/png", "image/jpeg", "image/gif", "image/webp"];
        assert!(known.contains(&media_type), "{media_type}");
        let data = source["data"].as_str().unwrap();
        assert!(data.len() <= 5 << 20, "a picture of {} bytes", data.len());
    }
}
