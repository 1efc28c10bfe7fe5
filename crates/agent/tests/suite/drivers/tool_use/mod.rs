//! The tool calls of a step.

mod calls;
mod cut_calls;
mod ending_tools;
