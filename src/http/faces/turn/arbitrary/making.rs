//! Makes the events of a run, and what is stored of it.

use serde_json::{Value, json};

use super::json::{
    Maker, RUN, TIME, arguments, call_id, call_part, cut_part, event, execution, maker_of, message, open_call, part,
    result_of, result_part, step_id, step_record, summary,
};
use super::plan::{Answer, CallPlan, End, Kind, Plan, StepPlan, Takeover, is_open};
use crate::run::read::{AnsweredStep, RunMessages};
use agent::record::{RunEvent, RunRecord, StepRecord};

/// The index of the step that an earlier run has left open.
const ANSWERED: usize = 900;
/// The index of the first step that is lost.
const LOST: usize = 100;
/// The index of the step that never ends.
const UNFINISHED: usize = 200;

/// The events of a run, and what is stored of it.
#[derive(Debug)]
pub(in crate::http) struct Made {
    pub(in crate::http) events: Vec<RunEvent>,
    pub(in crate::http) stored: RunMessages,
}

impl Plan {
    /// Makes the run.
    pub(in crate::http) fn make(&self) -> Made {
        let mut making = Making {
            plan: self,
            events: Vec::new(),
            records: Vec::new(),
            answered: None,
        };
        making.emit("run.started", &summary("running"));
        making.answer();
        for index in 0..self.steps.len() {
            making.step(index);
        }
        making.begin_unfinished();
        making.end()
    }
}

struct Making<'a> {
    plan: &'a Plan,
    events: Vec<RunEvent>,
    records: Vec<Value>,
    answered: Option<AnsweredStep>,
}

