//! The names of threads in addresses, and the problems that name a thread.

use crate::http::codes::ProblemCode;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use agent::record::{ParseThreadNameError, ThreadName, ThreadRecord};

/// The longest part of a name that is quoted, in characters.
const MAX_SHOWN: usize = 128;

/// Returns the name in the path if it is a possible name. Other names need no query.
pub(super) fn known_name(path: &PathParameters) -> Result<ThreadName, Problem> {
    let name = path.text("name");
    name.parse().map_err(|_| thread_not_found(name))
}

/// Returns the name in the path for a thread that may not exist yet.
pub(super) fn new_name(path: &PathParameters) -> Result<ThreadName, Problem> {
    let name = path.text("name").parse();
    name.map_err(|error: ParseThreadNameError| Problem::invalid_field("name", error.to_string()))
}

/// Makes the problem of a thread that does not exist.
pub(super) fn thread_not_found(name: &str) -> Problem {
    let shown: String = name.chars().take(MAX_SHOWN).collect();
    Problem::new(
        ProblemCode::ThreadNotFound,
        format!("there is no thread named {shown:?}"),
    )
}

/// Makes the problem of a thread that points elsewhere than expected, or does not exist.
pub(super) fn thread_moved(name: &ThreadName, thread: Option<ThreadRecord>) -> Problem {
    let Some(thread) = thread else {
        return Problem::new(ProblemCode::ThreadMoved, format!("there is no thread named \"{name}\""));
    };
    let detail = match thread.session_id {
        Some(session_id) => format!("the thread \"{name}\" points to the session {session_id}"),
        None => format!("the thread \"{name}\" points to no session yet"),
    };
    Problem::new(ProblemCode::ThreadMoved, detail).with_session(thread.session_id)
}
