//! The drivers, and what they share: exchanges with models, structured output and tool calls.

mod exchange;
mod react;
mod scripted;
mod step;
mod structured;
mod tool_use;
