//! The agent: its state, the loop that moves it, its drivers and hooks, and its ports to the
//! outside.
//!
//! Contains no HTTP, no SQL and no provider's format, and reads no configuration. It reaches
//! models, tools, journals and receivers of events only through traits. Start with `agent_loop.rs`.
//!
//! The folders, each importing only those above it:
//!
//! | looking for | go to |
//! |---|---|
//! | the pure state and its transitions | `state/` |
//! | models, tools and webhooks as traits | `ports/` |
//! | which models are called in turn, and estimates of usage | `model_calls/` |
//! | which messages a request contains | `compilers/` |
//! | how another process resumes an execution | `journal/` |
//! | calls that the caller answers, approvals | `answers/` |
//! | an agent as an operator or a caller configures it | `definition/`, `prompt/`, `deferred_tools.rs` |
//! | budgets, spending, stop, pause and cancellation | `control.rs` |
//! | hooks and what they may change | `hooks/`, `hook_point.rs` |
//! | one step | `drivers/` |
//! | the hooks that agents attach by name | `builtin_hooks/` |
//! | the loop, its points and its events | `agent_loop.rs`, `ending.rs`, `events.rs` |
//! | the record of a run, as it is stored and shown | `record/` |

pub mod state;

pub mod ports;

pub mod model_calls;

pub mod answers;
pub mod compilers;
pub mod deferred_tools;
pub mod definition;
pub mod journal;
pub mod prompt;

pub mod hooks;

pub mod drivers;

pub mod record;

mod agent_loop;
mod builtin_hooks;
mod call_key;
mod completion_limit;
mod control;
mod ending;
mod events;
mod hook_point;
mod inbox;
mod request_room;
mod reservation;
mod response_format;
mod run_error;

pub use self::agent_loop::AgentLoop;
pub use self::builtin_hooks::{SummarisationFactory, builtin_hooks};
pub use self::call_key::CallSeed;
pub use self::control::ExecutionControl;
pub use self::events::{AgentEvent, ContinuationDecision, EventSink, ModelRetry, StatePart, TracedWork};
pub use self::hook_point::HookPoint;
pub use self::inbox::Inbox;
pub use self::request_room::RequestRoom;
pub use self::reservation::Reservation;
pub use self::response_format::{CompiledFormat, FormatCache, FormatError};
pub use self::run_error::RunErrorCode;
