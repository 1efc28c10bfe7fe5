//! The ports of an agent as traits: models, tools and the rules of webhooks, with the values that
//! pass through them.

mod model;
mod spending;
mod tool;
mod tool_servers;
mod tool_use;
mod webhook;

pub use self::model::{
    Model, ModelAddress, ModelCatalog, ModelError, ModelErrorClass, ModelEvent, ModelLookupError, ModelRequest,
    ModelStream, ProviderInfo, RefusedPart, StructuredOutput,
};
pub use self::spending::{SpendError, SpendSource};
pub use self::tool::{
    Continuation, OutputSink, Tool, ToolCatalog, ToolContext, ToolError, ToolExecutor, ToolOutput, ToolSetError,
    ToolSpec, UnknownTool,
};
pub use self::tool_servers::{
    OfferedTools, ServedTool, ToolServerInfo, ToolServerState, ToolServers, UnknownToolServer,
};
pub use self::tool_use::{Approved, Blocker, ToolDecision, ToolUse};
pub use self::webhook::{RunWebhook, WebhookEvent, WebhookFault, WebhookRules};
