//! A run as a page sees it while it works, and as it is stored.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::message::UiMessage;
use crate::http::faces::chat::{CUT, Chunk, ChunkWriter};
use crate::http::faces::turn::arbitrary::{Made, plans};

/// A page that reads chunks as `ai` 7 does, and fails where it does.
#[derive(Default)]
struct Reader {
    open: Vec<String>,
    steps: usize,
    /// The chunks of the message, without those of steps that began again.
    chunks: Vec<Chunk>,
    /// The calls whose arguments come in pieces.
    written: BTreeMap<String, (String, String)>,
}

impl Reader {
    fn read(&mut self, chunk: Chunk) {
        let wire = serde_json::to_value(&chunk).unwrap();
        let kind = wire["type"].as_str().unwrap();
        let id = wire["id"].as_str().map(str::to_owned);
        match (kind.rsplit_once('-'), id) {
            (Some(("text" | "reasoning", "start")), Some(id)) => self.open.push(id),
            (Some(("text" | "reasoning", "delta")), Some(id)) => assert!(self.open.contains(&id), "{wire}"),
            (Some(("text" | "reasoning", "end")), Some(id)) => {
                let at = self.open.iter().position(|open| *open == id);
                self.open.remove(at.unwrap_or_else(|| panic!("{wire}")));
            }
            _ => (),
        }
        match kind {
            "start-step" => self.steps += 1,
            "finish-step" => {
                self.steps -= 1;
                assert_eq!((self.steps, self.open.len()), (0, 0));
            }
            "reset-step" => {
                self.open.clear();
                let start = self
                    .chunks
                    .iter()
                    .rposition(|chunk| *chunk == Chunk::StartStep)
                    .unwrap();
                self.chunks.truncate(start + 1);
                return;
            }
            "finish" | "error" => assert_eq!(self.steps, 0),
            // Nothing is stored of such a call.
            "tool-output-error" if wire["errorText"] == CUT => return,
            _ => (),
        }
        match &chunk {
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
            } => {
                let written = (tool_name.clone(), String::new());
                self.written.insert(tool_call_id.clone(), written);
                return;
            }
            Chunk::ToolInputDelta {
                tool_call_id,
                input_text_delta,
            } => {
                self.written.get_mut(tool_call_id).unwrap().1.push_str(input_text_delta);
                return;
            }
            Chunk::ToolInputAvailable { tool_call_id, .. } => drop(self.written.remove(tool_call_id)),
            Chunk::ToolInputError {
                tool_call_id,
                tool_name,
                input,
                error_text,
            } => {
                self.written.remove(tool_call_id);
                self.chunks.push(Chunk::ToolInputAvailable {
                    tool_call_id: tool_call_id.clone(),
                    tool_name: tool_name.clone(),
                    input: input.clone(),
                });
                self.chunks.push(Chunk::ToolOutputError {
                    tool_call_id: tool_call_id.clone(),
                    error_text: error_text.clone(),
                });
                return;
            }
            _ => self.end_arguments(&wire),
        }
        self.chunks.push(chunk);
    }

    /// Ends the arguments of a call that ends without `tool-input-available`.
    fn end_arguments(&mut self, wire: &Value) {
        let id = wire.get("toolCallId").unwrap_or(&wire["approvalId"]);
        let written = id.as_str().and_then(|id| self.written.remove_entry(id));
        if let Some((tool_call_id, (tool_name, text))) = written {
            self.chunks.push(Chunk::ToolInputAvailable {
                tool_call_id,
                tool_name,
                input: serde_json::from_str(&text).unwrap(),
            });
        }
    }

    /// Returns the parts of the message. Words after a call come before it, since what is stored
    /// has no such order.
    fn parts(self) -> Vec<Value> {
        let mut message = UiMessage::of_agent(String::new());
        self.chunks.into_iter().for_each(|chunk| message.add(chunk));
        let message = json!(message);
        let parts = message["parts"].as_array().unwrap();
        let steps = parts.split(|part| part["type"] == "step-start");
        let sorted = steps.flat_map(|step| {
            let is_call = |part: &&Value| part["toolCallId"].is_string();
            let words = step.iter().filter(|part| !is_call(part));
            let mut calls: Vec<_> = step.iter().filter(is_call).collect();
            // A page has them in the order in which they begin.
            calls.sort_by_key(|call| call["toolCallId"].to_string());
            words.chain(calls).cloned().collect::<Vec<_>>()
        });
        sorted.collect()
    }
}

fn streamed(made: &Made) -> Vec<Value> {
    let mut writer = ChunkWriter::with_answers();
    let mut reader = Reader::default();
    for event in &made.events {
        writer.read(event);
        writer.take().into_iter().for_each(|chunk| reader.read(chunk));
    }
    reader.parts()
}

fn stored(made: &Made) -> Vec<Value> {
    let mut writer = ChunkWriter::new(None);
    made.stored
        .answered
        .iter()
        .for_each(|answered| writer.write_answers(answered));
    writer.write_steps(&made.stored);
    let mut reader = Reader::default();
    writer.take().into_iter().for_each(|chunk| reader.read(chunk));
    reader.parts()
}

proptest! {
    #[test]
    fn a_page_shows_a_run_at_work_and_a_stored_one_alike(plan in plans()) {
        let made = plan.without_losses().make();
        prop_assert_eq!(streamed(&made), stored(&made));
    }

    #[test]
    fn each_stream_is_one_that_a_page_reads(plan in plans()) {
        streamed(&plan.make());
    }
}
