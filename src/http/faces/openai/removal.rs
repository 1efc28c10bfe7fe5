//! Removes an item from the messages of a session.
//!
//! An item is some parts of a message. A call goes together with its result, since providers refuse
//! one without the other. The rest of a changed message loses the marks of its provider, which
//! would refuse them beside other parts.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ids::{ItemId, ItemKind};
use crate::http::faces::turn::{Block, BlockKind, read_step};
use crate::run::read::{Passage, PassageRuns};
use agent::record::StepRecord;
use values::ids::MessageId;
use values::message::{ContentPart, Message, Role};
use values::session::History;

/// Names a part: its message, and its index in the message. The index after the last part names the
/// marks alone, which each changed message loses.
type PartId = (MessageId, usize);

/// Returns the parts of an item of a passage.
pub(in crate::http) fn parts_of(passage: &Passage, runs: Option<&PassageRuns>, id: ItemId) -> BTreeSet<PartId> {
    if let Some(runs) = runs
        && let Some((step, number)) = step_of(runs, id)
    {
        return match id.kind {
            ItemKind::Message | ItemKind::Reasoning => words_of(step, id.kind, number, runs.has_json(id.run_id)),
            _ => call_of(&step.messages, number),
        };
    }
    let messages = passage.messages.iter().enumerate();
    let mut numbers = messages.filter_map(|(at, message)| Some((at, id.number_in(message.id.as_uuid())?)));
    let Some((at, number)) = numbers.next() else {
        return BTreeSet::new();
    };
    match id.kind {
        ItemKind::Message => parts_in(&passage.messages[at], is_word).collect(),
        ItemKind::Reasoning => {
            let reasoning = parts_in(&passage.messages[at], |part| matches!(part, ContentPart::Reasoning(_)));
            reasoning.skip(number as usize).take(1).collect()
        }
        _ => call_of(with_results(&passage.messages, at), number),
    }
}

/// Returns the step that an item belongs to, and its number there.
fn step_of(runs: &PassageRuns, id: ItemId) -> Option<(&StepRecord, u32)> {
    let answered = runs.run.answered.iter().map(|answered| &answered.step);
    let mut steps = answered.chain(&runs.run.steps);
    steps.find_map(|step| Some((step, id.number_in(step.step_id.as_uuid())?)))
}

/// Returns the parts of a block of a step. If the output is JSON, all texts are one item.
fn words_of(record: &StepRecord, kind: ItemKind, number: u32, is_json: bool) -> BTreeSet<PartId> {
    let (step, words) = read_step(record);
    let is_sort = |block: &Block| (block.kind == BlockKind::Reasoning) == (kind == ItemKind::Reasoning);
    let blocks = step.blocks.iter().enumerate();
    let mut blocks = blocks.filter(|(_, block)| is_sort(block));
    let Some((at, block)) = blocks.nth(number as usize) else {
        // Reasoning that is no block has the marks of the completion, and no words.
        let completions = record.messages.iter();
        let completions = completions.filter(|message| kind == ItemKind::Reasoning && message.role == Role::Assistant);
        return completions.map(|message| (message.id, message.content.len())).collect();
    };
    let is_whole = is_json && kind == ItemKind::Message;
    let is_own = |index: usize| index == at || (is_whole && step.blocks[index].kind == block.kind);
    let own = words.iter().filter(|word| is_own(word.block));
    own.map(|word| (word.message_id, word.index)).collect()
}

/// Returns a call and its result among the messages of a turn.
fn call_of(messages: &[Arc<Message>], number: u32) -> BTreeSet<PartId> {
    let is_own = |part: &ContentPart| match part {
        ContentPart::ToolCall(call) => ItemId::call_number(&call.id) == number,
        ContentPart::ToolResult(result) => ItemId::call_number(&result.call_id) == number,
        _ => false,
    };
    messages.iter().flat_map(|message| parts_in(message, is_own)).collect()
}

/// Returns the message at an index with the results of its calls, also if it is one of the results.
fn with_results(messages: &[Arc<Message>], at: usize) -> &[Arc<Message>] {
    let is_result = |message: &Arc<Message>| message.role == Role::Tool;
    let begin = messages[..=at].iter().rposition(|message| !is_result(message));
    let begin = begin.unwrap_or_default();
    let results = messages[begin + 1..].iter().take_while(|message| is_result(message));
    &messages[begin..=begin + results.count()]
}

fn parts_in(message: &Message, is_own: impl Fn(&ContentPart) -> bool) -> impl Iterator<Item = PartId> {
    let message_id = message.id;
    let parts = message.content.iter().enumerate();
    let parts = parts.filter(move |(_, part)| is_own(part));
    parts.map(move |(index, _)| (message_id, index))
}

fn is_word(part: &ContentPart) -> bool {
    matches!(
        part,
        ContentPart::Text(_) | ContentPart::Refusal { .. } | ContentPart::Image(_) | ContentPart::Document(_)
    )
}

