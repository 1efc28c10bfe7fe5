//! Bedrock's Converse:
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html> and the pages
//! of its blocks.

use std::collections::HashSet;

use serde_json::Value;

use super::{check_answers, check_turns, has_words, is_plain, list};

fn id(block: &Value) -> &str {
    block["toolUseId"].as_str().unwrap()
}

/// Fails unless the API accepts the messages.
#[track_caller]
pub fn check_converse(body: &Value) {
    let turns = list(body, "messages");
    check_turns(turns, "assistant");
    assert_eq!(turns.last().unwrap()["role"], "user", "{body}");
    let (mut pictures, mut names, mut uses_tools) = (0, Vec::new(), false);
    let mut open: Vec<&str> = Vec::new();
    for turn in turns {
        let blocks = list(turn, "content");
        assert!(!blocks.is_empty(), "a turn without content: {body}");
        let of_kind = |kind: &str| {
            let found = blocks.iter().filter_map(move |block| block.get(kind));
            let own = found.filter(|block| block.get("type").is_none_or(|kind| kind != "server_tool_use"));
            own.collect::<Vec<_>>()
        };
        let results = of_kind("toolResult");
        if turn["role"] == "user" {
            check_answers(&open, &results.iter().map(|block| id(block)).collect::<Vec<_>>());
        }
        let calls = of_kind("toolUse");
        uses_tools |= !calls.is_empty();
        for call in &calls {
            assert!(
                is_plain(id(call), 64) && is_plain(call["name"].as_str().unwrap(), 64),
                "{call}"
            );
            assert!(call["input"].is_object(), "{call}");
        }
        open = calls.iter().map(|block| id(block)).collect();
        let inner = results.iter().flat_map(|result| {
            assert!(!list(result, "content").is_empty(), "an empty result: {result}");
            list(result, "content")
        });
        for block in blocks.iter().chain(inner) {
            pictures += usize::from(block.get("image").is_some());
            check_block(block);
            names.extend(block.get("document").map(|document| document["name"].as_str().unwrap()));
        }
        let has = |kind: &str| blocks.iter().any(|block| block.get(kind).is_some());
        assert!(!has("document") || has("text"), "a document without text: {turn}");
    }
    assert!(
        pictures <= 20 && names.len() <= 5,
        "{pictures} pictures, documents {names:?}"
    );
    let unique: HashSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "{names:?}");
    assert!(
        !uses_tools || !list(&body["toolConfig"], "tools").is_empty(),
        "calls without tools"
    );
}

#[track_caller]
fn check_block(block: &Value) {
    if let Some(text) = block.get("text") {
        assert!(has_words(text), "a blank text: {block}");
    }
    if let Some(image) = block.get("image") {
        assert!(["png", "jpeg", "gif", "webp"].contains(&image["format"].as_str().unwrap()));
        let data = image["source"]["bytes"].as_str().unwrap_or_default();
        assert!(data.len() <= 5 << 20, "a picture of {} bytes", data.len());
    }
    if let Some(reasoning) = block.get("reasoningContent") {
        let is_signed = has_words(&reasoning["reasoningText"]["signature"]);
        assert!(is_signed || has_words(&reasoning["redactedContent"]), "{block}");
    }
}
