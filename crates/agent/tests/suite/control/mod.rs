//! The bounds of an execution: its budget, and the caller's stop.

mod budgets;
mod spending;
mod stops;
