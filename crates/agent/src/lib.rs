//! The agent: its state, the loop that moves it, its drivers and hooks, and its ports to the
//! outside.
//!
//! Contains no HTTP, no SQL and no provider's format. Start with `agent_loop.rs`.
//!
//! | looking for | go to |
//! |---|---|
//! | the loop, its points and its events | `agent_loop.rs`, `ending.rs`, `events.rs` |
//! | the pure state and its transitions | `state/` |
//! | what one step does | `drivers/` |
//! | hooks and what they may change | `hooks/` |
//! | which messages a request contains | `compilers/` |
//! | models, tools and webhooks as traits | `ports/` |
//! | how another process resumes an execution | `journal.rs`, `recorder.rs`, `progress.rs` |
//! | calls that the caller answers, approvals | `answers/` |
//! | budgets, spending, stop, pause and cancellation | `control.rs` |
//! | which tools a request offers | `deferred_tools.rs` |
//! | what an operator or a caller configures | `definition.rs`, `subagents.rs`, `error_policy.rs` |

pub mod record;

pub mod state;

pub mod ports;

mod agent_loop;
mod answers;
mod call_key;
pub mod compilers;
mod control;
mod deferred_tools;
mod definition;
pub mod drivers;
mod durability;
mod ending;
mod error_policy;
mod events;
pub mod hooks;
mod inbox;
mod journal;
mod progress;
mod prompt;
mod record_size;
mod recorder;
mod request_room;
mod response_format;
mod run_error;
mod script;
mod subagents;
mod webhook;

pub use self::agent_loop::AgentLoop;
pub use self::answers::{
    Answer, AnswerContent, AnswerExpiry, AnswerFault, AnswerRules, AnsweredStep, Answers, ApprovalChoice, ApprovalRule,
    ClientTool, OpenStepFault, ResolvedAnswer, ResolvedAnswers, resolve_answers,
};
pub use self::call_key::CallSeed;
pub use self::control::ExecutionControl;
pub use self::deferred_tools::{SEARCH_TOOLS, add_found_tools, found_tools, is_deferred};
pub use self::definition::{AgentDefinition, DriverKind, HookConfig, SubagentConfig, SubagentWorkspace};
pub use self::durability::{Durability, DurabilityChoice};
pub use self::error_policy::{ErrorDecision, ErrorHandling, ErrorPolicy, ErrorPolicyPreset};
pub use self::events::{AgentEvent, ContinuationDecision, EventSink, StatePart};
pub use self::inbox::Inbox;
pub use self::journal::{Journal, JournalEntry, JournalError, Journals};
pub use self::progress::{PendingStep, PersistedEnvironment, Progress};
pub use self::prompt::{PromptError, check_prompt, render_prompt};
pub use self::record_size::RecordSize;
pub use self::recorder::Recorder;
pub use self::request_room::RequestRoom;
pub use self::response_format::{CompiledFormat, FormatCache, FormatError};
pub use self::run_error::RunErrorCode;
pub use self::script::{ScriptStep, ScriptedCall, ScriptedError};
pub use self::webhook::{RunWebhook, WebhookEvent};
