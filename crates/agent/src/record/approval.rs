//! A waiting run as the list of approvals shows it. Data only.

use serde::Serialize;
use utoipa::ToSchema;

use super::required_action::RequiredActionView;
use super::run::RunRecord;
use super::thread::ThreadName;
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::session::Hash;

/// A waiting run with its open calls, all of which one request answers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Approval)]
pub struct ApprovalView {
    /// The run that waits.
    run_id: RunId,
    /// The session that it has published. The run that answers continues it.
    session_id: SessionId,
    /// The thread that the run moved to its session when it ended. Null if it moved none, such as a
    /// fork. The thread may have been moved again since then.
    thread: Option<ThreadName>,
    /// The name of the agent.
    agent: String,
    /// The version of the agent's definition that the run used.
    agent_version: Option<Hash>,
    /// When the calls were left open: the end of the run.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    asked_at: Timestamp,
    /// When the first of the calls counts as denied.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    expires_at: Timestamp,
    /// The calls that have not expired, up to 1 MiB, the number of the others in `omitted_calls`,
    /// and the answers to be filled in.
    required_action: RequiredActionView,
}

impl ApprovalView {
    /// Shows a waiting run, with open calls of at most `most` bytes as JSON altogether. Returns
    /// `None` if all of them have expired.
    pub fn new(run: RunRecord, most: usize, now: Timestamp) -> Option<Self> {
        let open = run.open_calls.iter().filter(|call| !call.is_expired(now));
        let expires_at = open.map(|call| call.expires_at).min()?;
        let asked_at = run.summary.ended_at();
        Some(Self {
            run_id: run.summary.run_id,
            session_id: run.summary.session_id,
            thread: run.summary.moved_thread().cloned(),
            agent: run.summary.agent,
            agent_version: run.summary.agent_version,
            asked_at,
            expires_at,
            required_action: RequiredActionView::within(&run.open_calls, most, now)?,
        })
    }
}
