//! Passes the progress of a request, and questions of the server, to its caller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam};
use tokio::sync::SetOnce;

use super::input::{accepted, question_hash};
use agent::ports::OutputSink;
use values::json::Value;

/// The most bytes of progress that a call shows.
const MAX_SHOWN: usize = 64 << 10;
/// The most bytes of one message of progress.
const MAX_MESSAGE: usize = 1_000;

/// Observes a request.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// Receives the progress, with the id of the tool call.
    progress: Option<(Arc<dyn OutputSink>, String)>,
    /// The answers to questions that the server asks during the request, by the hash of the
    /// question.
    answers: BTreeMap<String, Value>,
    /// The question without an answer. The request ends at the first one.
    question: SetOnce<Box<ElicitRequestParams>>,
    /// The bytes of progress that were shown.
    shown: AtomicUsize,
}

impl Observer {
    pub(super) fn new(progress: Option<(Arc<dyn OutputSink>, String)>, answers: BTreeMap<String, Value>) -> Self {
        Self {
            progress,
            answers,
            ..Self::default()
        }
    }

    /// Waits for a question that has no answer.
    pub(super) async fn asked(&self) -> Box<ElicitRequestParams> {
        self.question.wait().await.clone()
    }

    /// Shows progress.
    pub(super) fn show(&self, progress: &ProgressNotificationParam) {
        let Some((sink, call_id)) = &self.progress else {
            return;
        };
        let text = words(progress);
        let before = self.shown.fetch_add(text.len(), Ordering::Relaxed);
        if before + text.len() <= MAX_SHOWN {
            sink.show(call_id, text);
        }
    }

    /// Answers a question. Returns `None` if the question is passed on.
    pub(super) fn answer(&self, question: &ElicitRequestParams) -> Option<ElicitResult> {
        if let Some(answer) = self.answers.get(&question_hash(question)) {
            return Some(accepted(question, answer));
        }
        let passed_on = self.question.set(Box::new(question.clone()));
        passed_on.err().map(|_| declined())
    }
}

/// Returns the response to a question without an answer.
pub(super) fn declined() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

/// Returns a line about the progress.
fn words(progress: &ProgressNotificationParam) -> String {
    let share = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref() {
        Some(message) => format!("[{share}] {}\n", &message[..message.floor_char_boundary(MAX_MESSAGE)]),
        None => format!("[{share}]\n"),
    }
}
