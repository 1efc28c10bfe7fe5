//! The ports of an agent as traits: models, tools, the environment and the rules of webhooks.

mod environment;
mod model;
mod tool;
mod webhook;

pub use self::environment::{Environment, EnvironmentError, EnvironmentRuntime};
pub use self::model::{
    Model, ModelAddress, ModelCatalog, ModelError, ModelErrorClass, ModelEvent, ModelLookupError, ModelRequest,
    ModelStream, StructuredOutput,
};
pub use self::tool::{
    Tool, ToolCatalog, ToolContext, ToolError, ToolExecutor, ToolOutput, ToolSetError, ToolSpec, UnknownTool,
};
pub use self::webhook::{WebhookFault, WebhookRules};
