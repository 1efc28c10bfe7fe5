//! Routes of agents.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::auth::Call;
use super::checks::{check_agent_name, check_budget, check_metadata};
use super::codes::ProblemCode;
use super::described_schemas::instant;
use super::json_body::JsonBody;
use super::paging::{CursorKey, ListPage, PAGE_BYTES, Paging};
use super::parameters::{NoParameters, PathParameters, QueryParameters};
use super::problem::Problem;
use super::problem_groups::AGENT_PROBLEMS;
use crate::run::agents::AgentDirectory;
use crate::run::refusal::suggestion;
use crate::run::reloads::record_reload;
use agent::definition::AgentDefinition;
use store::agents::{AgentList, AgentPage, AgentRecord};
use values::clock::Timestamp;
use values::session::Hash;

/// A version of an agent's definition.
///
/// Of an agent that the operator has configured, only administrators see more than its name and its
/// description.
#[derive(Debug, Serialize)]
pub struct AgentView {
    /// The definition.
    #[serde(flatten)]
    definition: ShownDefinition,
    /// Names the version: the hash of the definition.
    version: Hash,
    /// When the version was stored first.
    created_at: Timestamp,
    /// Whether the operator has configured it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    configured: bool,
}

/// The part of a definition that the caller may see.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ShownDefinition {
    /// The whole definition.
    Whole(Arc<AgentDefinition>),
    /// The fields that callers need to choose the agent.
    Brief { name: String, description: String },
}

/// A page of agents.
type Agents = ListPage<AgentView>;

/// The agents of configuration files, as they were read again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReloadedAgents {
    /// All of them, by name.
    agents: Vec<ReloadedAgent>,
}

/// An agent of a configuration file.
#[derive(Debug, Serialize, ToSchema)]
struct ReloadedAgent {
    /// The agent's name.
    name: String,
    /// Names the version: the hash of the definition.
    version: Hash,
}

/// Lists agents by name.
#[utoipa::path(get, path = "/v1/agents", tag = "agents", params(
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of agents", body = Agents),
))]
pub(super) async fn list_agents(call: Call, query: QueryParameters) -> Result<Json<Agents>, Problem> {
    let page = taken_page(query)?;
    let list = call.api.runs.agents.list(&call.tenant, &page).await?;
    Ok(shown_page(&call, list, |agent| agent.definition.name.clone()))
}

/// Shows an agent.
#[utoipa::path(get, path = "/v1/agents/{name}", tag = "agents", params(("name" = String, Path)), responses(
    (status = 200, description = "The agent", body = AgentView),
), extensions(("x-problems" = json!([ProblemCode::AgentNotFound]))))]
pub(super) async fn get_agent(call: Call, path: PathParameters, _: NoParameters) -> Result<Json<AgentView>, Problem> {
    let name = known_name(&path)?;
    if let Some(agent) = call.api.runs.agents.lookup(&call.tenant, name).await? {
        return Ok(Json(AgentView::new(&call, agent)));
    }
    // The caller may list all agents, so similar names reveal nothing.
    let similar = call.api.runs.agents.similar(&call.tenant, name, |_| true).await?;
    Err(agent_not_found(name, similar.as_deref()))
}

/// Lists the versions of an agent, the newest first.
///
/// Has those that the tenant has stored, and of an agent of a configuration file those that the
/// tenant's runs have used. They stay when the agent's name is taken away.
#[utoipa::path(get, path = "/v1/agents/{name}/versions", tag = "agents", params(
    ("name" = String, Path), ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of versions", body = Agents),
), extensions(("x-problems" = json!([ProblemCode::AgentNotFound]))))]
pub(super) async fn list_agent_versions(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Agents>, Problem> {
    let (name, page) = (known_name(&path)?, taken_page(query)?);
    let agents = &call.api.runs.agents;
    let list = agents.versions(&call.tenant, name, &page).await?;
    let is_unknown = list.agents.is_empty() && agents.lookup(&call.tenant, name).await?.is_none();
    if is_unknown {
        return Err(agent_not_found(name, None));
    }
    Ok(shown_page(&call, list, |agent| agent.version))
}

/// Stores a new version of an agent.
#[utoipa::path(put, path = "/v1/agents/{name}", tag = "agents", params(
    ("name" = String, Path, pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,64}$"),
), request_body = AgentDefinition, responses(
    (status = 200, description = "The agent as it is stored", body = AgentView),
), extensions(("x-problems" = json!(AGENT_PROBLEMS))))]
pub(super) async fn put_agent(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    JsonBody(body): JsonBody<AgentDefinition>,
) -> Result<Json<AgentView>, Problem> {
    query.finish()?;
    let definition = named(body, path.text("name"))?;
    let agent = call
        .api
        .runs
        .agents
        .put(&call.tenant, definition, &call.requester())
        .await?;
    Ok(Json(AgentView::new(&call, agent)))
}

/// Takes an agent's name away. Its versions stay, for the sessions that used them.
#[utoipa::path(delete, path = "/v1/agents/{name}", tag = "agents", params(("name" = String, Path)), responses(
    (status = 204, description = "Done"),
), extensions(("x-problems" = json!([ProblemCode::AgentNotFound, ProblemCode::AgentIsConfigured]))))]
pub(super) async fn delete_agent(call: Call, path: PathParameters, _: NoParameters) -> Result<StatusCode, Problem> {
    let name = known_name(&path)?;
    if call
        .api
        .runs
        .agents
        .delete(&call.tenant, name, &call.requester())
        .await?
    {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(agent_not_found(name, None))
    }
}

