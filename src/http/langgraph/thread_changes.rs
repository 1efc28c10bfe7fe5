//! Changes of threads.

use uuid::Uuid;

use super::thread_path::missing;
use crate::http::auth::Call;
use crate::http::problem::Problem;
use crate::run::refusal::Refusal;
use crate::run::{NewName, NewThread, create_thread};
use agent::record::{ParseThreadNameError, ThreadName, ThreadRecord};
use store::threads::{MetadataChange, ThreadDetails, ThreadPatch, ThreadPatched};
use values::json::Object;

/// Makes the name of a new thread: a UUID.
pub(super) fn new_name(call: &Call) -> Result<ThreadName, Problem> {
    let uuid: Uuid = call.api.runs.ids.next_uuid();
    uuid.to_string()
        .parse()
        .map_err(|error: ParseThreadNameError| Problem::internal(error))
}

/// Creates a thread without a session.
pub(super) async fn create(call: &Call, name: ThreadName, metadata: Object) -> Result<ThreadRecord, Refusal> {
    let details = ThreadDetails { title: None, metadata };
    let new = NewThread {
        name: NewName::Given(name),
        details,
        session_id: None,
        idempotency: None,
    };
    Ok(create_thread(&call.api.runs, &call.tenant, new).await?.thread)
}

/// Merges metadata into that of a thread.
pub(super) async fn merge_metadata(call: &Call, name: &ThreadName, metadata: Object) -> Result<ThreadRecord, Problem> {
    let patch = ThreadPatch {
        metadata: Some(MetadataChange::Merge(metadata)),
        ..ThreadPatch::default()
    };
    let (store, now) = (&call.api.runs.store, call.api.runs.clock.now());
    match store.thread_patch(&call.tenant, name, &patch, now).await? {
        ThreadPatched::Changed(thread) => {
            call.api.runs.publish_thread(&call.tenant, &thread);
            Ok(thread)
        }
        ThreadPatched::Absent => Err(missing(name.as_str())),
        ThreadPatched::TooLarge(rule) => Err(Problem::invalid_field("/metadata", rule)),
    }
}
