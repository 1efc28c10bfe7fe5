//! The names of attributes, from the semantic conventions for generative AI.
//!
//! Source: <https://github.com/open-telemetry/semantic-conventions-genai>, commit
//! `32c328e85013588c6fe32ebc30934ab5b1752b6a`. The conventions have no release yet, and names
//! change between commits. So all of them are here. Those that begin with `agent_runtime` are ours.

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const CHAT: &str = "chat";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";

pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(super) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_write.input_tokens";
pub(super) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";

pub(super) const MCP_TOOLS_CALL: &str = "tools/call";
pub(super) const MCP_METHOD: &str = "mcp.method.name";
pub(super) const MCP_VERSION: &str = "mcp.protocol.version";
pub(super) const JSONRPC_ID: &str = "jsonrpc.request.id";

/// The event of a further attempt, with the failure of the attempt before as its `error.type`.
pub(super) const RETRY: &str = "retry";

pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const SERVER_ADDRESS: &str = "server.address";
pub(super) const SERVER_PORT: &str = "server.port";
pub(super) const HTTP_METHOD: &str = "http.request.method";
pub(super) const HTTP_ROUTE: &str = "http.route";
pub(super) const HTTP_STATUS: &str = "http.response.status_code";

pub(super) const RUN_ID: &str = "agent_runtime.run.id";
pub(super) const SESSION_ID: &str = "agent_runtime.session.id";
pub(super) const BASE_SESSION_ID: &str = "agent_runtime.base_session.id";
pub(super) const TENANT: &str = "agent_runtime.tenant";
pub(super) const PROVIDER_NAME: &str = "agent_runtime.provider";
pub(super) const ATTEMPTS: &str = "agent_runtime.attempts";
pub(super) const ATTEMPT: &str = "agent_runtime.attempt";
pub(super) const AGENT_VERSION: &str = "agent_runtime.agent.version";
pub(super) const STATUS: &str = "agent_runtime.status";
pub(super) const STOP_REASON: &str = "agent_runtime.stop_reason";
pub(super) const COST: &str = "agent_runtime.cost.usd";
pub(super) const VERDICT: &str = "agent_runtime.tool.verdict";

/// Returns the conventional name of a provider that speaks a protocol, as the configuration names
/// it. A provider at another address keeps the name of its protocol; its address tells the truth.
pub(super) fn provider_name(kind: &str) -> &'static str {
    match kind {
        "anthropic" => "anthropic",
        "gemini" => "gcp.gemini",
        "bedrock" => "aws.bedrock",
        "scripted" => "agent_runtime.scripted",
        _ => "openai",
    }
}
