//! Random runs, each as its events and as what is stored of it.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::projection::ResponseSettings;
use crate::http::faces::openai::echo::{ENCRYPTED_REASONING, Echo};
use crate::http::openai_settings::{OpenAiAccess, OpenAiSettings, OwnTools, Seal};
use crate::run::read::RunMessages;
use agent::record::{RunEvent, RunRecord, StepRecord};

pub(super) const RUN: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
pub(super) const TIME: &str = "2026-01-01T00:00:00Z";

/// A run of several steps.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// At least one.
    pub(super) steps: Vec<StepPlan>,
    /// Only the last step has open calls, and they make the run wait.
    pub(super) end: End,
    pub(super) takeover: Option<Takeover>,
    pub(super) is_json: bool,
    pub(super) seals: bool,
    pub(super) hides_calls: bool,
}

#[derive(Debug, Clone)]
pub(super) struct StepPlan {
    pub(super) words: Vec<(Kind, String)>,
    pub(super) calls: Vec<CallPlan>,
    /// Whether the calls end in reverse.
    pub(super) is_reversed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Reasoning,
    Text,
    Refusal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallPlan {
    Succeeds,
    Fails,
    /// The caller executes it.
    Client,
    /// The caller approves it.
    Approval,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    Cut,
    Stopped,
    Failed,
    Cancelled,
}

/// Another worker continues the run in its last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takeover {
    /// It makes the step again.
    Again,
    /// It ends the calls of the step.
    Pending,
}

/// The events of a run, and what is stored of it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) events: Vec<RunEvent>,
    pub(super) stored: RunMessages,
}

pub(super) fn plans() -> impl Strategy<Value = Plan> {
    let kinds = [Kind::Reasoning, Kind::Text, Kind::Refusal];
    let words = vec((prop::sample::select(kinds.to_vec()), "[a-c]{1,3}"), 0..4);
    let calls = [
        CallPlan::Succeeds,
        CallPlan::Fails,
        CallPlan::Client,
        CallPlan::Approval,
    ];
    let calls = vec(prop::sample::select(calls.to_vec()), 0..4);
    let step = (words, calls, any::<bool>()).prop_map(|(words, calls, is_reversed)| StepPlan {
        words,
        calls,
        is_reversed,
    });
    let ends = [End::Completed, End::Cut, End::Stopped, End::Failed, End::Cancelled];
    let takeovers = [Takeover::Again, Takeover::Pending];
    (
        vec(step, 1..4),
        prop::sample::select(ends.to_vec()),
        option::of(prop::sample::select(takeovers.to_vec())),
        any::<[bool; 3]>(),
    )
        .prop_map(|(steps, end, takeover, [is_json, seals, hides_calls])| Plan {
            steps,
            end,
            takeover,
            is_json,
            seals,
            hides_calls,
        })
}

impl Plan {
    pub(super) fn echo(&self) -> Echo {
        let format = if self.is_json { "json_object" } else { "text" };
        Echo {
            model: "support".to_owned(),
            text: json!({"format": {"type": format}}),
            // No other run is taken over.
            background: self.takeover.is_some(),
            include: self.seals.then(|| ENCRYPTED_REASONING.to_owned()).into_iter().collect(),
            ..Echo::default()
        }
    }

    pub(super) fn settings(&self) -> ResponseSettings {
        let own_tools = if self.hides_calls {
            OwnTools::Hide
        } else {
            OwnTools::Show
        };
        ResponseSettings {
            openai: Arc::new(OpenAiSettings {
                access: OpenAiAccess {
                    own_tools,
                    ..OpenAiAccess::default()
                },
                seal: Some(Seal::random().unwrap()),
            }),
            tenant: "acme".parse().unwrap(),
        }
    }

    pub(super) fn make(&self) -> Made {
        let mut making = Making {
            plan: self,
            events: Vec::new(),
            records: Vec::new(),
        };
        making.emit("run.started", &summary("running"));
        for index in 0..self.steps.len() {
            making.step(index);
        }
        making.end()
    }

    /// Returns whether the run waits for answers at its end.
    fn waits(&self) -> bool {
        let last = self.steps.len() - 1;
        !matches!(self.end, End::Failed | End::Cancelled) && self.steps[last].calls.iter().any(|call| is_open(*call))
    }
}

