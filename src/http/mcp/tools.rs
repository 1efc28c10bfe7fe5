//! The agents of the tenant as tools.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CacheScope, ListToolsResult, Tool};
use serde_json::json;

use super::errors::invalid;
use super::server::McpServer;
use crate::http::paging::{PAGE_BYTES, decode_cursor, encode_cursor};
use crate::http::problem::Problem;
use store::agents::AgentPage;
use values::json::{Object, Value};

/// The most tools of a page.
const PAGE: u32 = 200;
/// How long a client may use a list, in milliseconds.
const LIST_TTL_MS: u64 = 10_000;

/// Lists the agents by name.
pub(super) async fn list(server: &McpServer, cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    let after = cursor.map(|cursor| decode_cursor(&cursor).ok_or_else(|| invalid("not a cursor of this list")));
    let page = AgentPage {
        after: after.transpose()?,
        limit: PAGE,
        bytes: PAGE_BYTES,
    };
    let call = &server.call;
    let agents = call.api.runs.agents.list(&call.tenant, &page).await;
    let list = agents.map_err(Problem::from)?;
    let last = list.agents.last().filter(|_| !list.is_last);
    let next = last.map(|agent| encode_cursor(&agent.definition.name));
    let (input, output) = (Arc::new(input_schema()), Arc::new(output_schema()));
    let tools = list.agents.iter().map(|agent| {
        let definition = &agent.definition;
        let words = match definition.description.trim() {
            "" => format!("The agent {}.", definition.name),
            words => words.to_owned(),
        };
        let mut tool = Tool::new(definition.name.clone(), words, Arc::clone(&input));
        tool.output_schema = Some(Arc::clone(&output));
        tool
    });
    let mut result = ListToolsResult::with_all_items(tools.collect())
        .with_ttl_ms(LIST_TTL_MS)
        .with_cache_scope(CacheScope::Private);
    result.next_cursor = next;
    Ok(result)
}

/// Returns the schema of the arguments of each tool.
fn input_schema() -> Object {
    object(json!({
        "type": "object",
        "properties": {
            "input": {
                "type": "string",
                "minLength": 1,
                "description": "What to say to the agent.",
            },
            "session": {
                "type": "string",
                "format": "uuid",
                "description": "The `session_id` of an earlier result, to continue that conversation. Without it a new one begins.",
            },
        },
        "required": ["input"],
        "additionalProperties": false,
    }))
}

/// Returns the schema of the structured result of each tool.
fn output_schema() -> Object {
    object(json!({
        "type": "object",
        "properties": {
            "run_id": {"type": "string", "format": "uuid", "description": "Names the run."},
            "session_id": {
                "type": "string",
                "format": "uuid",
                "description": "The session that the run has published. Pass it as `session` to continue the conversation.",
            },
            "status": {
                "type": "string",
                "description": "`completed`; `stopped` if a limit ended the run early; `waiting` if calls of the agent need answers of the caller.",
            },
            "output": {"type": "string", "description": "What the agent says."},
            "value": {"description": "The response as a value, if the session has a `response_format`."},
            "required_action": {"type": "object", "description": "The calls that need answers, if the run waits."},
        },
        "required": ["run_id", "session_id", "status", "output"],
    }))
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
