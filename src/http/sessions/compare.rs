//! Compares a session with another one, and with its own hashes.

use axum::Json;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::files::view::FileChange;
use super::stream::{Page, PageReader};
use super::view::found;
use crate::http::auth::Call;
use crate::http::file_problems::tree_problem;
use crate::http::in_flight::{reading, respond_with};
use crate::http::paging::PAGE_BYTES;
use crate::http::parameters::{NoParameters, PathParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use crate::run::files::{FilesDiff, diff_files, tree_of};
use store::sessions::VerifyReport;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::ids::SessionId;
use values::json::{count_reaching, json_length};
use values::session::{Bundle, BundleDiff, StatesDiff, diff_bundles, diff_states};

/// How a session, the left one, differs from another.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionDiff {
    /// The session in the path.
    left_session_id: SessionId,
    /// The other session.
    right_session_id: SessionId,
    /// The differences.
    #[serde(flatten)]
    diff: BundleDiff,
    /// Files that differ, by path: at most 1000.
    files: Vec<FileChange>,
    /// Whether these are all differences. A list that is too long ends with the item that reaches 1
    /// MiB.
    complete: bool,
}

/// The result of the verification of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Verification {
    /// The session.
    session_id: SessionId,
    /// Whether all parts match their hashes.
    valid: bool,
    /// The checks, and the faults that they found.
    #[serde(flatten)]
    report: VerifyReport,
}

impl SessionDiff {
    /// Compares two bundles that hold all of their messages, however many differences there are.
    /// `files` are the differences of their files.
    pub fn whole(left: &Bundle, right: &Bundle, files: FilesDiff) -> Result<Self, serde_json::Error> {
        Ok(Self {
            left_session_id: left.head.session_id,
            right_session_id: right.head.session_id,
            diff: diff_bundles(left, right)?,
            complete: files.is_complete,
            files: files.changes.into_iter().map(FileChange::from).collect(),
        })
    }
}

/// The memory to compare files: two versions of a file, the differences so far and their JSON.
const FILES_ROOM: usize = 8 << 20;

