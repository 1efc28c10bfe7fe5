//! A run as a page sees it while it works, and as it is stored.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::agent_events::AgentEvents;
use super::event::{Event, ShownMessage, Tagged};
use super::fold::fold;
use super::message::Message;
use super::reconcile::{Variables, changed_variables};
use super::writer::{EventWriter, Follower};
use crate::http::faces::chat::{CUT, ChunkWriter};
use crate::http::faces::turn::arbitrary::{Made, plans};

/// A page that checks the order of events as `verifyEvents` of `@ag-ui/client` does.
#[derive(Default)]
struct Page {
    messages: Vec<Message>,
    /// What is open, by the field with its id.
    open: BTreeSet<(&'static str, String)>,
    ends: Vec<String>,
}

impl Page {
    fn read(&mut self, tagged: &Tagged) {
        let wire = json!(tagged);
        assert!(!wire.to_string().contains(":null"), "{wire}");
        let kind = wire["type"].as_str().unwrap().to_owned();
        assert!(self.ends.is_empty(), "{wire}");
        let (thing, end) = match kind.rsplit_once('_') {
            Some((thing, end)) => (thing.to_owned(), end.to_owned()),
            None => (kind.clone(), String::new()),
        };
        let (field, is_child) = match thing.as_str() {
            "TEXT_MESSAGE" | "REASONING_MESSAGE" => ("messageId", end == "CONTENT"),
            "TOOL_CALL" => ("toolCallId", end == "ARGS"),
            "STEP" => ("stepName", false),
            "REASONING" => ("messageId", false),
            _ => ("", false),
        };
        let name = match thing.as_str() {
            "TEXT_MESSAGE" => "text",
            "REASONING_MESSAGE" => "reasoning message",
            "TOOL_CALL" => "call",
            "STEP" => "step",
            _ => "reasoning",
        };
        if !field.is_empty() && end != "RESULT" {
            let id = (name, wire[field].as_str().unwrap().to_owned());
            match end.as_str() {
                "START" | "STARTED" => assert!(self.open.insert(id), "{wire}"),
                "END" | "FINISHED" => assert!(self.open.remove(&id), "{wire}"),
                _ => assert!(is_child && self.open.contains(&id), "{wire}"),
            }
        }
        if let Some(delta) = wire.get("delta") {
            assert_ne!(delta, "");
        }
        match &tagged.event {
            Event::RunFinished { .. } => assert_eq!(self.open, BTreeSet::new()),
            Event::MessagesSnapshot { messages } => {
                assert!(!self.open.iter().any(|(name, _)| *name != "step"), "{:?}", self.open);
                assert!(matches!(&messages[0], ShownMessage::OfPage(question) if question["id"] == "u1"));
                let own = messages[1..].iter().map(|message| match message {
                    ShownMessage::Own(message) => message.clone(),
                    ShownMessage::OfPage(message) => panic!("{message}"),
                });
                self.messages = own.collect();
            }
            _ => fold(&mut self.messages, tagged),
        }
        if ["RUN_FINISHED", "RUN_ERROR"].contains(&kind.as_str()) {
            self.ends.push(kind);
        }
    }
}

/// Returns messages in the order of their ids, without calls that were cut and reasoning that was
/// taken back: nothing is stored of these. Words after a call are stored before it.
fn sorted(messages: &[Message]) -> BTreeMap<String, Value> {
    let wire: Vec<Value> = messages.iter().map(|message| json!(message)).collect();
    let cut: Vec<_> = wire.iter().filter(|message| message["content"] == CUT).collect();
    let is_cut = |id: &Value| cut.iter().any(|result| result["toolCallId"] == *id);
    let shown = wire.iter().filter(|message| !is_cut(&message["toolCallId"]));
    let shown = shown.filter_map(|message| {
        let mut message = message.clone();
        let mut calls = message["toolCalls"].take().as_array().cloned().unwrap_or_default();
        calls.retain(|call| !is_cut(&call["id"]));
        calls.sort_by_key(|call| call["id"].to_string());
        for call in &mut calls {
            let arguments = &mut call["function"]["arguments"];
            *arguments = serde_json::from_str(arguments.as_str().unwrap()).unwrap_or_else(|_| arguments.take());
        }
        let has_words = message["content"].as_str().is_some_and(|words| !words.is_empty());
        let is_of_agent = message["role"] == "assistant" || message["role"] == "reasoning";
        let is_empty = is_of_agent && !has_words && calls.is_empty();
        message["toolCalls"] = json!(calls);
        (!is_empty).then(|| (message["id"].as_str().unwrap().to_owned(), message))
    });
    shown.collect()
}

fn streamed(made: &Made) -> Page {
    let follower = Follower {
        messages: Some(r#"[{"id": "u1", "role": "user", "content": "Hi"}]"#.to_owned()),
        ..Follower::default()
    };
    let mut writer = EventWriter::new(follower, Variables::new());
    let mut page = Page::default();
    for event in &made.events {
        writer.read(event);
        writer.take().iter().for_each(|event| page.read(event));
    }
    page
}

fn stored(made: &Made) -> Vec<Message> {
    let mut messages = Vec::new();
    let run = made.stored.record.summary.run_id;
    let mut add = |owner: String, write: &dyn Fn(&mut ChunkWriter)| {
        let mut chunks = ChunkWriter::with_answers();
        write(&mut chunks);
        let mut agent = AgentEvents::new(owner, None);
        chunks.take().into_iter().for_each(|chunk| agent.add(chunk));
        agent.take().iter().for_each(|event| fold(&mut messages, event));
    };
    if let Some(answered) = &made.stored.answered {
        let owner = answered.run_id.unwrap_or(run).to_string();
        add(owner, &|chunks| chunks.write_answers(answered));
    }
    add(run.to_string(), &|chunks| chunks.write_steps(&made.stored));
    messages
}

proptest! {
    #[test]
    fn a_page_shows_a_run_at_work_and_a_stored_one_alike(plan in plans()) {
        let made = plan.without_losses().make();
        prop_assert_eq!(sorted(&streamed(&made).messages), sorted(&stored(&made)));
    }

    #[test]
    fn each_stream_is_one_that_a_page_reads(plan in plans()) {
        let page = streamed(&plan.make());
        prop_assert_eq!(page.ends.len(), 1);
    }
}

fn variables(value: Value) -> Variables {
    serde_json::from_value(value).unwrap()
}

#[test]
fn only_a_state_that_the_page_has_changed_is_written() {
    let base = variables(json!({"city": "Bergen", "days": 3}));
    let last = variables(json!({"city": "Oslo", "days": 4}));
    let changed = |state: Value, has_all| changed_variables(&variables(state), (&base, &last), has_all);
    // What the page was sent, before or last.
    assert_eq!(changed(json!({"city": "Bergen", "days": 3}), true), Variables::new());
    assert_eq!(changed(json!({"city": "Oslo", "days": 4}), true), Variables::new());
    // A change, with and without the other variables.
    let city = variables(json!({"city": "Voss"}));
    assert_eq!(changed(json!({"city": "Voss", "days": 3}), true), city);
    assert_eq!(changed(json!({"city": "Voss"}), false), city);
    assert_eq!(
        changed(json!({"city": "Voss"}), true),
        variables(json!({"city": "Voss", "days": null}))
    );
}
