//! Reads the tools of a server, within limits.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool as WireTool};
use serde_json::json;
use tokio::time::Instant;

use super::connection::{Connection, Reply};
use super::in_flight::Interest;
use super::listing::{ListedTool, Listing};
use super::request_error::RequestError;
use crate::json::{JsonSchema, Value, json_length};
use crate::off_thread::off_thread;
use crate::session::hash_tool_definition;
use crate::tenant::TenantId;

/// The most tools of a server.
const MAX_TOOLS: usize = 256;
/// The most pages of a list.
const MAX_PAGES: usize = 64;
/// The most bytes of all definitions of a server.
const MAX_LIST: usize = 4 << 20;
/// The most characters of the name of a tool.
const MAX_NAME: usize = 128;
/// The most bytes of one definition.
const MAX_DEFINITION: usize = 64 << 10;
/// How long the schemas of a list may take to compile.
const MAX_COMPILING: Duration = Duration::from_secs(5);
/// How long a list is used if the server does not say it.
const DEFAULT_LIFETIME: Duration = Duration::from_mins(1);
/// How long a list is used at most.
const MAX_LIFETIME: Duration = Duration::from_hours(1);

/// The definitions of all pages.
#[derive(Default)]
struct Pages {
    tools: Vec<WireTool>,
    bytes: usize,
    lifetime: Option<Duration>,
}

/// Lists the tools of a server, within a limit of time.
pub(super) async fn list(
    connection: &Connection,
    server: &str,
    tenant: &TenantId,
    limit: Duration,
) -> Result<Listing, RequestError> {
    let until = Instant::now() + limit;
    let capabilities = connection.capabilities();
    let mut pages = Pages::default();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        // A server without tools need not know the request.
        if capabilities.tools.is_none() {
            break;
        }
        let left = until.saturating_duration_since(Instant::now());
        let next = page(connection, tenant, cursor.clone(), left, &mut pages).await?;
        if next.is_none() {
            cursor = None;
            break;
        }
        if next == cursor {
            return Err(RequestError::TooMuch("list of tools has no end".to_owned()));
        }
        cursor = next;
    }
    if cursor.is_some() {
        let words = format!("list of tools has more than {MAX_PAGES} pages");
        return Err(RequestError::TooMuch(words));
    }
    let Pages { tools, lifetime, .. } = pages;
    let server = server.to_owned();
    Ok(Listing {
        tools: off_thread(tenant, move || usable(&server, tools)).await,
        has_resources: capabilities.resources.is_some(),
        has_prompts: capabilities.prompts.is_some(),
        lifetime: lifetime.unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME),
    })
}

/// Reads a page. Returns where the next one begins.
async fn page(
    connection: &Connection,
    tenant: &TenantId,
    cursor: Option<String>,
    limit: Duration,
    pages: &mut Pages,
) -> Result<Option<String>, RequestError> {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
    let reply = connection.request(request, limit, Interest::default()).await?;
    let Reply::Result(result) = reply else {
        return Err(RequestError::Unexpected);
    };
    let ServerResult::ListToolsResult(list) = *result else {
        return Err(RequestError::Unexpected);
    };
    if let Some(lifetime) = list.ttl_ms.map(Duration::from_millis) {
        pages.lifetime = Some(pages.lifetime.map_or(lifetime, |other| other.min(lifetime)));
    }
    let tools = list.tools;
    if !tools.is_empty() {
        let (bytes, tools) = off_thread(tenant, move || (tools.iter().map(json_length).sum::<usize>(), tools)).await;
        pages.bytes += bytes;
        pages.tools.extend(tools);
    }
    if pages.tools.len() > MAX_TOOLS {
        let words = format!("list has more than {MAX_TOOLS} tools");
        return Err(RequestError::TooMuch(words));
    }
    if pages.bytes > MAX_LIST {
        let words = format!("list of tools has more than {MAX_LIST} bytes");
        return Err(RequestError::TooMuch(words));
    }
    Ok(list.next_cursor)
}

/// Returns the tools that models can be offered, by name. Of two tools with one name, the first
/// counts.
fn usable(server: &str, tools: Vec<WireTool>) -> Vec<ListedTool> {
    let began = std::time::Instant::now();
    let mut usable: Vec<ListedTool> = Vec::new();
    for tool in tools {
        let name: String = tool.name.chars().take(MAX_NAME).collect();
        let tool = if began.elapsed() < MAX_COMPILING {
            listed(tool)
        } else {
            Err("the schemas of the server take too long to compile".to_owned())
        };
        let problem = match tool {
            Ok(tool) if usable.iter().any(|other| other.name == tool.name) => "it is listed twice".to_owned(),
            Ok(tool) => {
                usable.push(tool);
                continue;
            }
            Err(problem) => problem,
        };
        tracing::warn!(server, tool = name, problem, "a tool of an MCP server is left out");
    }
    usable.sort_by(|left, right| left.name.cmp(&right.name));
    usable
}

fn listed(tool: WireTool) -> Result<ListedTool, String> {
    let characters = tool.name.chars().count();
    if characters > MAX_NAME {
        return Err(format!(
            "its name has {characters} characters, and the most are {MAX_NAME}"
        ));
    }
    // Icons and metadata do not change what the model reads or what a call does.
    let definition = json!({
        "name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema, "annotations": tool.annotations,
    });
    let bytes = json_length(&definition);
    if bytes > MAX_DEFINITION {
        return Err(format!(
            "its definition has {bytes} bytes, and the most are {MAX_DEFINITION}"
        ));
    }
    let parameters = Value::Object((*tool.input_schema).clone());
    let schema = JsonSchema::compile_object(&parameters).map_err(|error| error.to_string())?;
    let output_schema = tool.output_schema.as_deref().map(|schema| {
        let compiled = JsonSchema::compile(&Value::Object(schema.clone()));
        compiled
            .map(Arc::new)
            .map_err(|error| format!("its output schema: {error}"))
    });
    let annotations = tool.annotations.unwrap_or_default();
    let read_only = annotations.read_only_hint.unwrap_or(false);
    let description = tool.description.filter(|text| !text.trim().is_empty());
    Ok(ListedTool {
        description: description.map_or_else(
            || tool.title.unwrap_or_else(|| tool.name.to_string()),
            |text| text.to_string(),
        ),
        parameters,
        schema: Arc::new(schema),
        output_schema: output_schema.transpose()?,
        read_only,
        idempotent: read_only || annotations.is_idempotent(),
        destructive: !read_only && annotations.is_destructive(),
        definition: hash_tool_definition(&definition),
        name: tool.name.to_string(),
    })
}
