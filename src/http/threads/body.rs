//! The bodies of requests that write threads, checked for form.

use axum::http::HeaderMap;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::checks::check_metadata;
use crate::http::headers;
use crate::http::parameters::parse_id;
use crate::http::problem::Problem;
use crate::run::{NewName, NewThread, RequestKey};
use agent::record::ThreadName;
use store::threads::{MetadataChange, ThreadDetails, ThreadExpectation, ThreadPatch};
use values::ids::SessionId;
use values::json::Object;
use values::session::Setting;

/// The longest title, in characters.
const MAX_TITLE: usize = 256;

/// A new thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct CreateThread {
    /// The name; by default a new UUID.
    name: Option<ThreadName>,
    /// A title of 1 to 256 characters.
    #[schema(min_length = 1, max_length = 256)]
    title: Option<String>,
    /// Key-value pairs of the thread: at most 64 keys and 16 KiB. Its sessions do not get them.
    metadata: Option<Object>,
    /// The session that it points to; by default none until its first run has published one.
    #[schema(format = Uuid)]
    session_id: Option<String>,
}

/// The new session of a thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct PutThread {
    /// The session.
    #[schema(format = Uuid)]
    session_id: String,
    /// Where it must point now; null for a thread that points to no session yet. Absent, it may
    /// point anywhere.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Uuid)]
    expected_session_id: Expected,
}

/// Changes of a thread. Absent fields stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct PatchThread {
    /// The title, of 1 to 256 characters; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 256)]
    title: Setting<String>,
    /// Key-value pairs, merged into those of the thread, where null removes a key: together at most
    /// 64 keys and 16 KiB. Null removes all pairs.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Setting<Object>,
}

/// The session that a caller expects a thread to point to. Null differs from an absent field.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Option<String>")]
enum Expected {
    #[default]
    Anywhere,
    At(Option<String>),
}

impl From<Option<String>> for Expected {
    fn from(at: Option<String>) -> Self {
        Self::At(at)
    }
}

impl CreateThread {
    /// Checks the values, and makes a request from them.
    pub(super) fn into_thread(self, key: Option<RequestKey>) -> Result<NewThread, Problem> {
        self.title.as_deref().map_or(Ok(()), check_title)?;
        let metadata = self.metadata.unwrap_or_default();
        check_metadata(&metadata, "/metadata")?;
        let session_id = self.session_id.map(|text| parse_id("/session_id", &text));
        Ok(NewThread {
            name: self.name.map_or(NewName::Made(ThreadName::from), NewName::Given),
            details: ThreadDetails {
                title: self.title,
                metadata,
            },
            session_id: session_id.transpose()?,
            idempotency: key,
        })
    }
}

impl PutThread {
    /// Checks the values, and returns the new and the expected session.
    pub(super) fn into_parts(self, headers: &HeaderMap) -> Result<(SessionId, ThreadExpectation), Problem> {
        let name = "if-none-match";
        let is_new = match headers::single(headers, name)? {
            None => false,
            Some("*") => true,
            Some(_) => return Err(headers::invalid(name, "only `*`, for a thread that must not exist")),
        };
        let expected = match (is_new, self.expected_session_id) {
            (true, Expected::Anywhere) => ThreadExpectation::Absent,
            (true, Expected::At(_)) => {
                return Err(headers::invalid(
                    name,
                    "a thread that must not exist can't point anywhere: leave `expected_session_id` out",
                ));
            }
            (false, Expected::Anywhere) => ThreadExpectation::Anything,
            (false, Expected::At(at)) => {
                let at = at.map(|text| parse_id("/expected_session_id", &text));
                ThreadExpectation::At(at.transpose()?)
            }
        };
        Ok((parse_id("/session_id", &self.session_id)?, expected))
    }
}

impl PatchThread {
    /// Checks the values, and returns the changes.
    pub(super) fn into_patch(self) -> Result<ThreadPatch, Problem> {
        self.title.value().map_or(Ok(()), |title| check_title(title))?;
        Ok(ThreadPatch {
            title: self.title,
            metadata: match self.metadata {
                Setting::Kept => None,
                Setting::Cleared => Some(MetadataChange::Replace(Object::new())),
                Setting::Set(pairs) => Some(MetadataChange::Merge(pairs)),
            },
        })
    }
}

fn check_title(title: &str) -> Result<(), Problem> {
    if (1..=MAX_TITLE).contains(&title.chars().count()) {
        Ok(())
    } else {
        Err(Problem::invalid_field(
            "/title",
            format!("not 1 to {MAX_TITLE} characters"),
        ))
    }
}