/// Removes parts. Returns how many messages stay as they are, from the first on, and the messages
/// after those; `None` if no message has a part.
pub(in crate::http) fn without(history: &History, parts: &BTreeSet<PartId>) -> Option<(usize, Vec<Arc<Message>>)> {
    let changed: BTreeSet<MessageId> = parts.iter().map(|(message_id, _)| *message_id).collect();
    let at = history.iter().position(|message| changed.contains(&message.id))?;
    let retained = history.first_index() + at;
    let rest = history.iter_from(retained).filter_map(|message| {
        if changed.contains(&message.id) {
            without_parts(message, parts).map(Arc::new)
        } else {
            Some(Arc::clone(message))
        }
    });
    Some((retained, rest.collect()))
}

/// Returns a message without parts; `None` if no visible part is left.
fn without_parts(message: &Message, parts: &BTreeSet<PartId>) -> Option<Message> {
    let content = message.content.iter().enumerate();
    let content = content.filter(|(index, part)| {
        let is_mark = match part {
            ContentPart::Opaque(_) => true,
            ContentPart::Reasoning(part) => part.text.is_empty(),
            _ => false,
        };
        !is_mark && !parts.contains(&(message.id, *index))
    });
    let content: Vec<ContentPart> = content.map(|(_, part)| part.clone()).collect();
    content.iter().any(is_visible).then(|| Message {
        content,
        provider_fields: None,
        ..message.clone()
    })
}

fn is_visible(part: &ContentPart) -> bool {
    match part {
        ContentPart::Text(part) => !part.text.is_empty(),
        ContentPart::Reasoning(part) => !part.text.is_empty(),
        ContentPart::Opaque(_) | ContentPart::Unknown(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use values::clock::Timestamp;
    use values::message::ProviderFields;

    fn message(number: u128, role: Role, content: Value) -> Arc<Message> {
        let id = MessageId::from_uuid(Uuid::from_u128(number));
        let content = serde_json::from_value(content).unwrap();
        let mut message = Message::new(id, role, content, Timestamp::UNIX_EPOCH);
        message.provider_fields = (role == Role::Assistant).then(|| ProviderFields::owner("p"));
        Arc::new(message)
    }

    fn history() -> Vec<Arc<Message>> {
        let call = |id: &str| json!({"type": "tool_call", "id": id, "name": "f", "arguments": "{}"});
        let result = |id: &str| json!({"type": "tool_result", "call_id": id, "name": "f", "content": []});
        let opaque = json!({"type": "opaque", "provider": "p", "raw": "{}"});
        let words =
            json!([{"type": "reasoning", "text": "hm"}, opaque, {"type": "text", "text": "a"}, call("c"), call("d")]);
        vec![
            message(1, Role::User, json!([{"type": "text", "text": "q"}])),
            message(2, Role::Assistant, words),
            message(3, Role::Tool, json!([result("c")])),
            message(4, Role::Tool, json!([result("d")])),
            message(5, Role::Assistant, json!([{"type": "text", "text": "z"}])),
        ]
    }

    /// Removes an item. Returns how many messages stay, and the parts of the others.
    fn removed(kind: ItemKind, message: u128, number: u32) -> Option<(usize, Vec<Vec<&'static str>>)> {
        let messages = history();
        let id = ItemId::of_message(kind, None, MessageId::from_uuid(Uuid::from_u128(message)), number);
        let passage = Passage {
            run_id: None,
            messages: messages.clone(),
            is_open: false,
        };
        let (retained, rest) = without(&messages.into_iter().collect(), &parts_of(&passage, None, id))?;
        let name = |part: &ContentPart| match part {
            ContentPart::Text(_) => "text",
            ContentPart::Reasoning(_) => "reasoning",
            ContentPart::ToolCall(_) => "call",
            ContentPart::ToolResult(_) => "result",
            _ => "other",
        };
        let names = |message: &Arc<Message>| message.content.iter().map(name).collect();
        let is_neutral = |message: &Arc<Message>| message.provider_fields.is_none();
        let is_last = |message: &Arc<Message>| message.id == MessageId::from_uuid(Uuid::from_u128(5));
        assert!(rest.iter().all(|message| is_neutral(message) != is_last(message)));
        Some((retained, rest.iter().map(names).collect()))
    }

    #[test]
    fn an_item_goes_with_its_own_parts() {
        let (call, text) = (vec!["reasoning", "text", "call"], vec!["text"]);
        for number in [ItemId::call_number("c"), ItemId::call_number("d")] {
            let rest = vec![call.clone(), vec!["result"], text.clone()];
            for (kind, message) in [(ItemKind::FunctionCall, 2), (ItemKind::FunctionOutput, 3)] {
                assert_eq!(removed(kind, message, number), Some((1, rest.clone())));
            }
        }
        let results = [vec!["result"], vec!["result"], text];
        let with = |first: &[&'static str]| Some((1, [&[first.to_vec()][..], &results].concat()));
        assert_eq!(
            removed(ItemKind::Reasoning, 2, 0),
            with(&["text", "call", "call"]),
            "without what its provider adds"
        );
        assert_eq!(removed(ItemKind::Message, 2, 0), with(&["reasoning", "call", "call"]));
        assert_eq!(removed(ItemKind::Message, 5, 0), Some((4, Vec::new())));
        assert_eq!(removed(ItemKind::Message, 6, 0), None);
    }
}
