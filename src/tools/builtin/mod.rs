//! The built-in tools. Those of [`builtin_tools`] have no effect outside the environment of their
//! run.

mod environment_tool;

mod calculator;
mod current_time;
mod files;
mod http_fetch;
mod search_tools;
mod shell;
mod todo;
mod variables;

use std::sync::Arc;

use self::calculator::Calculator;
use self::current_time::CurrentTime;
use self::files::file_tools;
pub use self::files::media_type;
pub use self::http_fetch::{HttpFetchSettings, http_fetch};
use self::search_tools::SearchTools;
pub use self::shell::{
    BackendError, CommandBackend, CommandNetwork, CommandOutcome, CommandSettings, Commands, CommandsUnavailable,
    JobBackend, MaxJobs, Process, ProcessError, ProcessSettings, ShellCommand, restorable_shell, shell, shell_job,
};
use self::todo::Todo;
use self::variables::{VariablesGet, VariablesSet};
use crate::agent::ports::Tool;
use crate::clock::Clock;

/// Returns the built-in tools that need no settings.
pub fn builtin_tools(clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(Calculator::new()),
        Arc::new(CurrentTime::new(Arc::clone(clock))),
        Arc::new(SearchTools::new()),
        Arc::new(Todo::new()),
        Arc::new(VariablesGet::new()),
        Arc::new(VariablesSet::new()),
    ];
    tools.extend(file_tools());
    tools
}
