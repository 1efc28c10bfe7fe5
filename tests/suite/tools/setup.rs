//! One call of a tool, as the service makes it.

use std::sync::Arc;

use agent::ports::{Tool, ToolCatalog as _, ToolContext};
use tokio_util::sync::CancellationToken;
use tools::{CallLimits, ToolRegistry};
use values::clock::SystemClock;
use values::ids::{AgentId, ExecutionId, UuidV7Source};
use values::json::Value;
use values::message::{ToolCall, joined_text};
use values::session::EnvironmentState;
use workspace::environment::Environment;

/// The idempotency key of every call.
pub(super) const KEY: &str = "key-of-the-call";

/// Calls a tool with JSON arguments. Returns what the model reads; an error as an error.
pub(crate) async fn call(tool: &Arc<dyn Tool>, arguments: &Value) -> Result<String, String> {
    let name = tool.spec().name.clone();
    let settings = CallLimits::default();
    let registry = ToolRegistry::new(
        [Arc::clone(tool)],
        settings,
        Arc::new(SystemClock),
        Arc::new(UuidV7Source),
    );
    let executor = registry.unwrap().executor(std::slice::from_ref(&name)).unwrap();
    let context = ToolContext {
        agent_id: AgentId::generate(&UuidV7Source),
        execution_id: ExecutionId::generate(&UuidV7Source),
        step_number: 1,
        environment: Arc::new(Environment::in_memory(EnvironmentState::default())),
        deferred_tools: Arc::default(),
        metadata: Arc::default(),
        deadline: None,
        cancellation: CancellationToken::new(),
        output: None,
        call_id: "c".to_owned(),
        idempotency_key: KEY.to_owned(),
        continuation: None,
        trace: None,
    };
    let call = ToolCall {
        id: "c".to_owned(),
        name,
        arguments: arguments.to_string(),
        signature: None,
    };
    let execution = executor.execute(call, &context).await;
    let text = joined_text(&execution.content);
    if execution.has_error() { Err(text) } else { Ok(text) }
}
