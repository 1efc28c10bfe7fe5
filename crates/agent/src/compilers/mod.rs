//! Compilers choose which messages of the history go to the model.
//!
//! They read the history and never rewrite it. Every compiler starts at the newest summary: the
//! summary replaces the messages that it covers, and later messages follow it.
//!
//! A compiled request is a pure function of the history, so none is stored. Its prefix is stable
//! byte for byte, so that the provider's prompt cache can match it. Everything that changes from
//! one request to the next stands after the messages. The beginning of all later requests is
//! retained with the history, so that a turn compiles and encodes only what it adds (`prefix.rs`).

mod config;
mod prefix;
mod reading;
mod traces;

mod last_n;
mod sections;
mod token_window;

use std::fmt;

pub use self::config::CompilerConfig;
pub use self::last_n::LastN;
pub use self::reading::{IndexedMessage, Reading};
pub use self::sections::Sections;
pub use self::token_window::TokenWindow;
pub use self::traces::Traces;
use super::state::{AgentState, Messages};

/// Chooses the messages of a request.
pub trait Compiler: Send + Sync + fmt::Debug {
    /// Returns the messages to choose from: the newest summary, and after it the messages of the
    /// compiler's sections.
    fn read(&self, state: &AgentState) -> Reading;

    /// Returns the chosen messages in their order. Calls and their results stay together.
    fn compile(&self, state: &AgentState) -> Messages {
        self.read(state).into_messages()
    }
}

impl AgentState {
    /// Returns the messages that go to the model, as the compiler chooses them (document 001,
    /// "Context").
    pub fn messages(&self, compiler: &dyn Compiler) -> Messages {
        compiler.compile(self)
    }

    /// Returns the messages that go to the model, and the state that retains their prefix.
    pub(crate) fn compiled(self, compiler: &dyn Compiler) -> (Self, Messages) {
        let messages = self.messages(compiler);
        let state = self.retaining_request_prefix(messages.prefix());
        (state, messages)
    }
}
