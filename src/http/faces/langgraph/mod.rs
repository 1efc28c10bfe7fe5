//! The classic API of LangGraph's server, which `useStream` and Agent Chat UI call.
//!
//! A thread is a thread, an assistant an agent, and a checkpoint a session. Each run with an input
//! has a second one, after its input: clients start there to answer a question again.
//!
//! ```text
//! request.rs       the body ─▶ messages, commands and a checkpoint
//! interrupt.rs     open calls ─▶ interrupts, and their answers
//! writer.rs        a run at work ─▶ events (fold.rs, message.rs)
//! state.rs         sessions ─▶ the states of a thread
//! ```

mod fold;
mod interrupt;
mod message;
mod writer;

mod request;
mod state;

pub(in crate::http) use self::interrupt::OpenStep;
pub(in crate::http) use self::message::Message;
pub(in crate::http) use self::request::{CheckpointName, Command, RunBody};
pub(in crate::http) use self::state::{StateNode, ThreadState, in_order, line_of, messages_of};
pub(in crate::http) use self::writer::{Modes, StreamWriter, Values, error_of};