fn is_open(call: CallPlan) -> bool {
    matches!(call, CallPlan::Client | CallPlan::Approval)
}

struct Making<'a> {
    plan: &'a Plan,
    events: Vec<RunEvent>,
    records: Vec<Value>,
}

impl Making<'_> {
    fn emit(&mut self, kind: &str, data: &Value) {
        self.events.push(event(self.events.len() + 1, kind, data));
    }

    fn step(&mut self, index: usize) {
        let (plan, number) = (self.plan, index + 1);
        let (step, is_last) = (&plan.steps[index], number == plan.steps.len());
        let takeover = plan.takeover.filter(|_| is_last);
        let resumed = json!({"attempts": 2, "step_count": index});
        if takeover == Some(Takeover::Again) {
            self.begin(number, &step_id(index + 100), step);
            self.emit("run.resumed", &resumed);
        }
        let id = step_id(index);
        self.begin(number, &id, step);
        if takeover == Some(Takeover::Pending) && !step.calls.is_empty() {
            self.emit("run.resumed", &resumed);
        }
        let mut ended: Vec<_> = step.calls.iter().copied().enumerate().collect();
        ended.retain(|(_, call)| !(is_last && plan.waits() && is_open(*call)));
        if step.is_reversed {
            ended.reverse();
        }
        for (call, plan) in &ended {
            let (content, is_error) = result_of(*plan);
            let data = json!({
                "step_number": number, "call_id": call_id(*call), "name": "f", "arguments": arguments(*call),
                "content": content, "is_error": is_error, "duration_ms": 1,
            });
            self.emit("tool_call.completed", &data);
        }
        let step_type = if is_last && plan.end == End::Failed {
            "error"
        } else if step.calls.is_empty() {
            "final_response"
        } else {
            "tool_execution"
        };
        let data = json!({
            "step_number": number, "step_id": id, "step_type": step_type, "finish_reason": null, "usage": {},
            "duration_ms": 1,
        });
        self.emit("step.completed", &data);
        let decision = if is_last { "stop" } else { "continue" };
        let data =
            json!({"step_number": number, "decision": decision, "reason": null, "source": null, "message": null});
        self.emit("continuation.evaluated", &data);
        ended.sort_unstable_by_key(|(call, _)| *call);
        self.store(index, step, step_type, &ended);
    }

    /// Emits a completion, each word in letters.
    fn begin(&mut self, number: usize, id: &str, step: &StepPlan) {
        self.emit(
            "step.started",
            &json!({"step_number": number, "step_id": id, "started_at": TIME}),
        );
        for (kind, word) in &step.words {
            for text in word.chars() {
                match kind {
                    Kind::Reasoning => self.emit("reasoning.delta", &json!({"step_number": number, "text": text})),
                    kind => {
                        let refusal = *kind == Kind::Refusal;
                        let data = json!({"step_number": number, "text": text, "refusal": refusal});
                        self.emit("message.delta", &data);
                    }
                }
            }
        }
        for call in 0..step.calls.len() {
            let data = json!({"step_number": number, "index": call, "call_id": call_id(call), "name": "f"});
            self.emit("tool_call.started", &data);
        }
        let data = json!({
            "step_number": number, "request_id": RUN, "model": "m/m", "finish_reason": "stop", "usage": {},
            "duration_ms": 1,
        });
        self.emit("model.responded", &data);
    }

    fn store(&mut self, index: usize, step: &StepPlan, step_type: &str, ended: &[(usize, CallPlan)]) {
        let mut content: Vec<Value> = step.words.iter().map(part).collect();
        content.extend(
            (0..step.calls.len()).map(
                |call| json!({"type": "tool_call", "id": call_id(call), "name": "f", "arguments": arguments(call)}),
            ),
        );
        let is_trace = step_type != "final_response" || index + 1 < self.plan.steps.len();
        let message = |role: &str, content: Vec<Value>| {
            json!({
                "id": RUN, "role": role, "content": content, "tags": {"is_trace": is_trace}, "created_at": TIME,
            })
        };
        let mut messages = Vec::new();
        if !content.is_empty() {
            messages.push(message("assistant", content));
        }
        if !ended.is_empty() {
            let results = ended.iter().map(|(call, plan)| {
                let (content, is_error) = result_of(*plan);
                json!({
                    "type": "tool_result", "call_id": call_id(*call), "name": "f", "content": content,
                    "is_error": is_error,
                })
            });
            messages.push(message("tool", results.collect()));
        }
        self.records.push(json!({
            "step_number": index + 1, "step_id": step_id(index), "step_type": step_type, "finish_reason": null,
            "model": null, "usage": {}, "started_at": TIME, "completed_at": TIME, "duration_ms": 1,
            "tool_executions": [], "errors": [], "messages": messages,
        }));
    }

    fn end(mut self) -> Made {
        let plan = self.plan;
        let status = match plan.end {
            _ if plan.waits() => "waiting",
            End::Completed | End::Cut => "completed",
            End::Stopped => "stopped",
            End::Failed => "failed",
            End::Cancelled => "cancelled",
        };
        let mut record = summary(status);
        record["stop_reason"] = json!((plan.end == End::Stopped).then_some("steps_limit_reached"));
        record["finish_reason"] = json!(if plan.end == End::Cut { "length" } else { "stop" });
        record["output"] = self.records[self.records.len() - 1]["messages"].clone();
        if plan.end == End::Failed {
            record["error"] = json!({"code": "hook_failed", "message": "no", "phase": "execute"});
        }
        if plan.waits() {
            let last = &plan.steps[plan.steps.len() - 1];
            let open = last.calls.iter().enumerate().filter(|(_, call)| is_open(**call));
            record["open_calls"] = open.map(|(index, call)| open_call(index, *call)).collect();
        }
        self.emit(&format!("run.{status}"), &record);
        let record: RunRecord = serde_json::from_value(record).unwrap();
        let steps = self.records.into_iter().map(serde_json::from_value);
        let steps: Vec<StepRecord> = steps.collect::<Result<_, _>>().unwrap();
        Made {
            events: self.events,
            stored: RunMessages {
                record,
                answered: None,
                input: Vec::new(),
                steps,
            },
        }
    }
}

