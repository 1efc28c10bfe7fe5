//! `sessions export` and `sessions import`: a line of sessions as one file.
//!
//! The file is zstd around lines of JSON. The first line names the format, the last one has counts,
//! so a file that was cut is noticed. In between come the sessions, each after its parent and after
//! the contents of its files. Sessions keep their ids and hashes.

mod content;
mod export;
mod import;

use serde::{Deserialize, Serialize};

use self::content::PortableContent;
pub(super) use self::export::{ExportArgs, export};
pub(super) use self::import::{ImportArgs, import};
use crate::ids::SessionId;
use crate::store::PortableSession;

/// The version of the format.
const VERSION: u32 = 2;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// The first line.
    AgentRuntimeSessions(Header),
    /// A content of the files of a session below.
    Content(PortableContent),
    /// A session.
    Session(Box<PortableSession>),
    /// The last line.
    End(Counts),
}

/// What the file is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    /// The session whose line it is.
    session_id: SessionId,
}

/// How much the file has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    sessions: u64,
    contents: u64,
}
