//! The values in the golden files of waiting runs and their sessions, and of failed runs.

use std::sync::Arc;

use serde_json::json;

use super::fixtures::{at, context, id, messages, record};
use agent::record::{RunRecord, RunStatus};
use values::json::Object;
use values::session::{RememberedApproval, StoredContext, hash_arguments, hash_definition};

/// A context with an open step and a remembered approval.
pub(super) fn waiting_context() -> StoredContext {
    let arguments = json!({"expression": "1 + 1"});
    let call = json!({
        "call_id": "c1", "kind": "approval", "tool": "calculator", "arguments": arguments,
        "arguments_hash": hash_arguments(&arguments), "response_schema": {"type": "object"}, "expires_at": at(60_000),
        "remembers": hash_definition(b"rule"),
    });
    let waiting = json!({
        "message_count": 3, "open_calls": [call], "step": {"step": {"id": id(20)}, "calls": [{"open": {"call": {}}}]},
    });
    StoredContext {
        waiting: Some(Arc::new(serde_json::from_value(waiting).unwrap())),
        remembered_approvals: vec![RememberedApproval {
            tool: "calculator".to_owned(),
            rule: hash_definition(b"rule"),
        }],
        ..context()
    }
}

/// The record of a run that waits for answers.
pub(super) fn waiting_record() -> RunRecord {
    let waiting = waiting_context().waiting.unwrap();
    RunRecord {
        value: None,
        open_calls: waiting.open_calls.clone(),
        echo: Some(Arc::new(Object::from_iter([("store".to_owned(), true.into())]))),
        ..record()
    }
}

/// A run without a session, which keeps its input.
pub(super) fn failed_record() -> RunRecord {
    let RunRecord { mut summary, .. } = record();
    summary.status = RunStatus::Failed;
    RunRecord {
        input: [(*messages()[0]).clone()].into(),
        ..RunRecord::without_output(summary)
    }
}