impl Making<'_> {
    fn emit(&mut self, kind: &str, data: &Value) {
        self.events.push(event(self.events.len() + 1, kind, data));
    }

    /// Returns the number of the step with an index.
    fn number(&self, index: usize) -> usize {
        index + 1 + usize::from(self.answered.is_some())
    }

    /// Finishes the step of an earlier run: the calls end in reverse. One more call of the step had
    /// ended before.
    fn answer(&mut self) {
        let plan = self.plan;
        let answers = &plan.answers;
        if answers.is_empty() {
            return;
        }
        let id = step_id(ANSWERED);
        let begun = json!({"step_number": 1, "step_id": id, "started_at": TIME, "left_open_by": RUN});
        self.emit("step.started", &begun);
        let result = |answer: &Answer| match answer {
            Answer::Approved(call) => (result_of(*call), maker_of(*call)),
            Answer::Denied => ((json!([{"type": "text", "text": "no"}]), true), ("blocked", false)),
            Answer::Supplied => (result_of(CallPlan::Succeeds), ("supplied", true)),
        };
        for (index, answer) in answers.iter().enumerate().rev() {
            let (result, maker) = result(answer);
            self.end_call(1, index, &result, maker);
        }
        self.end_step(1, &id, "tool_execution", true);
        let succeeded = CallPlan::Succeeds;
        let before = (answers.len(), result_of(succeeded), maker_of(succeeded));
        let all = answers.iter().enumerate().map(|(index, answer)| {
            let (result, maker) = result(answer);
            (index, result, maker)
        });
        let all: Vec<_> = all.chain([before]).collect();
        let mut content = vec![json!({"type": "text", "text": "said before"})];
        content.extend((0..all.len()).map(call_part));
        let results: Vec<_> = all
            .iter()
            .map(|(index, result, _)| result_part(*index, result))
            .collect();
        let executions: Vec<_> = all
            .iter()
            .map(|(index, (_, is_error), maker)| execution(*index, *is_error, *maker))
            .collect();
        let messages = [message("assistant", &content, true), message("tool", &results, true)];
        let mut step = step_record(0, ANSWERED, "tool_execution", &messages);
        step["tool_executions"] = json!(executions);
        self.answered = Some(AnsweredStep {
            run_id: serde_json::from_value(json!(RUN)).unwrap(),
            step: serde_json::from_value(step).unwrap(),
            open_calls: (0..answers.len()).map(call_id).collect(),
        });
    }

    fn step(&mut self, index: usize) {
        let (plan, number) = (self.plan, self.number(index));
        let (step, is_last) = (&plan.steps[index], index + 1 == plan.steps.len());
        let resumed = json!({"attempts": 2, "step_count": number - 1});
        let last = plan.steps.len() - 1;
        if let Some(Takeover::Again(at, lost)) = &plan.takeover
            && index == *at.min(&last)
        {
            self.lose(number, lost);
            self.emit("run.resumed", &resumed);
        }
        let is_pending = matches!(&plan.takeover, Some(Takeover::Pending(at)) if index == *at.min(&last));
        let id = step_id(index);
        self.begin(number, &id, step, plan.is_cut(index));
        let mut ended = plan.ended(index);
        for (position, (call, kind)) in ended.iter().enumerate() {
            if is_pending && position == ended.len() / 2 {
                self.emit("run.resumed", &resumed);
            }
            self.end_call(number, *call, &result_of(*kind), maker_of(*kind));
        }
        let goes_on = !is_last || plan.has_unfinished();
        self.end_step(number, &id, plan.step_type(index), goes_on);
        ended.sort_unstable_by_key(|(call, _)| *call);
        self.store(index, &ended, goes_on);
    }

    /// Emits steps that are lost with their worker. The last one has not ended.
    fn lose(&mut self, number: usize, lost: &[StepPlan]) {
        for (index, step) in lost.iter().enumerate() {
            let (number, id) = (number + index, step_id(LOST + index));
            self.begin(number, &id, step, false);
            if index + 1 < lost.len() {
                for (call, kind) in step.calls.iter().enumerate() {
                    self.end_call(number, call, &result_of(*kind), maker_of(*kind));
                }
                self.end_step(number, &id, "tool_execution", true);
            }
        }
    }

    fn begin_unfinished(&mut self) {
        let plan = self.plan;
        let Some(words) = plan.unfinished.as_ref().filter(|_| plan.has_unfinished()) else {
            return;
        };
        let number = self.number(plan.steps.len());
        self.begin_step(number, &step_id(UNFINISHED));
        // A run is stopped before a step, and fails or is cancelled in it.
        if plan.end != End::Stopped {
            self.write_words(number, words);
        }
    }

    fn begin_step(&mut self, number: usize, id: &str) {
        let data = json!({"step_number": number, "step_id": id, "started_at": TIME});
        self.emit("step.started", &data);
    }

    /// Emits a completion, each word in letters.
    fn begin(&mut self, number: usize, id: &str, step: &StepPlan, is_cut: bool) {
        self.begin_step(number, id);
        let (early, late) = step.words.split_at(step.words.len().saturating_sub(step.late_words));
        self.write_words(number, early);
        for call in 0..step.calls.len() {
            let data = json!({"step_number": number, "index": call, "call_id": call_id(call), "name": "f"});
            self.emit("tool_call.started", &data);
            let data = json!({
                "step_number": number, "index": call, "call_id": call_id(call), "arguments": arguments(call),
            });
            self.emit("tool_call.delta", &data);
        }
        self.write_words(number, late);
        let finish_reason = if is_cut { "interrupted" } else { "stop" };
        let data = json!({
            "step_number": number, "request_id": RUN, "model": "m/m", "finish_reason": finish_reason, "usage": {},
            "attempts": 1, "duration_ms": 1,
        });
        self.emit("model.responded", &data);
        let is_next = |call: &usize| !is_cut && step.calls[*call] != CallPlan::Refused;
        for call in (0..step.calls.len()).filter(is_next) {
            let data = json!({
                "step_number": number, "call_id": call_id(call), "name": "f", "arguments": arguments(call),
            });
            self.emit("tool_call.requested", &data);
        }
    }

    fn write_words(&mut self, number: usize, words: &[(Kind, String)]) {
        for (kind, word) in words {
            for text in word.chars() {
                match kind {
                    Kind::HiddenReasoning => (),
                    Kind::Reasoning | Kind::PlainReasoning => {
                        self.emit("reasoning.delta", &json!({"step_number": number, "text": text}));
                    }
                    Kind::Text | Kind::Refusal => {
                        let refusal = *kind == Kind::Refusal;
                        let data = json!({"step_number": number, "text": text, "refusal": refusal});
                        self.emit("message.delta", &data);
                    }
                }
            }
        }
    }

    fn end_call(&mut self, number: usize, call: usize, (content, is_error): &(Value, bool), maker: Maker) {
        let (verdict, is_foreign) = maker;
        let data = json!({
            "step_number": number, "call_id": call_id(call), "name": "f", "arguments": arguments(call),
            "content": content, "is_error": is_error, "verdict": verdict, "is_foreign": is_foreign, "duration_ms": 1,
        });
        self.emit("tool_call.completed", &data);
    }

    fn end_step(&mut self, number: usize, id: &str, step_type: &str, goes_on: bool) {
        let data = json!({
            "step_number": number, "step_id": id, "step_type": step_type, "finish_reason": null, "usage": {},
            "duration_ms": 1,
        });
        self.emit("step.completed", &data);
        let decision = if goes_on { "continue" } else { "stop" };
        let data =
            json!({"step_number": number, "decision": decision, "reason": null, "source": null, "message": null});
        self.emit("continuation.evaluated", &data);
    }

    fn store(&mut self, index: usize, ended: &[(usize, CallPlan)], goes_on: bool) {
        let plan = self.plan;
        let step = &plan.steps[index];
        let (early, late) = step.words.split_at(step.words.len().saturating_sub(step.late_words));
        let content: Vec<_> = if plan.is_cut(index) {
            step.words.iter().filter_map(cut_part).collect()
        } else {
            let calls = (0..step.calls.len()).map(call_part);
            early
                .iter()
                .map(part)
                .chain(calls)
                .chain(late.iter().map(part))
                .collect()
        };
        let step_type = plan.step_type(index);
        // Only a session has a final response as a trace.
        let has_session = !matches!(plan.end, End::Failed | End::Unpublished);
        let is_trace = step_type != "final_response" || (goes_on && has_session);
        let mut messages = Vec::new();
        if !content.is_empty() {
            messages.push(message("assistant", &content, is_trace));
        }
        if !ended.is_empty() {
            let results = ended.iter().map(|(call, kind)| result_part(*call, &result_of(*kind)));
            messages.push(message("tool", &results.collect::<Vec<_>>(), is_trace));
        }
        let executions = ended.iter().map(|(call, kind)| {
            let (_, is_error) = result_of(*kind);
            execution(*call, is_error, maker_of(*kind))
        });
        let mut record = step_record(index, index, step_type, &messages);
        record["tool_executions"] = executions.collect();
        self.records.push(record);
    }

    fn end(mut self) -> Made {
        let plan = self.plan;
        let status = match plan.end {
            _ if plan.waits() => "waiting",
            End::Cut if plan.is_cut_json() => "failed",
            End::Completed | End::Cut => "completed",
            End::Stopped => "stopped",
            End::Failed | End::Unpublished => "failed",
            End::Cancelled => "cancelled",
        };
        let mut record = summary(status);
        record["stop_reason"] = json!((plan.end == End::Stopped).then_some("steps_limit_reached"));
        record["finish_reason"] = json!(if plan.end == End::Cut { "length" } else { "stop" });
        record["output"] = self.records[self.records.len() - 1]["messages"].clone();
        if status == "failed" {
            let code = if plan.is_cut_json() {
                "answer_incomplete"
            } else {
                "hook_failed"
            };
            record["error"] = json!({"code": code, "message": "no", "phase": "execute"});
        }
        if plan.waits() {
            let open = plan.last().calls.iter().enumerate().filter(|(_, call)| is_open(**call));
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
                answered: self.answered,
                input: Vec::new(),
                steps,
            },
        }
    }
}
