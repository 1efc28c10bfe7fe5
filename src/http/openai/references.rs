//! Items of earlier responses and of conversations that a request names by their ids.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::body::{no_item, no_response, opener};
use super::finished::{settings_of, stored_messages};
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::ids::{ItemId, ItemKind, parse_item_id, response_id};
use crate::http::faces::openai::named_marks::{NamedMarks, named_marks};
use crate::http::faces::openai::passage::ItemOwners;
use crate::http::faces::openai::reasoning::Marks;
use crate::http::faces::openai::request::{Item, read_input};
use crate::http::faces::openai::response::output_items;
use crate::http::faces::openai::stored_items::input_items;
use crate::http::problem::Problem;
use crate::run::read::run_messages;
use tasks::off_thread::by_size;
use values::ids::{RunId, SessionId};
use values::json::{Value, weight};
use values::session::OpenCallKind;

/// How many responses are read at the same time.
const AT_ONCE: usize = 8;

/// An item that a request names.
struct Named {
    /// The JSON pointer to its id.
    pointer: String,
    /// The id as the client has written it.
    text: String,
    id: ItemId,
}

/// The named items of a run by their ids, and the marks of their messages.
type RunItems = (Vec<(String, Value)>, Vec<NamedMarks>);

/// The items that a request names, by their ids. The order in which runs are added has no effect.
#[derive(Default)]
struct Found {
    /// The items. Those of reasoning are not here if the marks of their message are known.
    items: BTreeMap<String, Value>,
    /// The reasoning of a message with its marks, before the first of its items that is named.
    reasoning: BTreeMap<String, NamedReasoning>,
    /// The size of all items that were found, in bytes.
    bytes: usize,
}

/// The reasoning of a message whose marks are known.
struct NamedReasoning {
    marks: Marks,
    /// The ids of its items that are named.
    ids: Vec<String>,
    /// The texts of those of its items that were found.
    texts: Vec<String>,
}

impl NamedReasoning {
    /// Takes its items. Returns their size and that of their texts, in bytes.
    fn take(&mut self, items: &mut BTreeMap<String, Value>) -> (usize, usize) {
        let (mut taken, mut kept) = (0, 0);
        for item in self.ids.iter().filter_map(|id| items.remove(id)) {
            taken += weight(&item);
            if let Some(text) = item["summary"][0]["text"].as_str() {
                kept += text.len();
                self.texts.push(text.to_owned());
            }
        }
        (taken, kept)
    }

    /// Returns the size in bytes, and the item as if a client had sent it.
    fn item(&self) -> (usize, Item) {
        let (text, marks) = (self.texts.join("\n\n"), Some(self.marks.clone()));
        (weight(&self.marks) + text.len(), Item::Reasoning { text, marks })
    }
}

impl Found {
    /// Adds the named items of a run, and the marks of its messages. Another run that has finished
    /// a step has the same marks, without the reasoning.
    fn add_run(&mut self, (items, marks): RunItems) {
        self.bytes += items.iter().map(|(_, item)| weight(item)).sum::<usize>();
        self.items.extend(items);
        for NamedMarks { marks, ids } in marks {
            let Some(first) = ids.first() else { continue };
            let bytes = &mut self.bytes;
            let reasoning = self.reasoning.entry(first.to_string()).or_insert_with(|| {
                *bytes += weight(&marks);
                let ids = ids.iter().filter(|id| id.kind == ItemKind::Reasoning);
                NamedReasoning {
                    marks,
                    ids: ids.map(ItemId::to_string).collect(),
                    texts: Vec::new(),
                }
            });
            let (taken, kept) = reasoning.take(&mut self.items);
            *bytes = bytes.saturating_sub(taken) + kept;
        }
    }

    /// Takes the reasoning whose marks came with an earlier run, once all runs are here.
    fn complete(mut self) -> Self {
        for reasoning in self.reasoning.values_mut() {
            reasoning.take(&mut self.items);
        }
        self
    }
}

