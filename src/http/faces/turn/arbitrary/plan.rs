//! The plan of a run, at random.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// A run of several steps.
#[derive(Debug, Clone)]
pub(in crate::http) struct Plan {
    /// The answers to the calls that an earlier run has left open, if it has.
    pub(in crate::http) answers: Vec<Answer>,
    /// At least one.
    pub(in crate::http) steps: Vec<StepPlan>,
    /// Only the last step has open calls, and they make the run wait.
    pub(in crate::http) end: End,
    /// The words of one more step, which never ends.
    pub(in crate::http) unfinished: Option<Words>,
    pub(in crate::http) takeover: Option<Takeover>,
    /// Whether the final response is JSON.
    pub(in crate::http) is_json: bool,
}

pub(in crate::http) type Words = Vec<(Kind, String)>;

#[derive(Debug, Clone, Default)]
pub(in crate::http) struct StepPlan {
    pub(in crate::http) words: Words,
    pub(in crate::http) calls: Vec<CallPlan>,
    /// The number of words after the calls, at most.
    pub(in crate::http) late_words: usize,
    /// Whether the calls end in reverse.
    pub(in crate::http) is_reversed: bool,
    /// Whether the completion is cut, so that its calls are dropped.
    pub(in crate::http) is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Kind {
    Reasoning,
    /// Reasoning that its provider does not want back.
    PlainReasoning,
    /// Reasoning that only its provider can read.
    HiddenReasoning,
    Text,
    Refusal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum CallPlan {
    Succeeds,
    Fails,
    /// Its result is a picture.
    Draws,
    /// Its error has a picture.
    FailsToDraw,
    /// It has no tool of the agent, or arguments that do not fit a tool of the caller.
    Refused,
    /// The caller executes it.
    Client,
    /// The caller approves it.
    Approval,
}

/// An answer to an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Answer {
    /// The call is approved, and so executed.
    Approved(CallPlan),
    Denied,
    Supplied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum End {
    Completed,
    Cut,
    Stopped,
    Failed,
    /// The work is done, and the session can't be stored.
    Unpublished,
    Cancelled,
}

/// Another worker continues the run in the step with this index, or an earlier one.
#[derive(Debug, Clone)]
pub(in crate::http) enum Takeover {
    /// It makes the step again. These steps are lost; the last of them has not ended.
    Again(usize, Vec<StepPlan>),
    /// It ends the calls of the step.
    Pending(usize),
}

pub(in crate::http) fn plans() -> impl Strategy<Value = Plan> {
    let ends = [
        End::Completed,
        End::Cut,
        End::Stopped,
        End::Failed,
        End::Unpublished,
        End::Cancelled,
    ];
    let answers = [
        Answer::Approved(CallPlan::Succeeds),
        Answer::Approved(CallPlan::Fails),
        Answer::Approved(CallPlan::Refused),
        Answer::Denied,
        Answer::Supplied,
    ];
    let takeovers = prop_oneof![
        (0..3_usize, vec(steps(), 1..3)).prop_map(|(at, lost)| Takeover::Again(at, lost)),
        (0..3_usize).prop_map(Takeover::Pending),
    ];
    (
        prop_oneof![3 => Just(Vec::new()), 1 => vec(prop::sample::select(answers.to_vec()), 1..4)],
        vec(steps(), 1..4),
        prop::sample::select(ends.to_vec()),
        option::weighted(0.2, words()),
        option::weighted(0.3, takeovers),
        any::<bool>(),
    )
        .prop_map(|(answers, steps, end, unfinished, takeover, is_json)| Plan {
            answers,
            steps,
            end,
            unfinished,
            takeover,
            is_json,
        })
}

fn words() -> impl Strategy<Value = Words> {
    let kinds = [
        Kind::Reasoning,
        Kind::PlainReasoning,
        Kind::HiddenReasoning,
        Kind::Text,
        Kind::Text,
        Kind::Refusal,
    ];
    vec((prop::sample::select(kinds.to_vec()), "[a-c]{1,3}"), 0..5)
}

fn steps() -> impl Strategy<Value = StepPlan> {
    let calls = [
        CallPlan::Succeeds,
        CallPlan::Fails,
        CallPlan::Draws,
        CallPlan::FailsToDraw,
        CallPlan::Refused,
        CallPlan::Client,
        CallPlan::Approval,
    ];
    let calls = vec(prop::sample::select(calls.to_vec()), 0..4);
    (words(), calls, 0..3_usize, any::<bool>(), prop::bool::weighted(0.2)).prop_map(
        |(words, calls, late_words, is_reversed, is_cut)| StepPlan {
            words,
            calls,
            late_words,
            is_reversed,
            is_cut,
        },
    )
}

impl Plan {
    pub(super) fn last(&self) -> &StepPlan {
        &self.steps[self.steps.len() - 1]
    }

    /// Returns whether the run waits for answers at its end.
    pub(super) fn waits(&self) -> bool {
        let can_wait = matches!(self.end, End::Completed | End::Cut | End::Stopped);
        can_wait && !self.is_cut(self.steps.len() - 1) && self.last().calls.iter().any(|call| is_open(*call))
    }

    /// Returns whether the completion of a step is cut. Only an end that is none of success has a
    /// last step that is cut.
    pub(super) fn is_cut(&self, index: usize) -> bool {
        let may_be_last = matches!(self.end, End::Stopped | End::Failed | End::Cancelled);
        self.steps[index].is_cut && (index + 1 < self.steps.len() || may_be_last)
    }

    /// Returns whether the step that never ends has begun.
    pub(super) fn has_unfinished(&self) -> bool {
        let is_stopped = self.end == End::Stopped && !self.is_cut(self.steps.len() - 1) && !self.waits();
        self.unfinished.is_some() && (is_stopped || matches!(self.end, End::Failed | End::Cancelled))
    }

    /// Returns whether the JSON of the final response is cut, which fails the run.
    pub(super) fn is_cut_json(&self) -> bool {
        self.is_json && self.end == End::Cut && self.last().calls.is_empty()
    }

    pub(super) fn step_type(&self, index: usize) -> &'static str {
        let (step, is_last) = (&self.steps[index], index + 1 == self.steps.len());
        let fails = |call: &CallPlan| matches!(call, CallPlan::Fails | CallPlan::FailsToDraw | CallPlan::Refused);
        if is_last && (self.end == End::Failed || self.is_cut_json()) {
            "error"
        } else if self.is_cut(index) {
            // A signal cuts the last step of a run that is stopped, and errors cut the others.
            if is_last { "final_response" } else { "error" }
        } else if step.calls.is_empty() {
            "final_response"
        } else if step.calls.iter().any(fails) {
            "error"
        } else {
            "tool_execution"
        }
    }

    /// Returns the calls of a step that have ended, in the order of their ends.
    pub(super) fn ended(&self, index: usize) -> Vec<(usize, CallPlan)> {
        let step = &self.steps[index];
        let stays_open = |call| index + 1 == self.steps.len() && self.waits() && is_open(call);
        let calls = step.calls.iter().copied().enumerate();
        let mut ended: Vec<_> = calls
            .filter(|(_, call)| !self.is_cut(index) && !stays_open(*call))
            .collect();
        if step.is_reversed {
            ended.reverse();
        }
        ended
    }
}

/// Returns whether a call waits for the caller.
pub(super) fn is_open(call: CallPlan) -> bool {
    matches!(call, CallPlan::Client | CallPlan::Approval)
}

impl Plan {
    /// Makes a plan of a run that loses no step that has ended, and ends between steps. So a page
    /// that has followed it shows what is stored.
    pub(in crate::http) fn without_losses(self) -> Self {
        let takeover = self.takeover.map(|takeover| match takeover {
            Takeover::Again(at, mut lost) => Takeover::Again(at, lost.split_off(lost.len() - 1)),
            pending @ Takeover::Pending(_) => pending,
        });
        Self {
            unfinished: None,
            takeover,
            ..self
        }
    }
}