/// Compares two sessions: messages, context, environment and files. Each list ends with the item
/// that reaches 1 MiB.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/diff/{other}", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("other" = uuid::Uuid, Path),
), responses(
    (status = 200, description = "Where the sessions differ", body = SessionDiff),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn diff_sessions(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<Response, Problem> {
    let (left_session_id, right_session_id) = (path.id("session_id")?, path.id("other")?);
    let pair = Pair {
        call: &call,
        sessions: [left_session_id, right_session_id],
    };
    let (compared, share) = pair.compare().await?;
    let Compared {
        shared,
        pages: [left, right],
        mut states,
        files,
    } = compared;
    let bytes = share.amount() as u64;
    let diff = by_size(&call.tenant, bytes, move || {
        let [left, right] = [left, right].map(Page::cut);
        let is_cut = [cut(&mut states.context), cut(&mut states.environment)];
        let is_complete = files.is_complete;
        let mut files = files.changes.into_iter().map(FileChange::from).collect();
        let all_files = is_complete && !cut(&mut files);
        SessionDiff {
            left_session_id,
            right_session_id,
            files,
            complete: left.is_last() && right.is_last() && is_cut == [false, false] && all_files,
            diff: BundleDiff {
                shared_messages: shared,
                left_messages: left.messages,
                right_messages: right.messages,
                context: states.context,
                environment: states.environment,
            },
        }
    });
    respond_with(share, diff.await).await
}

/// Two sessions to compare. At most one page of each is read at a time.
struct Pair<'a> {
    call: &'a Call,
    sessions: [SessionId; 2],
}

/// The result of comparing two histories.
struct Compared {
    /// The number of messages that both begin with.
    shared: u64,
    /// The messages after these, of each session.
    pages: [Page; 2],
    states: StatesDiff,
    files: FilesDiff,
}

impl Pair<'_> {
    /// Reads pages until the messages differ. Returns the share of the last pages.
    async fn compare(&self) -> Result<(Compared, Share), Problem> {
        let store = &self.call.api.runs.store;
        let [left, right] = self.sessions;
        let states =
            store.states_size(&self.call.tenant, left).await? + store.states_size(&self.call.tenant, right).await?;
        let mut shared = self.shared_segments().await?;
        loop {
            let (pages, share) = self.pages(shared, reading(states).saturating_add(FILES_ROOM)).await?;
            let bytes = pages.iter().map(|page| page.bytes as u64).sum();
            let count = move || (shared_messages(&pages), pages);
            let (same, pages) = by_size(&self.call.tenant, bytes, count).await;
            if same == 0 {
                let (states, files) = self.states(states).await?;
                let compared = Compared {
                    shared,
                    pages,
                    states,
                    files,
                };
                return Ok((compared, share));
            }
            shared += same;
        }
    }

    /// Counts the messages of the stored segments that both begin with, without reading them.
    async fn shared_segments(&self) -> Result<u64, Problem> {
        let store = &self.call.api.runs.store;
        let [left_id, right_id] = self.sessions;
        let mut shared = 0;
        loop {
            let left = store.segment_list(&self.call.tenant, left_id, shared, u32::MAX).await?;
            let right = store
                .segment_list(&self.call.tenant, right_id, shared, u32::MAX)
                .await?;
            let (Some(left), Some(right)) = (left, right) else {
                return Ok(shared);
            };
            let same = left
                .segments
                .iter()
                .zip(&right.segments)
                .take_while(|(left, right)| left.position == right.position);
            match same.last().map(|(segment, _)| segment.end()) {
                Some(end) if end > shared => shared = end,
                _ => return Ok(shared),
            }
        }
    }

    /// Reads a page of each session. Takes the room for both pages and the extra bytes at once, so
    /// that a waiting request holds none.
    async fn pages(&self, from: u64, more: usize) -> Result<([Page; 2], Share), Problem> {
        let [mut left, mut right] = self.sessions.map(|id| PageReader::new(self.call, id));
        let left_plan = self.found(0, left.plan(from, u32::MAX).await?).await?;
        let right_plan = self.found(1, right.plan(from, u32::MAX).await?).await?;
        let cost = more.saturating_add(left_plan.cost).saturating_add(right_plan.cost);
        let share = self.call.api.in_flight.take_soon(&self.call.tenant, cost).await?;
        let left = self.found(0, left.load(left_plan).await?).await?;
        let right = self.found(1, right.load(right_plan).await?).await?;
        Ok(([left, right], share))
    }

    /// Compares the states, which have `bytes` bytes together, and the files.
    async fn states(&self, bytes: u64) -> Result<(StatesDiff, FilesDiff), Problem> {
        let store = &self.call.api.runs.store;
        let [left, right] = self.sessions;
        let left = self.found(0, store.states_load(&self.call.tenant, left).await?).await?;
        let right = self
            .found(1, store.states_load(&self.call.tenant, right).await?)
            .await?;
        let runs = &self.call.api.runs;
        let trees = [&left, &right].map(|bundle| tree_of(runs, &self.call.tenant, &bundle.environment));
        let files = diff_files(&self.call.tenant, &trees[0], &trees[1])
            .await
            .map_err(tree_problem)?;
        let diff = by_size(&self.call.tenant, bytes, move || diff_states(&left, &right)).await;
        Ok((diff.map_err(Problem::internal)?, files))
    }

    async fn found<T>(&self, index: usize, read: Option<T>) -> Result<T, Problem> {
        found(self.call, self.sessions[index], read).await
    }
}

/// Counts the messages that both pages begin with.
fn shared_messages([left, right]: &[Page; 2]) -> u64 {
    let pairs = left.messages.iter().zip(&right.messages);
    pairs.take_while(|(left, right)| left == right).count() as u64
}

/// Truncates the changes to the bytes of a page. Returns whether there were more.
fn cut<T: Serialize>(changes: &mut Vec<T>) -> bool {
    let all = changes.len();
    let fitting = count_reaching(PAGE_BYTES, changes.iter().map(json_length));
    changes.truncate(fitting);
    fitting < all
}

/// Computes all hashes of a session and its ancestors again.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/verify", tag = "sessions", params(("session_id" = uuid::Uuid, Path)), responses(
    (status = 200, description = "The checks, and the faults that they found", body = Verification),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn verify_session(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<Json<Verification>, Problem> {
    let session_id = path.id("session_id")?;
    let report = call.api.runs.store.session_verify(&call.tenant, session_id).await?;
    let report = found(&call, session_id, report).await?;
    Ok(Json(Verification {
        session_id,
        valid: report.faults.is_empty(),
        report,
    }))
}
