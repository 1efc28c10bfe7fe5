//! `GET /v1/sessions/{session_id}/files`, also for the files of a thread.

use axum::response::Response;

use super::view::FileEntry;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::file_problems::tree_problem;
use crate::http::in_flight::respond_with;
use crate::http::paging::{ListPage, PAGE_BYTES, Paging};
use crate::http::parameters::{PathParameters, QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use crate::run::files::{list_after, open_files};
use values::ids::SessionId;
use workspace::{Entry, FilePath, Totals, Tree, TreeError};

/// A page of files.
pub(in crate::http) type Files = ListPage<FileEntry>;

/// About the memory of a name of a directory that is loaded, in bytes.
const NAME: u64 = 256;

/// Lists the files of a session by name.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/files", tag = "files", params(
    ("session_id" = uuid::Uuid, Path),
    ("path" = Option<String>, Query, description = "The directory to list; by default the root"),
    ("recursive" = Option<bool>, Query, description = "Also lists what is in the directories below; by default false"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of files", body = Files),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, [ProblemCode::FileNotFound]]))))]
pub(in crate::http) async fn list_files(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    let range = FileRange::take(query)?;
    range.respond(&call, path.id("session_id")?).await
}

/// The files of a directory that a request lists.
pub(in crate::http) struct FileRange {
    /// The directory; `None` means the root.
    directory: Option<FilePath>,
    is_recursive: bool,
    page: Paging<FilePath>,
}

impl FileRange {
    /// Takes `path`, `recursive`, `limit` and `cursor`.
    pub(in crate::http) fn take(mut query: QueryParameters) -> Result<Self, Problem> {
        Ok(Self {
            directory: take_directory(&mut query)?,
            is_recursive: query.parsed("recursive")?.unwrap_or(false),
            page: Paging::take(query)?,
        })
    }

    /// Responds with these files of a session.
    pub(in crate::http) async fn respond(&self, call: &Call, session_id: SessionId) -> Result<Response, Problem> {
        let (directory, page) = (self.directory.as_ref(), &self.page);
        let tree = open_files(&call.api.runs, &call.tenant, session_id).await?;
        let room = directory_room(&tree, directory).await.map_err(tree_problem)?;
        let share = call.api.in_flight.take_soon(&call.tenant, room).await?;
        let count = page.limit as usize + 1;
        let found = list_after(&tree, directory, self.is_recursive, page.after.as_ref(), count).await;
        let found = found.map_err(tree_problem)?;
        let view = |(path, entry)| FileEntry::new(path, entry);
        let list = Files::new(found, page.limit, |(path, _)| path.clone(), view);
        respond_with(share, list).await
    }
}

/// Takes the parameter `path`; `None` means the root.
fn take_directory(query: &mut QueryParameters) -> Result<Option<FilePath>, Problem> {
    let text = query.text("path")?.filter(|text| !text.is_empty());
    let parse = |text: String| FilePath::parse(&text).map_err(|error| invalid("path", error.to_string()));
    text.map(parse).transpose()
}

/// Returns the memory to list a page of a directory, in bytes.
pub(in crate::http) async fn directory_room(tree: &Tree, directory: Option<&FilePath>) -> Result<usize, TreeError> {
    let names = totals(tree, directory).await?.entries();
    let room = usize::try_from(names.saturating_mul(NAME)).unwrap_or(usize::MAX);
    Ok(room.saturating_add(PAGE_BYTES))
}

/// Returns how much is in a directory.
async fn totals(tree: &Tree, directory: Option<&FilePath>) -> Result<Totals, TreeError> {
    let Some(path) = directory else {
        return tree.totals().await;
    };
    let real_path = tree.resolve(path).await?;
    match &real_path {
        None => tree.totals().await,
        Some(real_path) => match tree.entry(real_path).await? {
            Some(Entry::Directory { totals, .. }) => Ok(totals),
            Some(_) => Err(TreeError::NotADirectory { path: path.clone() }),
            None => Err(TreeError::NotFound { path: path.clone() }),
        },
    }
}
