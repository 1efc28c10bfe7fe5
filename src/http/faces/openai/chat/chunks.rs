//! A completion in chunks, made from the events of its run.

use serde::Serialize;

use super::completion::{ChatCall, ChatUsage, Words, client_calls, completion_id, finish_of};
use agent::AgentEvent;
use agent::record::{RunEvent, RunEventPayload, RunRecord};
use values::ids::RunId;

/// A chunk of a completion.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ChatChunk {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: Vec<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
}

#[derive(Debug, Serialize)]
struct Choice {
    index: u32,
    delta: Delta,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Debug, Default, Serialize)]
struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall>,
}

/// Turns the events of a run into chunks.
#[derive(Debug)]
pub(in crate::http) struct ChatReader {
    model: String,
    includes_usage: bool,
    /// Whether the text is one value, which a correction replaces as a whole.
    is_json: bool,
    /// The time of the first chunk, which all of them have.
    created: i64,
    /// The step of the last text.
    text_step: Option<usize>,
}

impl ChatReader {
    pub(in crate::http) fn new(model: String, includes_usage: bool, is_json: bool) -> Self {
        Self {
            model,
            includes_usage,
            is_json,
            created: 0,
            text_step: None,
        }
    }

    /// Reads an event. Returns its chunks, of which there may be none.
    pub(in crate::http) fn read(&mut self, event: &RunEvent) -> Vec<ChatChunk> {
        let run_id = event.run_id;
        match &event.payload {
            RunEventPayload::Started(run) => {
                self.created = run.created_at.timestamp();
                let delta = Delta {
                    role: Some("assistant"),
                    content: Some(String::new()),
                    ..Delta::default()
                };
                vec![self.chunk(run_id, delta)]
            }
            RunEventPayload::Agent(event) => self.read_agent(run_id, event).into_iter().collect(),
            payload => payload.record().map_or_else(Vec::new, |run| self.end(run)),
        }
    }

    fn read_agent(&mut self, run_id: RunId, event: &AgentEvent) -> Option<ChatChunk> {
        let delta = match event {
            AgentEvent::MessageDelta { .. } if self.is_json => return None,
            AgentEvent::MessageDelta {
                text, refusal: true, ..
            } => Delta {
                refusal: Some(text.clone()),
                ..Delta::default()
            },
            AgentEvent::MessageDelta { step_number, text, .. } => Delta {
                content: Some(self.separated(*step_number, text)),
                ..Delta::default()
            },
            AgentEvent::ReasoningDelta { text, .. } => Delta {
                reasoning_content: Some(text.clone()),
                ..Delta::default()
            },
            _ => return None,
        };
        Some(self.chunk(run_id, delta))
    }

    /// Returns a text with a blank line before it, if it is the first of another step.
    fn separated(&mut self, step_number: usize, text: &str) -> String {
        let before = self.text_step.replace(step_number);
        if before.is_some_and(|before| before != step_number) {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        }
    }

    /// Returns the last chunks: JSON as a whole, the calls, the reason of the end, and the usage.
    fn end(&mut self, run: &RunRecord) -> Vec<ChatChunk> {
        let run_id = run.summary.run_id;
        let mut chunks = Vec::new();
        // The first events of a run are not retained forever.
        let has_begun = self.created != 0;
        self.created = run.summary.created_at.timestamp();
        if self.is_json || !has_begun {
            let Words { text, refusal, .. } = Words::of_record(run);
            let filled = |text: String| (!text.is_empty()).then_some(text);
            chunks.push(self.chunk(
                run_id,
                Delta {
                    role: (!has_begun).then_some("assistant"),
                    content: filled(text),
                    refusal: filled(refusal),
                    ..Delta::default()
                },
            ));
        }
        for (index, call) in client_calls(run).enumerate() {
            let tool_calls = vec![ChatCall::new(Some(index), call)];
            chunks.push(self.chunk(
                run_id,
                Delta {
                    tool_calls,
                    ..Delta::default()
                },
            ));
        }
        let mut last = self.chunk(run_id, Delta::default());
        for choice in &mut last.choices {
            choice.finish_reason = Some(finish_of(run));
        }
        chunks.push(last);
        if self.includes_usage {
            chunks.push(ChatChunk {
                choices: Vec::new(),
                usage: Some(ChatUsage::from(&run.summary.usage)),
                ..self.chunk(run_id, Delta::default())
            });
        }
        chunks
    }

