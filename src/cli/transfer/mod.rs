//! `sessions export` and `sessions import`: a line of sessions as one file.
//!
//! The file is zstd around lines of JSON. The first line names the format, the last one has counts,
//! so a file that was cut is noticed. In between come the sessions, each after its parent, after
//! the contents of its files, and after the record of its run. Sessions of subagents come after the
//! line itself, and the definitions of agents before it. Sessions keep their ids and hashes.

mod agent;
mod content;
mod export;
mod import;
mod lines;
mod output;

use serde::{Deserialize, Serialize};

use self::agent::PortableAgent;
use self::content::PortableContent;
pub(super) use self::export::{ExportArgs, export};
pub(super) use self::import::{ImportArgs, import};
use ::agent::record::{RunRecord, StepRecord};
use store::portable::PortableSession;
use values::ids::SessionId;

/// The version of the format.
const VERSION: u32 = 1;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// The first line.
    AgentRuntimeSessions(Header),
    /// The definition of an agent.
    Agent(Box<PortableAgent>),
    /// A content of the files of a session below.
    Content(PortableContent),
    /// The run that published the session below.
    Run(Box<PortableRun>),
    /// A session.
    Session(Box<PortableSession>),
    /// The last line.
    End(Counts),
}

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    /// The session whose line it is.
    session_id: SessionId,
}

/// The record of a run, with its steps.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortableRun {
    record: RunRecord,
    steps: Vec<StepRecord>,
}

/// How much the file has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    agents: u64,
    runs: u64,
    sessions: u64,
    contents: u64,
}
