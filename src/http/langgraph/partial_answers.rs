//! Answers to some of the calls of a step. `useStream` answers calls of its own tools at once, and
//! others only once a person has. A run goes on after all answers, so the thread retains the first
//! ones, in its metadata: a pair for each call.

use serde::{Deserialize, Serialize};

use super::thread_changes::merge_metadata;
use crate::http::chat_thread::ChatThread;
use crate::http::faces::langgraph::OpenStep;
use crate::http::problem::Problem;
use agent::answers::Answer;
use values::ids::StepId;
use values::json::Object;

/// The beginning of the keys of a thread's metadata.
const KEY: &str = "langgraph_answer:";

/// An answer to a call of a step.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    step: StepId,
    answer: Answer,
}

/// Returns the answers to calls of a step that the thread retains.
pub(super) async fn stored_answers(thread: &ChatThread<'_>, step: &OpenStep) -> Result<Vec<Answer>, Problem> {
    let store = &thread.call.api.runs.store;
    let record = store.thread_lookup(&thread.call.tenant, &thread.name).await?;
    Ok(record.map_or_else(Vec::new, |record| answers_in(&record.metadata, step)))
}

/// Retains answers to calls of a step. Returns all that the thread has now: several requests may
/// bring some at the same time.
pub(super) async fn store_answers(
    thread: &ChatThread<'_>,
    step: &OpenStep,
    answers: Vec<Answer>,
) -> Result<Vec<Answer>, Problem> {
    let stored = answers.into_iter().map(|answer| {
        let key = format!("{KEY}{}", answer.call_id);
        let stored = serde_json::to_value(Stored { step: step.id, answer });
        Ok((key, stored.map_err(Problem::internal)?))
    });
    let stored = stored.collect::<Result<Object, Problem>>()?;
    let record = merge_metadata(thread.call, &thread.name, stored).await?;
    Ok(answers_in(&record.metadata, step))
}

fn answers_in(metadata: &Object, step: &OpenStep) -> Vec<Answer> {
    let stored = metadata.iter().filter(|(key, _)| key.starts_with(KEY));
    let stored = stored.filter_map(|(_, value)| Stored::deserialize(value).ok());
    let of_step = stored.filter(|stored| stored.step == step.id);
    of_step.map(|stored| stored.answer).collect()
}

/// Returns metadata as clients see it.
pub(super) fn shown(mut metadata: Object) -> Object {
    metadata.retain(|key, _| !key.starts_with(KEY));
    metadata
}