/// Replaces references by the items that they name: items of responses, or of their input. `field`
/// is the name of the list.
///
/// Leaves out what the session that the request continues has already, and an item that a known
/// response does not have: a takeover of its run may have discarded it after a client had read it.
pub(super) async fn resolve(
    call: &Call,
    items: Vec<(usize, Item)>,
    field: &str,
    base: Option<SessionId>,
) -> Result<Vec<(usize, Item)>, Problem> {
    let mut named = Vec::new();
    for (index, item) in &items {
        if let Item::Reference { id } = item {
            let pointer = pointer(field, *index);
            let known = parse_item_id(id).ok_or_else(|| no_item(Some(&pointer), id))?;
            named.push(Named {
                pointer,
                text: id.clone(),
                id: known,
            });
        }
    }
    if named.is_empty() {
        return Ok(items);
    }
    if let Some(session_id) = base {
        let bundle = call.api.runs.sessions.whole_bundle(&call.tenant, session_id).await?;
        let owners = bundle.as_deref().map(ItemOwners::of).unwrap_or_default();
        named.retain(|named| !owners.have(named.id));
    }
    let found = find(call, &named).await?;
    let mut left = call.api.limits.max_body_bytes;
    let mut resolved = Vec::with_capacity(items.len());
    for (index, item) in items {
        let Item::Reference { id } = &item else {
            resolved.push((index, item));
            continue;
        };
        // As if the client had sent the item itself.
        let reasoning = found.reasoning.get(id).map(NamedReasoning::item);
        let item = found.items.get(id);
        let bytes = reasoning.as_ref().map_or(0, |(bytes, _)| *bytes) + item.map_or(0, weight);
        left = left
            .checked_sub(bytes)
            .ok_or_else(|| too_large(pointer(field, index)))?;
        resolved.extend(reasoning.map(|(_, reasoning)| (index, reasoning)));
        if let Some(item) = item {
            let read = read_input(Value::Array(vec![item.clone()]), opener(call), 1)?;
            resolved.extend(read.into_iter().map(|(_, item)| (index, item)));
        }
    }
    Ok(resolved)
}

/// Finds items of responses by their ids.
async fn find(call: &Call, named: &[Named]) -> Result<Found, Problem> {
    let ids: Arc<[ItemId]> = named.iter().map(|named| named.id).collect();
    let runs: BTreeSet<RunId> = named.iter().map(|named| named.id.run_id).collect();
    let runs: Vec<RunId> = runs.into_iter().collect();
    let (mut found, mut known) = (Found::default(), BTreeSet::new());
    for runs in runs.chunks(AT_ONCE) {
        let reads = runs.iter().map(|run_id| items_of(call, *run_id, &ids));
        for (run_id, read) in runs.iter().zip(try_join_all(reads).await?) {
            if let Some(items) = read {
                known.insert(*run_id);
                found.add_run(items);
            }
            let first = named.iter().find(|named| named.id.run_id == *run_id);
            if let Some(named) = first.filter(|_| found.bytes > call.api.limits.max_body_bytes) {
                return Err(too_large(named.pointer.clone()));
            }
        }
    }
    match named.iter().find(|named| !known.contains(&named.id.run_id)) {
        Some(unknown) => Err(no_item(Some(&unknown.pointer), &unknown.text)),
        None => Ok(found.complete()),
    }
}

/// Returns the calls of a run that wait for approvals, by the ids of the items that ask for them.
/// A deleted response counts, since the conversation that has its calls goes on.
pub(super) async fn approvals_of(call: &Call, run_id: Option<RunId>) -> Result<BTreeMap<String, String>, Problem> {
    let Some(run_id) = run_id else {
        return Ok(BTreeMap::new());
    };
    let messages = run_messages(&call.api.runs, &call.tenant, run_id).await?;
    let messages = messages.ok_or_else(|| no_response(&response_id(run_id)))?;
    let (bytes, settings) = (weight(&messages.steps), settings_of(call));
    let make = move || {
        let open = messages.record.open_calls.iter();
        let calls = open.filter(|open| open.kind == OpenCallKind::Approval);
        let output = output_items(&messages, &settings);
        let requests = output.iter().filter(|item| item["type"] == "mcp_approval_request");
        let ids = requests.filter_map(|item| item["id"].as_str().map(str::to_owned));
        // Both are in the order of the calls.
        ids.zip(calls.map(|open| open.call_id.clone())).collect()
    };
    Ok(by_size(&call.tenant, bytes as u64, make).await)
}

