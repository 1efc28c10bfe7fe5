//! The built-in tools. The tools of [`builtin_tools`] have no effect outside the environment of
//! their run.

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

use self::calculator::calculator;
use self::current_time::CurrentTime;
use self::files::file_tools;
pub(crate) use self::files::media_type;
pub use self::http_fetch::{HttpFetchSettings, http_fetch};
use self::search_tools::search_tools;
pub(crate) use self::shell::ProcessSettings;
pub use self::shell::{
    BackendError, CommandBackend, CommandNetwork, CommandOutcome, CommandSettings, Commands, MaxJobs, ShellCommand,
    restorable_shell, shell, shell_job,
};
use self::todo::todo;
use self::variables::{variables_get, variables_set};
use agent::ports::Tool;
use values::clock::Clock;

/// Returns the built-in tools that need no settings.
pub fn builtin_tools(clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Tool>> {
    let functions = [calculator(), search_tools(), todo(), variables_get(), variables_set()];
    let tools = functions.into_iter().chain(file_tools());
    let mut tools: Vec<Arc<dyn Tool>> = tools.map(|tool| Arc::new(tool) as _).collect();
    tools.push(Arc::new(CurrentTime::new(Arc::clone(clock))));
    tools
}
