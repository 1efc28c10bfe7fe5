//! The body of `POST /v1/sessions/{session_id}/files`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::codes::ProblemCode;
use crate::http::json_body::decode_part;
use crate::http::problem::Problem;
use crate::run::RequestKey;
use crate::run::files::{ChangeRequest, ChangeTarget, FileChange, FileSource};
use store::sessions::ConflictPolicy;
use values::session::Hash;
use workspace::FilePath;

/// The most changes of a request.
const MAX_CHANGES: usize = 1_000;

/// Files to change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ChangeFiles {
    /// 1 to 1,000 changes, made in their order: all or none.
    #[schema(min_items = 1, max_items = 1000)]
    changes: Vec<ChangeFile>,
    /// The policy if another session continues the session already; by default `fork`.
    conflict: Option<ConflictPolicy>,
}

/// A change of one path: a file to write, or something to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ChangeFile {
    /// The path of the file to write, or of the entry to delete, relative to the root of the
    /// workspace.
    path: String,
    /// The content to write. Missing directories are made.
    #[schema(value_type = Option<FileContent>)]
    content: Option<Box<RawValue>>,
    /// Whether the file may be executed; by default as before, and `false` for a new file.
    executable: Option<bool>,
    /// Whether to delete the file, the symlink, or the directory with everything in it.
    delete: Option<bool>,
}

/// The content of a file: a text, or bytes.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes what `EncodedContent` and a text have together")]
pub(in crate::http) enum FileContent {
    /// A text, stored as UTF-8.
    Text(String),
    /// Bytes.
    Encoded(EncodedContent),
}

/// The bytes of a file, either in base64 or by their hash.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct EncodedContent {
    /// The bytes in base64.
    base64: Option<String>,
    /// The hash of contents that are stored.
    blob: Option<Hash>,
}

impl ChangeFiles {
    /// Checks the values, and makes a request from them.
    pub(super) fn into_request(self, target: ChangeTarget, key: Option<RequestKey>) -> Result<ChangeRequest, Problem> {
        let count = self.changes.len();
        if !(1..=MAX_CHANGES).contains(&count) {
            let words = format!("{count} changes, and 1 to {MAX_CHANGES} are allowed");
            return Err(Problem::invalid_field("/changes", words));
        }
        let changes = self.changes.into_iter().enumerate();
        let changes = changes.map(|(index, change)| change.into_change(&format!("/changes/{index}")));
        Ok(ChangeRequest {
            target,
            changes: changes.collect::<Result<_, _>>()?,
            conflict: self.conflict.unwrap_or_default(),
            idempotency: key,
        })
    }
}

impl ChangeFile {
    fn into_change(self, pointer: &str) -> Result<FileChange, Problem> {
        let path = FilePath::parse(&self.path);
        let path = path.map_err(|error| Problem::invalid_field(format!("{pointer}/path"), error.to_string()))?;
        match (self.content, self.delete.unwrap_or(false)) {
            (None, true) if self.executable.is_none() => Ok(FileChange::Delete { path }),
            (Some(content), false) => Ok(FileChange::Put {
                path,
                source: source_of(&content, &format!("{pointer}/content"))?,
                is_executable: self.executable,
            }),
            (None, false) => {
                let words = "neither `content` to write nor `\"delete\": true`";
                Err(Problem::of_field(ProblemCode::MissingField, pointer, words))
            }
            _ => Err(Problem::invalid_field(
                pointer,
                "what is deleted has neither `content` nor `executable`",
            )),
        }
    }
}

fn source_of(content: &RawValue, pointer: &str) -> Result<FileSource, Problem> {
    if content.get().starts_with('"') {
        let text = decode_part::<String>(content, pointer)?;
        return Ok(FileSource::Bytes(text.into()));
    }
    match decode_part::<EncodedContent>(content, pointer)? {
        EncodedContent {
            base64: Some(text),
            blob: None,
        } => {
            let bytes = STANDARD.decode(text);
            let bytes = bytes.map_err(|_| {
                let words = "not base64 of the standard alphabet, with its padding";
                Problem::invalid_field(format!("{pointer}/base64"), words)
            })?;
            Ok(FileSource::Bytes(Bytes::from(bytes)))
        }
        EncodedContent {
            base64: None,
            blob: Some(hash),
        } => Ok(FileSource::Blob(hash)),
        _ => Err(Problem::invalid_field(
            pointer,
            "not a text, and not one of `base64` and `blob`",
        )),
    }
}
