//! `PUT /v1/blobs/{hash}`: the contents of a file, ahead of the session that will have it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::FileBytes;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::json_body::read_bytes;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::state::Api;
use crate::run::files::store_blob;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::session::{Hash, hash_content};

/// How often a byte of the body is in memory: as it was received, and as it is compressed.
const COPIES: u64 = 2;

/// Contents of a file that are stored.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Blob {
    /// The BLAKE3 of the bytes.
    hash: Hash,
    /// The number of bytes.
    size: u64,
}

/// The bytes of a body, with their room.
pub(in crate::http) struct FileBody {
    bytes: Bytes,
    _room: Share,
}

impl FromRequest<Arc<Api>> for FileBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let limit = api.runs.workspace.file_bytes;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (bytes, room) = read_bytes(request, api, limit, COPIES).await?.into_parts();
        Ok(Self {
            bytes: bytes.into(),
            _room: room,
        })
    }
}

/// Stores the contents of a file, which a change of files can name by their hash. Contents that no
/// session has are removed after some time.
#[utoipa::path(put, path = "/v1/blobs/{hash}", tag = "files", params(
    ("hash" = Hash, Path, description = "The BLAKE3 of the body"),
), request_body(content = FileBytes, content_type = "application/octet-stream"), responses(
    (status = 200, description = "The contents were stored before", body = Blob),
    (status = 201, description = "The contents are stored", body = Blob),
), extensions(("x-problems" = json!([ProblemCode::HashMismatch, ProblemCode::StorageQuotaExceeded]))))]
pub(in crate::http) async fn put_blob(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    body: FileBody,
) -> Result<Response, Problem> {
    query.finish()?;
    let hash = parse_hash(path.text("hash"))?;
    let (copy, size) = (body.bytes.clone(), body.bytes.len() as u64);
    let actual = by_size(&call.tenant, size, move || hash_content(&copy)).await;
    if actual != hash {
        let words = format!("the body has the hash {actual}");
        return Err(Problem::new(ProblemCode::HashMismatch, words));
    }
    let stored = store_blob(&call.api.runs, &call.tenant, hash, body.bytes.clone()).await?;
    let status = if stored.is_known {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((
        status,
        Json(Blob {
            hash,
            size: stored.size,
        }),
    )
        .into_response())
}

fn parse_hash(text: &str) -> Result<Hash, Problem> {
    let hash = text.parse::<Hash>();
    hash.map_err(|error| Problem::of_field(ProblemCode::MalformedId, "hash", error.to_string()))
}
