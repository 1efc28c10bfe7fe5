//! `GET /v1/sessions/{session_id}/archive`: all files of a session in one.
//!
//! The archive is made while it is sent. One file is in memory at a time. Equal files make equal
//! archives: the entries are in order, and their times and owners are always the same.

mod format;
mod tar;
mod zip;

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;

use self::format::{ArchiveFormat, Writer};
use super::download::protect;
use super::view::FileBytes;
use crate::http::auth::Call;
use crate::http::file_problems::tree_problem;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use crate::run::files::open_files;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::causes::with_causes;
use values::ids::SessionId;
use workspace::{Entry, FilePath, Totals, Tree, TreeError};

/// About how many bytes are sent at once, unless a file has more.
const CHUNK_BYTES: usize = 64 << 10;
/// The memory of the archive's own state: windows and buffers of the compression.
const STATE: u64 = 4 << 20;
/// About the memory of an entry: its name in the tree, in the list, and in the archive's index.
const ENTRY: u64 = 768;

/// Streams all files of a session as one archive.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/archive", tag = "files", params(
    ("session_id" = uuid::Uuid, Path),
    ("format" = Option<String>, Query, pattern = "^(tar\\.zst|zip)$", description = "`tar.zst`, the default, or `zip`"),
), responses(
    (status = 200, description = "The archive", content((FileBytes = "application/zstd"), (FileBytes = "application/zip"))),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn get_archive(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<Response, Problem> {
    let format = query.parsed::<ArchiveFormat>("format")?.unwrap_or_default();
    query.finish()?;
    let session_id = path.id("session_id")?;
    let archive = Archive::open(&call, session_id, format).await?;
    let mut headers = HeaderMap::new();
    protect(&mut headers, &format!("{session_id}.{}", format.extension()));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Ok((headers, archive.into_body()).into_response())
}

/// An archive that is being sent.
struct Archive {
    call: Call,
    session_id: SessionId,
    tree: Tree,
    entries: std::vec::IntoIter<(FilePath, Entry)>,
    /// `None` after the end.
    writer: Option<Writer>,
    _share: Share,
}

impl Archive {
    /// Lists the files. Takes room for the list and for the largest file at once, so that the
    /// archive never waits for room.
    async fn open(call: &Call, session_id: SessionId, format: ArchiveFormat) -> Result<Self, Problem> {
        let runs = &call.api.runs;
        let tree = open_files(runs, &call.tenant, session_id).await?;
        let totals = tree.totals().await.map_err(tree_problem)?;
        let largest = totals.bytes.min(runs.workspace.file_bytes);
        let room = call.api.in_flight.take_soon(&call.tenant, cost(totals, largest));
        let mut share = room.await?;
        let entries = tree.walk(None).await.map_err(tree_problem)?;
        // The limit may have been higher when the files were written.
        let largest = entries
            .iter()
            .map(|(_, entry)| size_of(entry))
            .max()
            .unwrap_or_default();
        share.set(cost(totals, largest));
        Ok(Self {
            call: call.clone(),
            session_id,
            tree,
            entries: entries.into_iter(),
            writer: Some(Writer::new(format).map_err(Problem::internal)?),
            _share: share,
        })
    }

    fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut archive| async {
            let chunk = archive.chunk().await.inspect_err(|error| {
                archive.writer = None;
                // The status is sent already. The connection is cut, so that the reader notices
                // that files are missing.
                let session_id = archive.session_id;
                tracing::error!(%session_id, error = error.to_string(), "an archive can't be sent to its end");
            });
            chunk.transpose().map(|chunk| (chunk, archive))
        }))
    }

    /// Makes the next bytes; `None` at the end.
    async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(None);
        };
        for (path, entry) in self.entries.by_ref() {
            let bytes = self.tree.read_entry(&entry).await.map_err(|error| unreadable(&error))?;
            let size = bytes.len() as u64;
            let add = move || writer.add(&path, &entry, &bytes).map(|()| writer);
            writer = by_size(&self.call.tenant, size, add).await?;
            if writer.written() >= CHUNK_BYTES {
                let chunk = writer.take();
                self.writer = Some(writer);
                return Ok(Some(chunk.into()));
            }
        }
        writer.finish().map(|rest| Some(rest.into()))
    }
}

/// Returns the memory that an archive takes. A file is in memory as it was read and as it is
/// written.
fn cost(totals: Totals, largest: u64) -> usize {
    let bytes = totals.entries().saturating_mul(ENTRY).saturating_add(STATE);
    usize::try_from(bytes.saturating_add(largest.saturating_mul(2))).unwrap_or(usize::MAX)
}

fn size_of(entry: &Entry) -> u64 {
    match entry {
        Entry::File { size, .. } => *size,
        Entry::Symlink { .. } | Entry::Directory { .. } => 0,
    }
}

fn unreadable(error: &TreeError) -> io::Error {
    io::Error::other(with_causes(error))
}
