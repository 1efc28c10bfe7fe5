//! The tool calls of a step.

mod calls;
mod ending_tools;
