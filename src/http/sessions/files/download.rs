//! `GET /v1/sessions/{session_id}/files/{path}`: the bytes of a file, also of a thread's.
//!
//! Anybody may have written the file, so a browser must neither run nor show it. It is always an
//! attachment.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::media_types::media_type;
use super::range::{ByteRange, Wanted};
use super::view::FileBytes;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::file_problems::tree_problem;
use crate::http::in_flight::held;
use crate::http::parameters::{NoParameters, PathParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use crate::http::sessions::etag;
use crate::run::files::open_files;
use values::ids::SessionId;
use values::session::Hash;
use workspace::{Entry, FilePath, Tree, TreeError};

/// The policy for a browser that shows a file in spite of the other headers: it loads nothing and
/// runs nothing.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");

/// The characters of a file name that a header has literally (RFC 8187).
const LITERAL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Reads a file of a session. The answer is an attachment with the media type of the file's name.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/files/{path}", tag = "files", params(
    ("session_id" = uuid::Uuid, Path),
    ("path" = String, Path, description = "The path of the file; the `/` between names may stay as they are"),
    ("If-None-Match" = Option<String>, Header),
    ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-99`; several are answered with the whole file"),
    ("If-Range" = Option<String>, Header, description = "The `ETag` that the file must have for the range to apply"),
), responses(
    (status = 200, description = "The file", body = FileBytes, content_type = "application/octet-stream", headers(("ETag" = String, description = "The BLAKE3 of the file, quoted"))),
    (status = 206, description = "The wanted bytes of the file", body = FileBytes, content_type = "application/octet-stream", headers(("Content-Range" = String, description = "Which bytes these are, and the size of the file"))),
    (status = 304, description = "The caller has it"),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, [ProblemCode::FileNotFound, ProblemCode::RangeNotSatisfiable]]))))]
pub(in crate::http) async fn get_file(
    call: Call,
    path: PathParameters,
    _: NoParameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    respond_file(&call, path.id("session_id")?, path.text("path"), &headers).await
}

/// Responds with a file of a session, or with the part of it that the headers want.
pub(in crate::http) async fn respond_file(
    call: &Call,
    session_id: SessionId,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let path = FilePath::parse(path).map_err(|error| tree_problem(error.into()))?;
    let file = StoredFile::find(call, session_id, path).await?;
    if etag::caller_has(headers, file.hash) {
        return Ok((StatusCode::NOT_MODIFIED, etag::headers(file.hash)).into_response());
    }
    match ByteRange::wanted(headers, file.hash, file.size) {
        Wanted::All => file.send(call, None).await,
        Wanted::Part(range) => file.send(call, Some(range)).await,
        Wanted::Nothing => Ok(file.out_of_range()),
    }
}

/// A file of a session.
struct StoredFile {
    tree: Tree,
    path: FilePath,
    entry: Entry,
    hash: Hash,
    size: u64,
}

impl StoredFile {
    async fn find(call: &Call, session_id: SessionId, path: FilePath) -> Result<Self, Problem> {
        let tree = open_files(&call.api.runs, &call.tenant, session_id).await?;
        let entry = file_entry(&tree, &path).await.map_err(tree_problem)?;
        match entry {
            Entry::File { hash, size, .. } => Ok(Self {
                tree,
                path,
                entry,
                hash,
                size,
            }),
            _ => Err(tree_problem(TreeError::NotAFile { path })),
        }
    }

    /// Reads the file and responds with it, or with a part of it. A large file is assembled from
    /// its chunks, so reading takes its size twice.
    async fn send(&self, call: &Call, range: Option<ByteRange>) -> Result<Response, Problem> {
        let room = usize::try_from(self.size.saturating_mul(2)).unwrap_or(usize::MAX);
        let mut share = call.api.in_flight.take_soon(&call.tenant, room).await?;
        let bytes = self.tree.read_entry(&self.entry).await.map_err(tree_problem)?;
        let bytes = match &range {
            None => bytes,
            // A slice would hold the whole file.
            Some(range) => Bytes::copy_from_slice(range.of(&bytes)),
        };
        share.set(bytes.len());
        let length = bytes.len();
        let mut headers = self.headers();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        let mut status = StatusCode::OK;
        if let Some(range) = range {
            status = StatusCode::PARTIAL_CONTENT;
            let words = range.content_range(self.size);
            headers.insert(
                header::CONTENT_RANGE,
                HeaderValue::try_from(words).map_err(Problem::internal)?,
            );
        }
        Ok((status, headers, Body::from(held(bytes, share))).into_response())
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = etag::headers(self.hash);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(media_type(self.path.name())),
        );
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        protect(&mut headers, self.path.name());
        headers
    }

    /// Responds to a range after the end of the file.
    fn out_of_range(&self) -> Response {
        let words = format!("the file has {} bytes", self.size);
        let mut response = Problem::new(ProblemCode::RangeNotSatisfiable, words).into_response();
        if let Ok(range) = HeaderValue::try_from(format!("bytes */{}", self.size)) {
            response.headers_mut().insert(header::CONTENT_RANGE, range);
        }
        response
    }
}

/// Returns the entry to which a path leads.
pub(in crate::http) async fn file_entry(tree: &Tree, path: &FilePath) -> Result<Entry, TreeError> {
    let Some(real_path) = tree.resolve(path).await? else {
        return Err(TreeError::NotAFile { path: path.clone() });
    };
    let entry = tree.entry(&real_path).await?;
    entry.ok_or_else(|| TreeError::NotFound { path: path.clone() })
}

/// Adds the headers that keep a browser from running or showing content of others.
pub(super) fn protect(headers: &mut HeaderMap, file_name: &str) {
    // Windows takes `\` for the end of a directory.
    let name = file_name.replace('\\', "_");
    let name = utf8_percent_encode(&name, LITERAL);
    let disposition = HeaderValue::try_from(format!("attachment; filename*=UTF-8''{name}"));
    let disposition = disposition.unwrap_or_else(|_| HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_DISPOSITION, disposition);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
}