/// Returns the named items of a response and of its input by their ids, and the marks of their
/// messages; `None` if there is no such response.
async fn items_of(call: &Call, run_id: RunId, named: &Arc<[ItemId]>) -> Result<Option<RunItems>, Problem> {
    let Some(messages) = stored_messages(call, run_id).await? else {
        return Ok(None);
    };
    let bytes = weight(&messages.steps) + weight(&messages.input);
    let (settings, named) = (settings_of(call), Arc::clone(named));
    let make = move || {
        let items = [input_items(&messages), output_items(&messages, &settings)].concat();
        let marks = named_marks(&messages, &items, &named);
        let own = named.iter().filter(|id| id.run_id == run_id);
        let named: BTreeSet<String> = own.map(ItemId::to_string).collect();
        let items = items.into_iter().filter_map(|item| {
            let id = item["id"].as_str().filter(|id| named.contains(*id))?.to_owned();
            Some((id, item))
        });
        (items.collect(), marks)
    };
    Ok(Some(by_size(&call.tenant, bytes as u64, make).await))
}

fn pointer(field: &str, index: usize) -> String {
    format!("/{field}/{index}/id")
}

fn too_large(pointer: String) -> Problem {
    let words = "the items that the input names are larger than a request may be";
    Problem::of_field(ProblemCode::BodyTooLarge, pointer, words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use values::clock::Timestamp;
    use values::ids::MessageId;
    use values::message::{Message, ProviderFields, Role};

    /// The marks of a message, with its named items.
    fn marks_of(message_id: MessageId, ids: &[ItemId]) -> NamedMarks {
        let content = json!([{"type": "text", "text": "a", "signature": "t"}]);
        let content = serde_json::from_value(content).unwrap();
        let mut message = Message::new(message_id, Role::Assistant, content, Timestamp::UNIX_EPOCH);
        message.provider_fields = Some(ProviderFields::owner("p"));
        let marks = Marks::of(&message).unwrap();
        NamedMarks {
            marks,
            ids: ids.to_vec(),
        }
    }

    #[test]
    fn the_order_of_runs_has_no_effect() {
        let message_id = MessageId::from_uuid(Uuid::from_u128(7));
        let ids = [ItemKind::Reasoning, ItemKind::Message].map(|kind| ItemId::of_message(kind, None, message_id, 0));
        let [reasoning, text] = ids.map(|id| id.to_string());
        let summary = json!([{"type": "summary_text", "text": "hm"}]);
        let asked = || {
            vec![
                (reasoning.clone(), json!({"type": "reasoning", "summary": summary})),
                (text.clone(), json!({"type": "message"})),
            ]
        };
        let marks = || vec![marks_of(message_id, &ids)];
        // The run that has asked has the reasoning. The other one alone may have the marks.
        let orders: [[RunItems; 2]; 4] = [
            [(asked(), marks()), (Vec::new(), marks())],
            [(Vec::new(), marks()), (asked(), marks())],
            [(asked(), Vec::new()), (Vec::new(), marks())],
            [(Vec::new(), marks()), (asked(), Vec::new())],
        ];
        for runs in orders {
            let mut found = Found::default();
            for run in runs {
                found.add_run(run);
            }
            let found = found.complete();
            assert_eq!(found.items.keys().collect::<Vec<_>>(), [&text]);
            let (_, item) = found.reasoning[&reasoning].item();
            assert!(
                matches!(&item, Item::Reasoning { text, .. } if text == "hm"),
                "{item:?}"
            );
        }
    }
}
