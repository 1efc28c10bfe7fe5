//! Threads: named, mutable pointers to sessions.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use values::clock::Timestamp;
use values::ids::SessionId;
use values::json::Object;

/// The longest name of a thread, in bytes.
const MAX_LENGTH: usize = 128;

/// Names a thread of a tenant: 1 to 128 letters, digits, `-`, `_`, `.`, `:` and `@`, but neither
/// `.` nor `..`, which no address can hold.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._:@-]{1,128}$")]
pub struct ThreadName(Arc<str>);

/// A text that can't name a thread.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a thread's name has 1 to 128 letters, digits, `-`, `_`, `.`, `:` and `@`, and is neither `.` nor `..`")]
pub struct ParseThreadNameError;

/// A thread: a named pointer to a session.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Thread)]
pub struct ThreadRecord {
    /// The name of the thread.
    pub name: ThreadName,
    /// The title of the conversation.
    pub title: Option<String>,
    /// The key-value pairs of the thread. They are not those of its sessions.
    pub metadata: Object,
    /// The session that the thread points to; null until its first run has published one.
    pub session_id: Option<SessionId>,
    /// The agent of that session.
    pub agent: Option<String>,
    /// The number of messages of that session.
    pub message_count: u64,
    /// How many runs have moved the thread to their session.
    pub run_count: u64,
    /// How many times the thread was moved. To make a move conditional, use `expected_session_id`.
    pub version: u64,
    /// When the thread was created.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub created_at: Timestamp,
    /// When the thread was last moved, or its title or metadata changed.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub updated_at: Timestamp,
}

impl ThreadName {
    /// Makes the name of a conversation that a client of OpenAI's API creates.
    pub fn of_conversation(uuid: Uuid) -> Self {
        Self(Arc::from(format!("conv_{}", uuid.simple())))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Uuid> for ThreadName {
    fn from(uuid: Uuid) -> Self {
        Self(Arc::from(uuid.to_string()))
    }
}

impl FromStr for ThreadName {
    type Err = ParseThreadNameError;

    fn from_str(text: &str) -> Result<Self, ParseThreadNameError> {
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b':' | b'@');
        let valid = (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed);
        // Clients treat these two as relative path segments, even if they are escaped.
        if valid && !matches!(text, "." | "..") {
            Ok(Self(Arc::from(text)))
        } else {
            Err(ParseThreadNameError)
        }
    }
}

impl TryFrom<String> for ThreadName {
    type Error = ParseThreadNameError;

    fn try_from(text: String) -> Result<Self, ParseThreadNameError> {
        text.parse()
    }
}

impl From<ThreadName> for String {
    fn from(name: ThreadName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadName({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_an_address_can_hold() {
        for name in ["a", "...", ".a", "a.", "-", "A:b@c_d-9.", &"x".repeat(MAX_LENGTH)] {
            assert_eq!(name.parse::<ThreadName>().as_ref().map(ThreadName::as_str), Ok(name));
        }
        for name in ["", ".", "..", "a b", "a/b", "%2e", "café", &"x".repeat(MAX_LENGTH + 1)] {
            assert_eq!(name.parse::<ThreadName>(), Err(ParseThreadNameError), "{name}");
        }
    }
}
