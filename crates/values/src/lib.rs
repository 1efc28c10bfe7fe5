//! Plain values: no IO, no async, nothing of ours but each other.
//!
//! Ids, times, JSON, messages, usage and limits, and the session: an immutable bundle whose hashes
//! cover all of its parts.

pub mod causes;
pub mod clock;
pub mod http_headers;
pub mod ids;
pub mod json;
pub mod limits;
pub mod message;
pub mod model_parameters;
pub mod model_ref;
pub mod path_patterns;
pub mod secret_forms;
pub mod session;
pub mod settings;
pub mod spelling;
pub mod tenant;
pub mod trace_context;
pub mod usage;
