//! Reads the tools of a server, within limits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool as WireTool};
use serde_json::json;
use tokio::time::Instant;

use super::connection::{Connection, Reply};
use super::incoming::left_out;
use super::listing::{ListedTool, Listing};
use super::observer::Observer;
use super::request_error::RequestError;
use tasks::off_thread::off_thread;
use values::json::{JsonSchema, Value, json_length};
use values::session::hash_tool_definition;
use values::tenant::TenantId;

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
struct Pages<'a> {
    server: &'a str,
    tools: Vec<WireTool>,
    bytes: usize,
    lifetime: Option<Duration>,
    /// The parts that are left out, in words.
    left_out: Vec<String>,
}

/// Lists the tools of a server until a time, which errors show as a limit. If the list has no
/// usable end, the tools up to there are used.
pub(super) async fn list(
    connection: &Connection,
    server: &str,
    tenant: &TenantId,
    time: (Instant, Duration),
) -> Result<Listing, RequestError> {
    let capabilities = connection.capabilities();
    let mut pages = Pages {
        server,
        tools: Vec::new(),
        bytes: 0,
        lifetime: None,
        left_out: Vec::new(),
    };
    // A server without tools need not know the request.
    if capabilities.tools.is_some() {
        pages.read(connection, tenant, time).await?;
    }
    let found = std::mem::take(&mut pages.tools);
    let (tools, unusable) = off_thread(tenant, move || usable(found)).await;
    for problem in unusable {
        pages.leave_out(problem);
    }
    Ok(Listing {
        tools,
        left_out: pages.left_out,
        has_resources: capabilities.resources.is_some(),
        has_prompts: capabilities.prompts.is_some(),
        lifetime: pages.lifetime.unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME),
    })
}

impl Pages<'_> {
    async fn read(
        &mut self,
        connection: &Connection,
        tenant: &TenantId,
        (until, limit): (Instant, Duration),
    ) -> Result<(), RequestError> {
        let mut cursors = BTreeSet::new();
        let mut cursor = None;
        for number in 1..=MAX_PAGES {
            let left = until.saturating_duration_since(Instant::now());
            let next = match self.read_page(connection, tenant, cursor, left).await {
                Ok(next) => next,
                Err(RequestError::Refused { code, message })
                    if number == 1 && code == ErrorCode::METHOD_NOT_FOUND.0 =>
                {
                    self.leave_out(format!("the server has no list of tools: {message} (code {code})"));
                    return Ok(());
                }
                Err(error) => {
                    let error = match error {
                        RequestError::Timeout(_) => RequestError::Timeout(limit),
                        error => error,
                    };
                    if number == 1 {
                        return Err(error);
                    }
                    // The page may be there the next time.
                    self.lifetime = self.lifetime.min(Some(DEFAULT_LIFETIME));
                    self.end(&format!("page {number} can't be read: {error}"));
                    return Ok(());
                }
            };
            let Some(next) = next else { return Ok(()) };
            if !cursors.insert(next.clone()) {
                self.end("its cursor comes again");
                return Ok(());
            }
            cursor = Some(next);
        }
        self.end(&format!("it has more than {MAX_PAGES} pages"));
        Ok(())
    }

    /// Reads a page. Returns where the next one begins.
    async fn read_page(
        &mut self,
        connection: &Connection,
        tenant: &TenantId,
        cursor: Option<String>,
        limit: Duration,
    ) -> Result<Option<String>, RequestError> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let reply = connection.request(request, limit, Observer::default()).await?;
        let Reply::Result(result) = reply else {
            return Err(RequestError::Unexpected);
        };
        let ServerResult::ListToolsResult(list) = *result else {
            return Err(RequestError::Unexpected);
        };
        if let Some(lifetime) = list.ttl_ms.map(Duration::from_millis) {
            self.lifetime = Some(self.lifetime.map_or(lifetime, |other| other.min(lifetime)));
        }
        // The log has them already.
        self.left_out.extend(left_out(list.meta.as_ref()));
        let tools = list.tools;
        let measured = move || tools.into_iter().map(|tool| (json_length(&tool), tool));
        let measured: Vec<_> = off_thread(tenant, move || measured().collect()).await;
        for (bytes, tool) in measured {
            if self.tools.len() == MAX_TOOLS {
                self.end(&format!("it has more than {MAX_TOOLS} tools"));
                return Ok(None);
            }
            self.bytes += bytes;
            if self.bytes > MAX_LIST {
                self.end(&format!("it has more than {MAX_LIST} bytes"));
                return Ok(None);
            }
            self.tools.push(tool);
        }
        Ok(list.next_cursor)
    }

    /// Notes that the list is not read to its end.
    fn end(&mut self, why: &str) {
        self.leave_out(format!("the rest of the list of tools is left out: {why}"));
    }

    fn leave_out(&mut self, problem: String) {
        tracing::warn!(
            server = self.server,
            problem,
            "a part of the list of an MCP server is left out"
        );
        self.left_out.push(problem);
    }
}

/// Returns the tools that models can be offered, by name, and the problems of others. Of two tools
/// with one name, the first counts.
fn usable(tools: Vec<WireTool>) -> (Vec<ListedTool>, Vec<String>) {
    let began = std::time::Instant::now();
    let (mut usable, mut problems) = (Vec::<ListedTool>::new(), Vec::new());
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
        problems.push(format!("the tool {name:?} is left out: {problem}"));
    }
    usable.sort_by(|left, right| left.name.cmp(&right.name));
    (usable, problems)
}

fn listed(tool: WireTool) -> Result<ListedTool, String> {
    let characters = tool.name.chars().count();
    if characters > MAX_NAME {
        return Err(format!(
            "its name has {characters} characters, and the most are {MAX_NAME}"
        ));
    }
    // Icons and metadata change neither the text for the model nor the effect of a call.
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
    // Without a usable schema, the results are not checked.
    let output_schema = tool.output_schema.as_deref();
    let output_schema = output_schema.and_then(|schema| JsonSchema::compile(&Value::Object(schema.clone())).ok());
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
        output_schema: output_schema.map(Arc::new),
        read_only,
        idempotent: read_only || annotations.is_idempotent(),
        destructive: !read_only && annotations.is_destructive(),
        definition: hash_tool_definition(&definition),
        name: tool.name.to_string(),
    })
}
