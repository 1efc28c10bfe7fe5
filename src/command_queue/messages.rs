//! The texts that a replica and a worker exchange: JSON. Unknown keys are ignored, so both may have
//! different versions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use sandbox::Exit;
use values::clock::Timestamp;
use values::session::{Hash, ShellState};
use values::trace_context::TraceContext;

/// A command to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// The command line.
    pub(super) command: String,
    /// The line of sessions that the run continues.
    #[serde(default)]
    pub(super) line: String,
    /// The hash of the stored files; absent if there are none.
    pub(super) tree: Option<Hash>,
    /// The state that the last shell has left.
    pub(super) shell: Option<ShellState>,
    /// The time from start to end.
    pub(super) wall_time: Duration,
    /// The command does not run beyond this time.
    pub(super) deadline: Option<Timestamp>,
    /// The span of the call, if the run is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<TraceContext>,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The command ran.
    Ended(Box<End>),
    /// The command did not run, or its files could not be stored.
    Failed {
        /// The reason, for the model.
        message: String,
    },
}

/// The end of a command that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) exit: Exit,
    pub(super) wall_time: Duration,
    /// The hash of the stored files; absent if there are none.
    pub(super) tree: Option<Hash>,
    /// The state that the shell has left.
    pub(super) shell: Option<ShellState>,
    /// The files that can't be part of the workspace: path and reason.
    pub(super) skipped: Vec<(String, String)>,
    /// The number of further ones.
    #[serde(default)]
    pub(super) more_skipped: usize,
}

impl Outcome {
    /// Makes the outcome of a command without any.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::session::hash_directory;

    #[test]
    fn texts_are_read_as_they_were_written_and_unknown_keys_are_ignored() {
        let request = Request {
            command: "printf 'a\0b'".to_owned(),
            line: "agent".to_owned(),
            tree: Some(hash_directory(b"a")),
            shell: Some(ShellState::default()),
            wall_time: Duration::from_millis(1_500),
            deadline: None,
            trace: TraceContext::recorded([1; 16], [2; 8]),
        };
        let mut text = serde_json::to_string(&request).unwrap();
        assert!(!text.contains('\0'), "PostgreSQL stores no NUL");
        text.insert_str(1, "\"later\": 1, ");
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
        for outcome in [
            Outcome::failed("why"),
            Outcome::Ended(Box::new(End {
                exit: Exit::Code(3),
                wall_time: Duration::from_secs(1),
                tree: None,
                shell: None,
                skipped: vec![("a".to_owned(), "b".to_owned())],
                more_skipped: 7,
            })),
        ] {
            let text = serde_json::to_string(&outcome).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
        }
    }
}
