//! Checks the answers of a request against the open calls of its base session, and makes the step
//! that the run finishes first.
//!
//! The answers of a queued run are checked again when it begins, since the run may have waited for
//! its turn on a thread. Calls that expire in between are answered in time.

use std::sync::Arc;

use crate::run::refusal::{OpenCalls, Refusal};
use agent::answers::{AnswerFault, AnsweredStep, Answers, ResolvedAnswers, resolve_answers};
use store::StoreError;
use tasks::off_thread::off_thread;
use values::clock::Timestamp;
use values::ids::RunId;
use values::session::{Bundle, PinnedTool, RememberedApproval, ToolPins};
use values::tenant::TenantId;
use values::trace_context::TraceContext;

/// The most approvals that a session remembers. The oldest are forgotten.
const MAX_REMEMBERED: usize = 256;

/// The step of a waiting session with all answers.
#[derive(Debug)]
pub(in crate::run) struct Answered {
    /// The run that left the step open.
    pub(in crate::run) run_id: Option<RunId>,
    /// The span of that run, if it was recorded.
    pub(in crate::run) trace: Option<TraceContext>,
    /// The step.
    pub(in crate::run) step: AnsweredStep,
    /// The approvals that cover later calls.
    pub(in crate::run) remembered: Vec<RememberedApproval>,
    /// The changed definitions of tools that approvals have accepted.
    pub(in crate::run) accepted: Vec<PinnedTool>,
}

/// Returns the step that the run finishes first; `None` if its base does not wait. Refuses answers
/// that do not fit the open calls, and a run that would have neither input nor answers.
pub(in crate::run) async fn answered(
    tenant: &TenantId,
    base: Option<&Arc<Bundle>>,
    answers: &Answers,
    has_input: bool,
    now: Timestamp,
) -> Result<Option<Answered>, Refusal> {
    let Some((bundle, waiting)) = base.and_then(|bundle| Some((bundle, bundle.waiting()?))) else {
        let continues_without = has_input || answers.is_empty();
        if answers.answers.is_empty() && continues_without {
            return Ok(None);
        }
        let session_id = base.map(|bundle| bundle.head.session_id);
        return Err(Refusal::SessionNotWaiting { session_id });
    };
    let (resolving, answers) = (Arc::clone(waiting), answers.clone());
    let resolved = off_thread(tenant, move || resolve_answers(&resolving, &answers, now)).await;
    let resolved = resolved.map_err(|fault| {
        let open = OpenCalls {
            session_id: bundle.head.session_id,
            step: Arc::clone(waiting),
            at: now,
        };
        match fault {
            AnswerFault::Required => Refusal::AnswersRequired(open),
            AnswerFault::Invalid(faults) => Refusal::InvalidAnswers { open, faults },
        }
    })?;
    let ResolvedAnswers {
        answers,
        remembered,
        accepted,
    } = resolved;
    let step = AnsweredStep::new(waiting, answers).map_err(|error| StoreError::Corrupt {
        table: "states",
        column: "context",
        id: bundle.head.session_id.to_string(),
        source: error.into(),
    })?;
    Ok(Some(Answered {
        run_id: waiting.run_id,
        trace: waiting.trace,
        step,
        remembered,
        accepted,
    }))
}

/// Returns the approvals that a session remembers, with new ones at the end.
pub(in crate::run) fn remembered_approvals(
    base: Option<&Arc<Bundle>>,
    new: Option<&[RememberedApproval]>,
) -> Vec<RememberedApproval> {
    let known = base.map(|bundle| bundle.context.remembered_approvals.clone());
    let mut remembered = known.unwrap_or_default();
    for approval in new.into_iter().flatten() {
        if !remembered.contains(approval) {
            remembered.push(approval.clone());
        }
    }
    let forgotten = remembered.len().saturating_sub(MAX_REMEMBERED);
    remembered.split_off(forgotten)
}

/// Returns the definitions of tools that a session has accepted, with definitions from new
/// approvals.
pub(in crate::run) fn accepted_pins(base: Option<&Arc<Bundle>>, new: Option<&[PinnedTool]>) -> ToolPins {
    let mut pins = base.map_or_else(ToolPins::default, |bundle| bundle.context.tool_pins.clone());
    for tool in new.into_iter().flatten() {
        pins.pin(tool.clone());
    }
    pins
}