/// Reloads the files of agents, here and then at all other processes.
///
/// The process that handles the request reads its files first. All others that share its store
/// follow within seconds; one whose files can't be used logs that, and its agents stay.
///
/// Replaces all agents of configuration files, or none of them if one can't be used. Runs at work
/// go on with the definition that they began with.
#[utoipa::path(post, path = "/v1/configuration/reload", tag = "agents", responses(
    (status = 200, description = "The agents of configuration files", body = ReloadedAgents),
), extensions(("x-problems" = json!([ProblemCode::AgentFilesInvalid]))))]
pub(super) async fn reload_agents(call: Call, _: NoParameters) -> Result<Json<ReloadedAgents>, Problem> {
    let runs = &call.api.runs;
    let configured = runs.agents.reload().await?;
    record_reload(runs, &configured, &call.requester()).await?;
    let agents = configured.values().map(|agent| ReloadedAgent {
        name: agent.definition.name.clone(),
        version: agent.version,
    });
    Ok(Json(ReloadedAgents {
        agents: agents.collect(),
    }))
}

/// Takes the parameters of a list of agents.
fn taken_page<K: CursorKey>(query: QueryParameters) -> Result<AgentPage<K>, Problem> {
    let Paging { after, limit } = Paging::take(query)?;
    Ok(AgentPage {
        after,
        limit,
        bytes: PAGE_BYTES,
    })
}

/// Shows a page of agents or versions, with a cursor if it is not the last.
fn shown_page<K: CursorKey>(call: &Call, list: AgentList, key: impl Fn(&AgentRecord) -> K) -> Json<Agents> {
    let next = list.agents.last().filter(|_| !list.is_last).map(key);
    let agents = list.agents.into_iter().map(|agent| AgentView::new(call, agent));
    Json(ListPage::with_cursor(agents.collect(), next.as_ref()))
}

/// Gives the definition the name in the path, and checks it.
fn named(definition: AgentDefinition, name: &str) -> Result<AgentDefinition, Problem> {
    check_agent_name(name, "name")?;
    if !definition.name.is_empty() && definition.name != name {
        return Err(Problem::invalid_field("/name", "not the name in the path"));
    }
    check_budget(&definition.budget, "/budget")?;
    check_metadata(&definition.metadata, "/metadata")?;
    Ok(AgentDefinition {
        name: name.to_owned(),
        ..definition
    })
}

/// The schema of a definition that is read. Callers may see only two of its fields, and three
/// fields are added.
impl PartialSchema for AgentView {
    fn schema() -> RefOr<Schema> {
        let mut schema = AgentDefinition::schema();
        if let RefOr::T(Schema::Object(agent)) = &mut schema {
            agent.description = Some(
                "A version of an agent's definition, the current one unless a list of versions has it. Of an agent that the operator has configured, only administrators see \
                 more than its name, its description, its version, its time and that it is configured."
                    .to_owned(),
            );
            agent.additional_properties = None;
            agent.properties.insert("version".to_owned(), Hash::schema());
            agent.properties.insert(
                "created_at".to_owned(),
                instant("When the version was stored first.").into(),
            );
            let configured = ObjectBuilder::new().schema_type(Type::Boolean).description(Some(
                "True for a definition that a configuration file has; absent for one that is only stored.",
            ));
            agent.properties.insert("configured".to_owned(), configured.into());
            agent.required = ["name", "description", "version", "created_at"]
                .map(str::to_owned)
                .into();
        }
        schema
    }
}

impl ToSchema for AgentView {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Agent")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        AgentDefinition::schemas(schemas);
    }
}

impl AgentView {
    /// Makes a view with the whole definition.
    pub fn whole(agents: &AgentDirectory, agent: AgentRecord) -> Self {
        Self {
            version: agent.version,
            created_at: agent.created_at,
            configured: agents.is_configured(&agent),
            definition: ShownDefinition::Whole(agent.definition),
        }
    }

    /// Makes a view with the part of the definition that the caller may see.
    fn new(call: &Call, agent: AgentRecord) -> Self {
        let mut view = Self::whole(&call.api.runs.agents, agent);
        if let ShownDefinition::Whole(agent) = &view.definition
            && view.configured
            && !call.is_administrator()
        {
            view.definition = ShownDefinition::Brief {
                name: agent.name.clone(),
                description: agent.description.clone(),
            };
        }
        view
    }
}

/// Returns the name in the path if it is a possible name. Other names need no query.
fn known_name(path: &PathParameters) -> Result<&str, Problem> {
    let name = path.text("name");
    if AgentDefinition::is_valid_name(name) {
        Ok(name)
    } else {
        Err(agent_not_found(name, None))
    }
}

fn agent_not_found(name: &str, similar: Option<&str>) -> Problem {
    let shown: String = name.chars().take(AgentDefinition::MAX_NAME_LENGTH).collect();
    let detail = format!("there is no agent named {shown:?}{}", suggestion(similar));
    Problem::new(ProblemCode::AgentNotFound, detail)
}
