//! Turns errors about the files of a session into problems. Causes go to the log.

use super::codes::ProblemCode;
use super::conflicts::Conflict;
use super::problem::Problem;
use crate::run::refusal::EnvironmentConflict;
use store::StoreError;
use values::session::Hash;
use workspace::{ContentsError, TreeError};

/// The most conflicts in a problem.
const MAX_CONFLICTS: usize = 1_000;

/// Makes the problem of files that a request names by their path.
pub(super) fn tree_problem(error: TreeError) -> Problem {
    let words = error.to_string();
    match error {
        TreeError::NotFound { .. }
        | TreeError::NotAFile { .. }
        | TreeError::NotADirectory { .. }
        | TreeError::SymlinkLoop { .. }
        | TreeError::UnsafeSymlink { .. } => Problem::new(ProblemCode::FileNotFound, words),
        TreeError::FileTooLarge { .. } | TreeError::TooManyFiles { .. } | TreeError::TooLarge { .. } => {
            Problem::new(ProblemCode::WorkspaceTooLarge, words)
        }
        TreeError::Path(error) => Problem::of_field(ProblemCode::InvalidPath, "path", error.to_string()),
        TreeError::NotSaved { .. } => Problem::internal(error),
        TreeError::Contents(error) => contents_problem(error),
    }
}

/// Makes the problem of one change in a list of changes.
pub(super) fn change_problem(index: usize, error: TreeError) -> Problem {
    let words = match &error {
        TreeError::Path(error) => error.to_string(),
        error => error.to_string(),
    };
    match error {
        TreeError::FileTooLarge { .. } | TreeError::TooManyFiles { .. } | TreeError::TooLarge { .. } => {
            let pointer = format!("/changes/{index}");
            Problem::of_field(ProblemCode::WorkspaceTooLarge, pointer, words)
        }
        TreeError::Contents(error) => contents_problem(error),
        TreeError::NotSaved { .. } => Problem::internal(error),
        _ => Problem::invalid_field(format!("/changes/{index}/path"), words),
    }
}

/// Makes the problem of a change that names contents that are not stored.
pub(super) fn unknown_blob(index: usize, hash: Hash) -> Problem {
    let words = format!("there is no blob {hash}; upload it first");
    let pointer = format!("/changes/{index}/content/blob");
    Problem::of_field(ProblemCode::UnknownBlob, pointer, words)
}

/// Makes the problem of a merge that is not possible.
pub(super) fn merge_conflict(conflicts: Vec<EnvironmentConflict>, detail: String) -> Problem {
    let conflicts = conflicts.into_iter().take(MAX_CONFLICTS).map(Conflict::from);
    Problem::new(ProblemCode::MergeConflict, detail).with_conflicts(conflicts.collect())
}

fn contents_problem(error: ContentsError) -> Problem {
    match error {
        ContentsError::Full { .. } => Problem::new(ProblemCode::StorageQuotaExceeded, error.to_string()),
        ContentsError::Unavailable(cause) => match cause.downcast::<StoreError>() {
            Ok(error) => (*error).into(),
            Err(cause) => Problem::internal(cause),
        },
        error => Problem::internal(error),
    }
}
