//! The tools for the environment, as models call them: results, errors, and what the files are
//! afterwards.

mod builds;
mod checkouts;
mod concurrency;
mod edit;
mod ends_of_lines;
mod ephemeral;
mod grep;
mod jobs;
mod listing;
mod long_output;
mod patch;
mod paths;
mod read;
mod shares;
mod shell;
mod specs;
mod todo;
mod variables;
mod write;

use std::sync::Arc;

use agent::ports::{OutputSink, Tool, ToolCatalog as _, ToolContext, ToolExecutor};
use agent::state::ToolExecution;
use bytes::Bytes;
use test_support::clock::TestClock;
use tokio_util::sync::CancellationToken;
use tools::{CallLimits, ToolRegistry, builtin_tools};
use values::clock::{Clock, Deadline};
use values::ids::{AgentId, ExecutionId, UuidV7Source};
use values::json::Value;
use values::message::{ToolCall, joined_text};
use values::session::EnvironmentState;
use workspace::environment::Environment;
use workspace::{Entry, FilePath, InMemoryContents, WorkspaceLimits};

/// An environment, and an executor of all built-in tools.
struct Desk {
    agent_id: AgentId,
    environment: Arc<Environment>,
    executor: Arc<dyn ToolExecutor>,
    cancellation: CancellationToken,
    deadline: Option<Deadline>,
    output: Option<Arc<dyn OutputSink>>,
}

impl Desk {
    fn new() -> Self {
        Self::with(WorkspaceLimits::default(), CallLimits::default())
    }

    fn with(limits: WorkspaceLimits, settings: CallLimits) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::new());
        Self::of(builtin_tools(&clock), limits, settings, EnvironmentState::default())
    }

    fn of(tools: Vec<Arc<dyn Tool>>, limits: WorkspaceLimits, settings: CallLimits, state: EnvironmentState) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::new());
        let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let registry = ToolRegistry::new(tools, settings, clock, Arc::new(UuidV7Source)).unwrap();
        let contents = Arc::new(InMemoryContents::default());
        let environment = Environment::restore(state, contents, limits);
        Self {
            agent_id: AgentId::generate(&UuidV7Source),
            environment: Arc::new(environment),
            deadline: None,
            output: None,
            executor: registry.executor(&names).unwrap(),
            cancellation: CancellationToken::new(),
        }
    }

    async fn with_files(files: &[(&str, &str)]) -> Self {
        let desk = Self::new();
        for (path, content) in files {
            desk.put(path, content.as_bytes()).await;
        }
        desk
    }

    async fn put(&self, path: &str, content: &[u8]) {
        let edit = self.environment.edit().await.unwrap();
        let bytes = Bytes::copy_from_slice(content);
        let tree = edit.tree.with_file(&parsed(path), bytes, false).await.unwrap();
        edit.finish(tree).await.unwrap();
    }

    async fn link(&self, path: &str, target: &str) {
        let edit = self.environment.edit().await.unwrap();
        let tree = edit.tree.with_symlink(&parsed(path), target).await.unwrap();
        edit.finish(tree).await.unwrap();
    }

    async fn execution(&self, tool: &str, arguments: &Value) -> ToolExecution {
        let context = ToolContext {
            agent_id: self.agent_id,
            execution_id: ExecutionId::generate(&UuidV7Source),
            step_number: 1,
            environment: Arc::clone(&self.environment),
            deferred_tools: Arc::default(),
            metadata: Arc::default(),
            deadline: self.deadline.clone(),
            cancellation: self.cancellation.clone(),
            output: self.output.clone(),
            call_id: "c".to_owned(),
            idempotency_key: "0123456789abcdef".repeat(4),
            continuation: None,
            trace: None,
        };
        let call = ToolCall {
            id: "c".to_owned(),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
            signature: None,
        };
        self.executor.execute(call, &context).await
    }

    /// Calls a tool. Returns the text of the result or of the error.
    async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let execution = self.execution(tool, &arguments).await;
        let text = joined_text(&execution.content);
        if execution.has_error() { Err(text) } else { Ok(text) }
    }

    async fn file(&self, path: &str) -> Option<String> {
        let bytes = self.environment.tree().read(&parsed(path)).await.ok()?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn is_executable(&self, path: &str) -> bool {
        let entry = self.environment.tree().entry(&parsed(path)).await.unwrap();
        matches!(
            entry,
            Some(Entry::File {
                is_executable: true,
                ..
            })
        )
    }

    /// Returns the paths of all files and symlinks.
    async fn paths(&self) -> Vec<String> {
        let entries = self.environment.tree().walk(None).await.unwrap();
        let files = entries
            .into_iter()
            .filter(|(_, entry)| !matches!(entry, Entry::Directory { .. }));
        files.map(|(path, _)| path.to_string()).collect()
    }
}

fn parsed(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}
