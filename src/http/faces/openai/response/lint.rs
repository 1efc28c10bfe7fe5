//! Checks the order of the events of a stream, as strict clients do.

use serde_json::{Value, json};

use super::arbitrary::Case;

/// An item as a client collects it.
struct Item<'a> {
    added: &'a Value,
    /// The types of its events, each run of equal ones once.
    types: Vec<&'a str>,
    /// The words or the arguments.
    streamed: String,
    done: Option<&'a Value>,
}

/// Returns the types of events.
pub(super) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(type_of).collect()
}

fn type_of(event: &Value) -> &str {
    event["type"].as_str().unwrap().trim_start_matches("response.")
}

/// Checks a stream. Returns the response of its last event.
pub(super) fn check(case: &Case, events: &[Value]) -> Value {
    let types = types(events);
    let begun: &[&str] = if case.echo().background {
        &["created", "queued", "in_progress"]
    } else {
        &["created", "in_progress"]
    };
    assert!(types.starts_with(begun), "{types:?}");
    assert_eq!(events[0]["response"]["output"], json!([]));
    let (last, items) = events[begun.len()..].split_last().unwrap();
    assert!(["completed", "incomplete", "failed"].contains(&type_of(last)), "{last}");
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], index);
        if let Some(response) = event.get("response") {
            assert_eq!(response["id"], events[0]["response"]["id"]);
        }
    }
    let mut shown = Vec::new();
    for event in items {
        read(&mut shown, event);
    }
    for item in &shown {
        item.check(case);
    }
    let output = last["response"]["output"].as_array().unwrap();
    let is_sealed = |item: &&Value| item["encrypted_content"].is_string();
    assert!(output.iter().filter(is_sealed).count() <= usize::from(case.seals));
    let mut before = None;
    for item in output {
        let index = shown.iter().position(|shown| shown.added["id"] == item["id"]);
        assert!(before < index, "the order of {item}");
        before = index;
        let done = shown[index.unwrap()].done.unwrap();
        // A takeover ends the items in progress.
        let is_abandoned = done["status"] == "incomplete" || done["type"] == "reasoning";
        if case.run.takeover.is_none() || !is_abandoned {
            assert_eq!(done, item);
        }
    }
    last["response"].clone()
}

fn read<'a>(items: &mut Vec<Item<'a>>, event: &'a Value) {
    let kind = type_of(event);
    let index = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
    if kind == "output_item.added" {
        let added = &event["item"];
        let is_new = items.iter().all(|other| other.added["id"] != added["id"]);
        assert!(items.len() == index && is_new, "{event}");
        assert!(
            items.iter().all(|other| other.done.is_some()),
            "{event} in another item"
        );
        items.push(Item {
            added,
            types: vec![kind],
            streamed: String::new(),
            done: None,
        });
        return;
    }
    let item = &mut items[index];
    assert_eq!(item.done, None, "{event} after the end");
    if item.types.last() != Some(&kind) {
        item.types.push(kind);
    }
    if kind == "output_item.done" {
        item.done = Some(&event["item"]);
        return;
    }
    assert_eq!(event["item_id"], item.added["id"]);
    let is_summary = kind.starts_with("reasoning_summary");
    let is_content = ["content_part", "output_text", "refusal"]
        .iter()
        .any(|of_content| kind.starts_with(of_content));
    let zero = json!(0);
    assert_eq!(event.get("summary_index"), is_summary.then_some(&zero), "{event}");
    assert_eq!(event.get("content_index"), is_content.then_some(&zero), "{event}");
    let logprobs = kind.starts_with("output_text").then_some(json!([]));
    assert_eq!(event.get("logprobs"), logprobs.as_ref(), "{event}");
    if let Some(delta) = event.get("delta") {
        item.streamed.push_str(delta.as_str().unwrap());
    }
    let mut fields = ["text", "refusal", "arguments"].into_iter();
    if let Some(whole) = fields.find_map(|field| event.get(field)) {
        assert_eq!(*whole, item.streamed);
    }
}

impl Item<'_> {
    /// Checks that the item has ended, with the events of its type.
    fn check(&self, case: &Case) {
        let done = self.done.unwrap_or_else(|| panic!("{} has not ended", self.added));
        assert_eq!(self.types, types_of(done), "{done}");
        for field in ["id", "type", "role", "call_id", "name", "server_label"] {
            assert_eq!(self.added.get(field), done.get(field), "{field} of {done}");
        }
        // Clients decide by the phase at the beginning whether a text is JSON.
        let phase = self.added.get("phase");
        assert!(
            phase == done.get("phase") || (phase.is_none() && !case.run.is_json),
            "{done}"
        );
        let words = ["/content/0/text", "/content/0/refusal", "/summary/0/text", "/arguments"];
        let mut words = words.iter().filter_map(|pointer| done.pointer(pointer));
        if done["type"] != "mcp_approval_request" {
            assert_eq!(words.next().map_or("", |words| words.as_str().unwrap()), self.streamed);
        }
    }
}

/// Returns the types of the events of an item.
fn types_of(done: &Value) -> Vec<&'static str> {
    let between: &[&str] = match done["type"].as_str().unwrap() {
        "message" if done["content"][0]["type"] == "refusal" => &[
            "content_part.added",
            "refusal.delta",
            "refusal.done",
            "content_part.done",
        ],
        "message" => &[
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
        ],
        "reasoning" if done["summary"] == json!([]) => &[],
        "reasoning" => &[
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
        ],
        "function_call" => &["function_call_arguments.delta", "function_call_arguments.done"],
        "mcp_call" if done["status"] == "failed" => &[
            "mcp_call.in_progress",
            "mcp_call_arguments.delta",
            "mcp_call_arguments.done",
            "mcp_call.failed",
        ],
        "mcp_call" => &[
            "mcp_call.in_progress",
            "mcp_call_arguments.delta",
            "mcp_call_arguments.done",
            "mcp_call.completed",
        ],
        "mcp_approval_request" => &[],
        kind => panic!("{kind}"),
    };
    [&["output_item.added"][..], between, &["output_item.done"]].concat()
}
