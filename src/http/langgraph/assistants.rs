//! Assistants, which are agents.

use axum::Json;
use serde::Serialize;
use serde_json::json;
use uuid::Builder;

use super::body::LangGraphObject;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::json_body::JsonBody;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::run::{Offered, offered, offered_lookup};
use values::clock::Timestamp;
use values::ids::SessionId;
use values::json::{Object, Value};
use values::tenant::TenantId;

/// The most assistants of a list.
const MAX_LISTED: usize = 1_000;

/// An agent, as an assistant.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of clients")]
pub(in crate::http) struct Assistant {
    pub(super) assistant_id: String,
    /// The name of the agent.
    pub(super) graph_id: String,
    name: String,
    config: Object,
    context: Object,
    metadata: Object,
    version: u32,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
}

impl Assistant {
    fn new(tenant: &TenantId, agent: Offered) -> Self {
        Self {
            assistant_id: id_of(tenant, &agent.name),
            graph_id: agent.name.clone(),
            name: agent.name,
            config: Object::new(),
            context: Object::new(),
            metadata: Object::new(),
            version: 1,
            created_at: agent.created_at,
            updated_at: agent.created_at,
        }
    }
}

/// Returns the id of the assistant of an agent: a UUID, as clients expect it.
pub(super) fn id_of(tenant: &TenantId, agent: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("agent-runtime assistant v1");
    hasher.update(tenant.as_str().as_bytes());
    hasher.update(b"\n");
    hasher.update(agent.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// Finds an assistant by its id, or by the name of its agent.
pub(super) async fn find(call: &Call, name: &str) -> Result<Assistant, Problem> {
    let missing = || {
        let shown: String = name.chars().take(64).collect();
        Problem::new(ProblemCode::AgentNotFound, format!("there is no agent named {shown:?}"))
    };
    // Ids of assistants have the form of other ids.
    if name.parse::<SessionId>().is_err() {
        let found = offered_lookup(&call.api.runs, &call.tenant, &call.run_limits(), name).await?;
        let agent = found.filter(|found| found.created_at.is_some());
        return agent
            .map(|agent| Assistant::new(&call.tenant, agent))
            .ok_or_else(missing);
    }
    let mut all = all(call).await?.into_iter();
    all.find(|assistant| assistant.assistant_id == name).ok_or_else(missing)
}

async fn all(call: &Call) -> Result<Vec<Assistant>, Problem> {
    let offered = offered(&call.api.runs, &call.tenant, &call.run_limits()).await?;
    let agents = offered.into_iter().filter(|agent| agent.created_at.is_some());
    Ok(agents.map(|agent| Assistant::new(&call.tenant, agent)).collect())
}

/// Returns what the service is.
#[utoipa::path(get, path = "/v1/langgraph/info", tag = "langgraph", responses(
    (status = 200, description = "The version, and what is served", body = LangGraphObject),
))]
pub(in crate::http) async fn get_langgraph_info(_: Call) -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "flags": {"assistants": true, "crons": false, "langsmith": false},
    }))
}

/// Lists the agents that the caller may run, as assistants.
#[utoipa::path(post, path = "/v1/langgraph/assistants/search", tag = "langgraph",
    request_body(content = LangGraphObject, description = "`graph_id`, `limit` and `offset`"), responses(
    (status = 200, description = "The assistants", body = Vec<LangGraphObject>),
))]
pub(in crate::http) async fn list_assistants(
    call: Call,
    JsonBody(body): JsonBody<Object>,
) -> Result<Json<Vec<Assistant>>, Problem> {
    let number = |name: &str, default| body.get(name).and_then(Value::as_u64).unwrap_or(default);
    let limit = usize::try_from(number("limit", 10))
        .unwrap_or(MAX_LISTED)
        .min(MAX_LISTED);
    let offset = usize::try_from(number("offset", 0)).unwrap_or(usize::MAX);
    let graph = body.get("graph_id").and_then(Value::as_str);
    let assistants = all(&call).await?.into_iter();
    let assistants = assistants.filter(|one| graph.is_none_or(|graph| one.graph_id == graph));
    Ok(Json(assistants.skip(offset).take(limit).collect()))
}

/// Returns an assistant.
#[utoipa::path(get, path = "/v1/langgraph/assistants/{assistant_id}", tag = "langgraph",
    params(("assistant_id" = String, Path)), responses(
    (status = 200, description = "The assistant", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::AgentNotFound]))))]
pub(in crate::http) async fn get_assistant(call: Call, path: PathParameters) -> Result<Json<Assistant>, Problem> {
    Ok(Json(find(&call, path.text("assistant_id")).await?))
}

/// Returns the schemas of an assistant: a list of messages goes in and out.
#[utoipa::path(get, path = "/v1/langgraph/assistants/{assistant_id}/schemas", tag = "langgraph",
    params(("assistant_id" = String, Path)), responses(
    (status = 200, description = "The schemas", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::AgentNotFound]))))]
pub(in crate::http) async fn get_assistant_schemas(call: Call, path: PathParameters) -> Result<Json<Value>, Problem> {
    let assistant = find(&call, path.text("assistant_id")).await?;
    let messages =
        json!({"type": "object", "properties": {"messages": {"type": "array", "items": {"type": "object"}}}});
    Ok(Json(json!({
        "graph_id": assistant.graph_id,
        "input_schema": messages,
        "output_schema": messages,
        "state_schema": messages,
        "config_schema": null,
        "context_schema": null,
    })))
}