pub(super) fn event(sequence: usize, kind: &str, data: &Value) -> RunEvent {
    let event = json!({"sequence": sequence, "run_id": RUN, "time": TIME, "type": kind, "data": data});
    serde_json::from_value(event).unwrap()
}

pub(super) fn summary(status: &str) -> Value {
    let has_ended = !["queued", "running"].contains(&status);
    json!({
        "run_id": RUN, "session_id": RUN, "base_session_id": null, "agent": "a", "agent_version": null,
        "model": "m/m", "mode": "stream", "status": status, "stop_reason": null,
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}, "step_count": 1, "error": null,
        "metadata": {}, "created_at": TIME, "started_at": TIME, "completed_at": has_ended.then_some(TIME),
    })
}

fn step_id(index: usize) -> String {
    Uuid::from_u128(index as u128 + 1).to_string()
}

fn call_id(index: usize) -> String {
    // Some models use an id again in another step.
    format!("call_{index}")
}

fn arguments(index: usize) -> String {
    format!(r#"{{"x":{index}}}"#)
}

fn result_of(call: CallPlan) -> (Value, bool) {
    let is_error = call == CallPlan::Fails;
    (
        json!([{"type": "text", "text": if is_error { "bad" } else { "good" }}]),
        is_error,
    )
}

fn part((kind, word): &(Kind, String)) -> Value {
    match kind {
        Kind::Reasoning => json!({"type": "reasoning", "text": word, "signature": "s"}),
        Kind::Text => json!({"type": "text", "text": word}),
        Kind::Refusal => json!({"type": "refusal", "text": word}),
    }
}

fn open_call(index: usize, call: CallPlan) -> Value {
    let kind = if call == CallPlan::Client { "client" } else { "approval" };
    json!({
        "call_id": call_id(index), "kind": kind, "tool": "f", "arguments": {"x": index},
        "arguments_hash": "0".repeat(64), "response_schema": true, "expires_at": "2026-01-02T00:00:00Z",
    })
}
