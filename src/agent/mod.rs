//! The agent: its state, the loop that moves it, drivers, hooks and the ports to the outside. No HTTP, no SQL, no provider's format.

pub mod state;

pub mod ports;

mod agent_loop;
pub mod compilers;
mod control;
mod definition;
pub mod drivers;
mod events;
pub mod hooks;
mod prompt;

pub use self::agent_loop::AgentLoop;
pub use self::control::ExecutionControl;
pub use self::definition::{AgentDefinition, DriverKind, ErrorPolicy, HookConfig};
pub use self::events::{AgentEvent, ContinuationDecision, EventSink};
pub use self::prompt::{PromptError, check_prompt, render_prompt};
