//! `GET /v1/changes`: one stream for all runs, sessions and threads of a tenant. It has ids alone,
//! and retains nothing.

use std::future::{Ready, ready};

use axum::body::Bytes;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Call;
use super::codes::ProblemCode;
use super::event_stream::{FrameReader, NextFrames, event_stream};
use super::parameters::NoParameters;
use super::problem::Problem;
use crate::run::read::{ChangeFollower, FollowedChange};
use agent::record::{RunStatus, ThreadName};
use board::TenantChange;
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::limits::TenantShare;

/// A change: the JSON in the line `data` of a server-sent event. Events have no `id`, since none is
/// sent again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", content = "data")]
#[schema(as = Change)]
enum ChangeView {
    /// The first event: changes after it are sent.
    #[serde(rename = "changes.opened")]
    Opened {
        /// The time of the service.
        #[schema(value_type = chrono::DateTime<chrono::Utc>)]
        time: Timestamp,
        /// When the process that sends the events began to serve.
        #[schema(value_type = chrono::DateTime<chrono::Utc>)]
        started_at: Timestamp,
    },
    /// A run has a new status, or another process executes it.
    #[serde(rename = "run.changed")]
    Run {
        /// The run.
        run_id: RunId,
        /// Its status.
        status: RunStatus,
        /// The session that it has published; null as long as there is none.
        session_id: Option<SessionId>,
        /// The thread that it is on; null for none.
        thread: Option<ThreadName>,
    },
    /// A request without a run has published a session.
    #[serde(rename = "session.published")]
    SessionPublished {
        /// The session.
        session_id: SessionId,
    },
    /// A request has removed a session, perhaps with those that continue it.
    #[serde(rename = "session.removed")]
    SessionRemoved {
        /// The session.
        session_id: SessionId,
    },
    /// A request without a run has created, moved or changed a thread.
    #[serde(rename = "thread.changed")]
    ThreadChanged {
        /// The thread.
        thread: ThreadName,
        /// The session that it points to; null for none yet.
        session_id: Option<SessionId>,
    },
    /// A request has taken a thread away.
    #[serde(rename = "thread.removed")]
    ThreadRemoved {
        /// The thread.
        thread: ThreadName,
    },
    /// The last event of a reader that is dropped. It may have missed changes.
    #[serde(rename = "stream.dropped")]
    Dropped {
        /// Why, in words.
        reason: &'static str,
    },
}

/// Streams the changes of all runs, sessions and threads of the tenant, on all replicas, by their
/// ids alone.
///
/// The first event is `changes.opened`. Changes before it are not sent: read the lists after it,
/// and again after each reconnection. A reader that is dropped reads a last event `stream.dropped`.
#[utoipa::path(get, path = "/v1/changes", tag = "service", responses(
    (status = 200, description = "The changes, each of which has a `Change` in its line `data`", content((ChangeView = "text/event-stream"))),
), extensions(("x-problems" = json!([ProblemCode::TooManyReaders]))))]
pub(super) fn follow_changes(call: Call, _: NoParameters) -> Ready<Result<Response, Problem>> {
    ready(follow(call))
}

fn follow(call: Call) -> Result<Response, Problem> {
    let api = &call.api;
    let counted = api.take_reader(&call.tenant)?;
    // Follows from before the first event on.
    let changes = ChangeFollower::new(&api.runs, &call.tenant);
    let opened = ChangeView::Opened {
        time: api.runs.clock.now(),
        started_at: api.started_at,
    };
    let reader = Reader {
        first: Some(frame(&opened)),
        changes,
        _counted: counted,
    };
    Ok(event_stream(call, reader))
}

/// The reader of a stream.
struct Reader {
    /// The first event, until it is sent.
    first: Option<Bytes>,
    changes: ChangeFollower,
    /// Counts the reader.
    _counted: TenantShare,
}

impl FrameReader for Reader {
    async fn next(&mut self) -> Option<NextFrames> {
        if let Some(bytes) = self.first.take() {
            return Some(NextFrames { bytes, is_last: false });
        }
        let next = ChangeView::from(self.changes.next().await?);
        Some(NextFrames {
            bytes: frame(&next),
            is_last: matches!(next, ChangeView::Dropped { .. }),
        })
    }

    fn dropped(&mut self, reason: &'static str) -> impl Future<Output = Bytes> + Send {
        ready(frame(&ChangeView::Dropped { reason }))
    }
}

fn frame(event: &ChangeView) -> Bytes {
    let mut frame = format!("event: {}\ndata: ", event.name()).into_bytes();
    // A vector takes all that is written, and names, ids and times have a JSON form.
    let _ = serde_json::to_writer(&mut frame, event);
    frame.extend_from_slice(b"\n\n");
    frame.into()
}

impl ChangeView {
    fn name(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "changes.opened",
            Self::Run { .. } => "run.changed",
            Self::SessionPublished { .. } => "session.published",
            Self::SessionRemoved { .. } => "session.removed",
            Self::ThreadChanged { .. } => "thread.changed",
            Self::ThreadRemoved { .. } => "thread.removed",
            Self::Dropped { .. } => "stream.dropped",
        }
    }
}

impl From<FollowedChange> for ChangeView {
    fn from(followed: FollowedChange) -> Self {
        match followed {
            FollowedChange::Change(change) => change.into(),
            FollowedChange::Dropped { reason } => Self::Dropped { reason },
        }
    }
}

impl From<TenantChange> for ChangeView {
    fn from(change: TenantChange) -> Self {
        match change {
            TenantChange::Run {
                run_id,
                status,
                session_id,
                thread,
            } => Self::Run {
                run_id,
                status,
                session_id,
                thread,
            },
            TenantChange::SessionPublished { session_id } => Self::SessionPublished { session_id },
            TenantChange::SessionRemoved { session_id } => Self::SessionRemoved { session_id },
            TenantChange::ThreadChanged { thread, session_id } => Self::ThreadChanged { thread, session_id },
            TenantChange::ThreadRemoved { thread } => Self::ThreadRemoved { thread },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use values::ids::UuidV7Source;

    #[test]
    fn an_event_has_the_same_name_in_both_lines() {
        let (run_id, session_id) = (RunId::generate(&UuidV7Source), SessionId::generate(&UuidV7Source));
        let thread: ThreadName = "t".parse().unwrap();
        let time = Timestamp::default();
        let status = RunStatus::Queued;
        for event in [
            ChangeView::Opened { time, started_at: time },
            ChangeView::Run {
                run_id,
                status,
                session_id: None,
                thread: Some(thread.clone()),
            },
            ChangeView::SessionPublished { session_id },
            ChangeView::SessionRemoved { session_id },
            ChangeView::ThreadChanged {
                thread: thread.clone(),
                session_id: Some(session_id),
            },
            ChangeView::ThreadRemoved { thread },
            ChangeView::Dropped { reason: "slow" },
        ] {
            let frame = frame(&event);
            let text = std::str::from_utf8(&frame).unwrap();
            let lines: Vec<_> = text.lines().collect();
            let data: Value = serde_json::from_str(lines[1].strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(lines[0], format!("event: {}", data["type"].as_str().unwrap()));
            assert!(lines.len() == 3 && data["data"].is_object(), "{text}");
        }
    }
}
