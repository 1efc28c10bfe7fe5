//! The built-in tools. They have no effect outside themselves, and read only the clock.

mod calculator;
mod current_time;

use std::sync::Arc;

use self::calculator::Calculator;
use self::current_time::CurrentTime;
use crate::agent::ports::Tool;
use crate::clock::Clock;

/// Returns all built-in tools.
pub fn builtin_tools(clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Calculator::new()),
        Arc::new(CurrentTime::new(Arc::clone(clock))),
    ]
}
