//! The marks of messages whose items a request names by their ids.
//!
//! The items of a response have marks only for a client that asks for them, and the store always
//! has them. So a conversation of references is the same for the model as one that continues.

use uuid::Uuid;

use super::executed_calls::executed_id;
use super::ids::{ItemId, ItemKind, parse_item_id};
use super::reasoning::Marks;
use crate::run::read::RunMessages;
use agent::record::StepRecord;
use values::ids::RunId;
use values::json::Value;
use values::message::{ContentPart, Message, Role};

/// The marks of a message that a request names.
#[derive(Debug)]
pub(in crate::http) struct NamedMarks {
    /// The marks, with the ids that the named calls have as input.
    pub(in crate::http) marks: Marks,
    /// The named items of the message, in the order of the request; at least one.
    pub(in crate::http) ids: Vec<ItemId>,
}

/// A message of a model, and the names of its items.
struct Owner<'m> {
    message: &'m Message,
    /// The run whose output or input has its words.
    run_id: RunId,
    /// Its step; of the input, the message itself.
    id: Uuid,
}

/// Returns the marks of each message of a run whose reasoning is named, or all of it without its
/// reasoning. `items` are those of the run, and `named` are all items that the request names.
pub(in crate::http) fn named_marks(messages: &RunMessages, items: &[Value], named: &[ItemId]) -> Vec<NamedMarks> {
    let shown = items.iter().filter_map(|item| parse_item_id(item["id"].as_str()?));
    let shown: Vec<ItemId> = shown.collect();
    let run_id = messages.record.summary.run_id;
    let answered = messages.answered.iter();
    let answered = answered.filter_map(|answered| Owner::of_step(&answered.step, answered.run_id?));
    let steps = messages.steps.iter().filter_map(|step| Owner::of_step(step, run_id));
    let input = messages.input.iter().map(|message| Owner {
        message,
        run_id,
        id: message.id.as_uuid(),
    });
    let owners = answered.chain(steps).chain(input);
    owners.filter_map(|owner| owner.marks(&shown, named)).collect()
}

impl<'m> Owner<'m> {
    /// Returns the completion of a step; `None` if it has none.
    fn of_step(step: &'m StepRecord, run_id: RunId) -> Option<Self> {
        let message = step.messages.iter().find(|message| message.role == Role::Assistant)?;
        let id = step.step_id.as_uuid();
        Some(Self { message, run_id, id })
    }

    /// Returns the marks if the items of the message are named. Reasoning whose words and calls are
    /// not shown, such as those of a corrected output, has none: they would be a message without a
    /// content.
    fn marks(&self, shown: &[ItemId], named: &[ItemId]) -> Option<NamedMarks> {
        let is_content = |id: &ItemId| id.kind != ItemKind::Reasoning && self.has(*id);
        if !shown.iter().any(is_content) {
            return None;
        }
        let own = named.iter().copied().filter(|id| self.has(*id));
        let ids: Vec<ItemId> = own.collect();
        let has_reasoning = ids.iter().any(|id| id.kind == ItemKind::Reasoning);
        let is_named = has_reasoning || (!ids.is_empty() && self.is_whole(&ids));
        let marks = Marks::of(self.message).filter(|_| is_named)?;
        let executed = |call_id: &str| {
            let number = Some(ItemId::call_number(call_id));
            let mut calls = ids.iter().filter(|id| id.kind == ItemKind::McpCall);
            let item_id = calls.find(|id| id.number_in(self.id) == number)?;
            Some(executed_id(&item_id.to_string()))
        };
        let marks = marks.with_call_ids(executed);
        Some(NamedMarks { marks, ids })
    }

    /// Returns whether items are all of the message without its reasoning.
    fn is_whole(&self, ids: &[ItemId]) -> bool {
        let is_word = |part: &ContentPart| match part {
            ContentPart::Text(part) => !part.text.is_empty(),
            ContentPart::Refusal { text } => !text.is_empty(),
            _ => false,
        };
        let has_words = self.message.content.iter().any(is_word);
        let mut calls = self.message.tool_calls();
        (!has_words || ids.iter().any(|id| id.kind == ItemKind::Message))
            && calls.all(|call| {
                let number = Some(ItemId::call_number(&call.id));
                let mut named = ids.iter().filter(|id| is_call(id.kind));
                named.any(|id| id.number_in(self.id) == number)
            })
    }

    /// Returns whether an item is of the message. Another run may have executed its calls.
    fn has(&self, id: ItemId) -> bool {
        let Some(number) = id.number_in(self.id) else {
            return false;
        };
        match id.kind {
            ItemKind::Message | ItemKind::Reasoning => id.run_id == self.run_id,
            _ => {
                let mut calls = self.message.tool_calls();
                calls.any(|call| ItemId::call_number(&call.id) == number)
            }
        }
    }
}

/// Returns whether the input has an item of the kind as a call.
fn is_call(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::FunctionCall | ItemKind::McpCall)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use values::clock::Timestamp;
    use values::ids::MessageId;
    use values::message::ProviderFields;

    #[test]
    fn marks_come_with_the_reasoning_or_with_everything_else() {
        let content = json!([
            {"type": "text", "text": "a", "signature": "t"},
            {"type": "tool_call", "id": "c", "name": "f", "arguments": "{}"},
        ]);
        let content = serde_json::from_value(content).unwrap();
        let message_id = MessageId::from_uuid(Uuid::from_u128(7));
        let mut message = Message::new(message_id, Role::Assistant, content, Timestamp::UNIX_EPOCH);
        message.provider_fields = Some(ProviderFields::owner("p"));
        let owner = Owner {
            message: &message,
            run_id: RunId::from_uuid(message_id.as_uuid()),
            id: message_id.as_uuid(),
        };
        let item = |kind, number| ItemId::of_message(kind, None, message_id, number);
        let (reasoning, text) = (item(ItemKind::Reasoning, 0), item(ItemKind::Message, 0));
        let call = item(ItemKind::McpCall, ItemId::call_number("c"));
        let shown = [text, call];
        for named in [&[][..], &[text][..], &[call][..]] {
            assert!(owner.marks(&shown, named).is_none(), "{named:?}");
        }
        assert!(owner.marks(&[reasoning], &[reasoning]).is_none());
        assert!(owner.marks(&shown, &[reasoning]).is_some());
        let NamedMarks { marks, ids } = owner.marks(&shown, &[call, text]).unwrap();
        assert_eq!(ids, [call, text]);
        assert!(marks.has_call(&executed_id(&call.to_string())));
    }
}
