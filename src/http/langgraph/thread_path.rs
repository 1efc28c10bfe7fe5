//! The thread of a path.

use crate::http::auth::Call;
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use agent::record::ThreadRecord;

/// Returns the thread of a path with its record, which a thread has none of before its first run
/// has ended. Refuses one that does not exist.
pub(super) async fn known_thread<'a>(
    call: &'a Call,
    path: &PathParameters,
) -> Result<(ChatThread<'a>, Option<ThreadRecord>), Problem> {
    let thread = ChatThread::in_path(call, path, "thread_id").ok_or_else(|| missing(path.text("thread_id")))?;
    let record = call.api.runs.store.thread_lookup(&call.tenant, &thread.name).await?;
    if record.is_none() && thread.active_run().await?.is_none() {
        return Err(missing(thread.name.as_str()));
    }
    Ok((thread, record))
}

/// Makes the problem of a thread that does not exist.
pub(super) fn missing(name: &str) -> Problem {
    let shown: String = name.chars().take(128).collect();
    Problem::new(ProblemCode::ThreadNotFound, format!("there is no thread {shown:?}"))
}
