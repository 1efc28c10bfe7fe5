//! Reads a session passage by passage. A passage is what one run has added to the session.

use std::sync::Arc;

use super::messages::{RunMessages, is_input, run_left_open, run_messages_in};
use crate::run::context::RunContext;
use store::StoreError;
use values::ids::RunId;
use values::message::{Message, MessageTags};
use values::session::Bundle;
use values::tenant::TenantId;

/// Adjacent messages of a session that one run has added, or that none has.
#[derive(Debug)]
pub struct Passage {
    /// The run.
    pub run_id: Option<RunId>,
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Whether the session waits for answers to calls of the run.
    pub is_open: bool,
}

/// The runs that have made a passage.
#[derive(Debug)]
pub struct PassageRuns {
    /// The run, with the messages of the passage.
    pub run: RunMessages,
    /// The earlier run that has left the first step of the passage open, with this step alone.
    pub before: Option<RunMessages>,
}

/// Divides a session with all its messages into passages, oldest first.
pub fn passages_of(bundle: &Bundle) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    for message in bundle.history.iter().filter(|message| is_shown(&message.tags)) {
        let run_id = run_of(&message.tags);
        passage_of(&mut passages, run_id).messages.push(Arc::clone(message));
    }
    // The history lacks the step that waits for answers.
    if let Some(run_id) = bundle.waiting().and_then(|waiting| waiting.run_id) {
        passage_of(&mut passages, Some(run_id)).is_open = true;
    }
    passages
}

/// Reads the runs of a passage; `None` if no stored run has made it.
pub async fn passage_runs(
    ctx: &RunContext,
    tenant: &TenantId,
    passage: &Passage,
) -> Result<Option<PassageRuns>, StoreError> {
    let Some(run_id) = passage.run_id else {
        return Ok(None);
    };
    let run = run_messages_in(ctx, tenant, run_id, &passage.messages, passage.is_open).await?;
    let Some(run) = run else { return Ok(None) };
    let before = match &run.answered {
        Some(answered) => run_left_open(ctx, tenant, answered).await?,
        None => None,
    };
    Ok(Some(PassageRuns { run, before }))
}

/// Returns the last passage if it is of the run, and otherwise a new one.
fn passage_of(passages: &mut Vec<Passage>, run_id: Option<RunId>) -> &mut Passage {
    let is_same = passages.last().is_some_and(|last| last.run_id == run_id);
    let at = if is_same { passages.len() - 1 } else { passages.len() };
    if !is_same {
        passages.push(Passage {
            run_id,
            messages: Vec::new(),
            is_open: false,
        });
    }
    &mut passages[at]
}

/// Returns the run that has added a message.
fn run_of(tags: &MessageTags) -> Option<RunId> {
    tags.execution_id
        .map(|execution_id| RunId::from_uuid(execution_id.as_uuid()))
}

/// Returns whether clients see a message: one of a caller or of a step.
fn is_shown(tags: &MessageTags) -> bool {
    is_input(tags) || (tags.step_id.is_some() && tags.section.is_messages())
}