    fn chunk(&self, run_id: RunId, delta: Delta) -> ChatChunk {
        ChatChunk {
            id: completion_id(run_id),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            choices: vec![Choice {
                index: 0,
                delta,
                logprobs: None,
                finish_reason: None,
            }],
            usage: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const RUN: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";

    fn summary(status: &str) -> Value {
        json!({
            "run_id": RUN, "session_id": RUN, "base_session_id": null, "agent": "a", "agent_version": null,
            "model": "m/m", "mode": "stream", "status": status, "stop_reason": null,
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}, "step_count": 1, "error": null,
            "metadata": {}, "created_at": "2026-01-01T00:00:00Z", "started_at": null, "completed_at": null,
        })
    }

    fn event(kind: &str, data: &Value) -> RunEvent {
        let event = json!({"sequence": 1, "run_id": RUN, "time": "2026-01-01T00:00:00Z", "type": kind, "data": data});
        serde_json::from_value(event).unwrap()
    }

    fn chunks(reader: &mut ChatReader, events: &[RunEvent]) -> Vec<Value> {
        let chunks = events.iter().flat_map(|event| reader.read(event));
        chunks.map(|chunk| serde_json::to_value(chunk).unwrap()).collect()
    }

    fn events() -> Vec<RunEvent> {
        let mut ended = summary("waiting");
        let call = json!({
            "call_id": "c", "kind": "client", "tool": "f", "arguments": {"x": 1}, "arguments_hash": "0".repeat(64),
            "response_schema": true, "expires_at": "2026-01-02T00:00:00Z",
        });
        ended["open_calls"] = json!([call]);
        ended["output"] = json!([]);
        vec![
            event("run.started", &summary("running")),
            event("message.delta", &json!({"step_number": 1, "text": "a"})),
            event("reasoning.delta", &json!({"step_number": 2, "text": "hm"})),
            event("message.delta", &json!({"step_number": 2, "text": "b"})),
            event("run.waiting", &ended),
        ]
    }

    #[test]
    fn each_delta_is_a_chunk_and_calls_come_at_the_end() {
        let found = chunks(&mut ChatReader::new("a".to_owned(), true, false), &events());
        let deltas: Vec<_> = found.iter().map(|chunk| chunk["choices"][0]["delta"].clone()).collect();
        assert_eq!(deltas[0], json!({"role": "assistant", "content": ""}));
        assert_eq!(deltas[1], json!({"content": "a"}));
        assert_eq!(deltas[2], json!({"reasoning_content": "hm"}));
        assert_eq!(deltas[3], json!({"content": "\n\nb"}));
        let function = json!({"name": "f", "arguments": r#"{"x":1}"#});
        let call = json!({"index": 0, "id": "c", "type": "function", "function": function});
        assert_eq!(deltas[4], json!({"tool_calls": [call]}));
        assert_eq!(found[5]["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(
            (&found[6]["choices"], &found[6]["usage"]["total_tokens"]),
            (&json!([]), &json!(5))
        );
        assert_eq!(found.len(), 7);
    }

    #[test]
    fn the_usage_is_sent_only_if_the_client_wants_it() {
        let found = chunks(&mut ChatReader::new("a".to_owned(), false, false), &events());
        assert!(
            found
                .iter()
                .all(|chunk| chunk["choices"].as_array().unwrap().len() == 1 && chunk.get("usage").is_none())
        );
    }
}
