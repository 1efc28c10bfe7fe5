//! Changes the files of a session: all changes or none. The result is a child session. The files of
//! a thread are those of its session, and the commit of the child moves the thread.

use std::sync::Arc;

use bytes::Bytes;

use super::child::{Attempts, ChildSession, NewChild, Reserved, made_before, publish_child, reserve};
use super::open::{load_base, session_of_thread, tree_of};
use crate::run::context::RunContext;
use crate::run::refusal::Refusal;
use crate::run::request::RequestKey;
use agent::record::ThreadName;
use store::contents::TenantContents;
use store::sessions::ConflictPolicy;
use values::clock::nanoseconds;
use values::ids::SessionId;
use values::session::{EnvironmentState, Hash, WorkspaceState};
use values::tenant::TenantId;
use workspace::{Entry, FilePath, Tree, TreeError, find_file};

/// A request to change files.
#[derive(Debug, Clone)]
pub struct ChangeRequest {
    /// The files.
    pub target: ChangeTarget,
    /// The changes, in their order.
    pub changes: Vec<FileChange>,
    /// The effect of another session that continues the session.
    pub conflict: ConflictPolicy,
    /// The idempotency key of the request.
    pub idempotency: Option<RequestKey>,
}

/// The files that are changed.
#[derive(Debug, Clone)]
pub enum ChangeTarget {
    /// Those of a session.
    Session(SessionId),
    /// Those of the session to which a thread points. The thread moves to the child session.
    Thread(ThreadName),
}

/// A change of one path.
#[derive(Debug, Clone)]
pub enum FileChange {
    /// Writes a file.
    Put {
        /// The path.
        path: FilePath,
        /// The contents.
        source: FileSource,
        /// Whether the file may be executed; by default as before, or not.
        is_executable: Option<bool>,
    },
    /// Removes a file, a symlink, or a directory with everything in it.
    Delete {
        /// The path.
        path: FilePath,
    },
}

/// Where the contents of a file come from.
#[derive(Debug, Clone)]
pub enum FileSource {
    /// The request.
    Bytes(Bytes),
    /// A blob that is stored.
    Blob(Hash),
}

/// Publishes a child session with changed files.
pub async fn change_files(
    ctx: &RunContext,
    tenant: &TenantId,
    request: ChangeRequest,
) -> Result<ChildSession, Refusal> {
    let reserved = reserve(ctx, tenant, request.idempotency.as_ref()).await?;
    if let Some(earlier) = made_before(ctx, tenant, &reserved).await? {
        return Ok(earlier);
    }
    let mut attempts = Attempts::default();
    loop {
        let changed = change_once(ctx, tenant, &reserved, &request).await;
        if !attempts.again(&changed) {
            return changed;
        }
    }
}

/// Publishes the changed files. Fails if the thread moves meanwhile, for example since another
/// request changes its files at the same time.
async fn change_once(
    ctx: &RunContext,
    tenant: &TenantId,
    reserved: &Reserved,
    request: &ChangeRequest,
) -> Result<ChildSession, Refusal> {
    let (session_id, thread) = match &request.target {
        ChangeTarget::Session(session_id) => (*session_id, None),
        ChangeTarget::Thread(name) => (session_of_thread(ctx, tenant, name).await?, Some(name.clone())),
    };
    let base = load_base(ctx, tenant, session_id).await?;
    let mut tree = tree_of(ctx, tenant, &base.environment).at(nanoseconds(ctx.clock.now()));
    for (index, change) in request.changes.iter().enumerate() {
        tree = changed(ctx, tenant, &tree, index, change.clone()).await?;
    }
    let environment = with_files((*base.environment).clone(), &tree.save().await?);
    let child = NewChild {
        environment: Arc::new(environment),
        thread,
        conflict: request.conflict,
        ..NewChild::of(base)
    };
    publish_child(ctx, tenant, reserved, child).await
}

async fn changed(
    ctx: &RunContext,
    tenant: &TenantId,
    tree: &Tree,
    index: usize,
    change: FileChange,
) -> Result<Tree, Refusal> {
    let changed = match change {
        FileChange::Delete { path } => tree.without(&path).await,
        FileChange::Put {
            path,
            source,
            is_executable,
        } => {
            let is_executable = match is_executable {
                Some(is_executable) => is_executable,
                None => was_executable(tree, &path).await.map_err(change_fault(index))?,
            };
            match source {
                FileSource::Bytes(bytes) => tree.with_file(&path, bytes, is_executable).await,
                FileSource::Blob(hash) => {
                    let contents = TenantContents::new(tenant, Arc::clone(&ctx.store) as _);
                    let size = find_file(&*contents, hash).await.map_err(TreeError::from)?;
                    let size = size.ok_or(Refusal::UnknownBlob { index, hash })?;
                    let file = Entry::File {
                        hash,
                        size,
                        is_executable,
                        modified: nanoseconds(ctx.clock.now()),
                    };
                    with_stored(tree, &path, file).await
                }
            }
        }
    };
    changed.map_err(change_fault(index))
}

/// Returns the environment with other files.
pub(super) fn with_files(environment: EnvironmentState, saved: &Tree) -> EnvironmentState {
    let other = environment
        .workspace
        .map(|workspace| workspace.other)
        .unwrap_or_default();
    EnvironmentState {
        workspace: saved.hash().map(|tree| WorkspaceState { tree, other }),
        ..environment
    }
}

fn change_fault(index: usize) -> impl Fn(TreeError) -> Refusal {
    move |error| Refusal::FileChange { index, error }
}

/// Returns whether the file that a write replaces may be executed.
async fn was_executable(tree: &Tree, path: &FilePath) -> Result<bool, TreeError> {
    let real_path = tree.resolve(path).await?;
    let replaced = match &real_path {
        Some(real_path) => tree.entry(real_path).await?,
        None => None,
    };
    Ok(matches!(
        replaced,
        Some(Entry::File {
            is_executable: true,
            ..
        })
    ))
}

/// Puts a stored file at a path, and follows a symlink there as a write does.
async fn with_stored(tree: &Tree, path: &FilePath, file: Entry) -> Result<Tree, TreeError> {
    match tree.resolve(path).await? {
        Some(real_path) => tree.with_entry(&real_path, file).await,
        None => Err(TreeError::NotAFile { path: path.clone() }),
    }
}
