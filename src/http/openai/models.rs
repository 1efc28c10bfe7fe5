//! `GET /v1/models`: the agents and the models that a caller may run.

use axum::response::Response;
use serde::Serialize;

use super::body::OpenAiObject;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::request::shortened;
use crate::http::json_response::json_with_room;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::run::{Offered, offered, offered_lookup};

/// The time of models that have none: 2024-01-01.
const NO_TIME: i64 = 1_704_067_200;

/// An agent or a model, as a model.
#[derive(Debug, Serialize)]
struct ModelObject {
    id: String,
    object: &'static str,
    created: i64,
    owned_by: String,
}

#[derive(Debug, Serialize)]
struct ModelList {
    object: &'static str,
    data: Vec<ModelObject>,
}

/// Lists the agents, and then the models that the operator has named.
#[utoipa::path(get, path = "/v1/models", tag = "openai", responses(
    (status = 200, description = "The list", body = OpenAiObject),
))]
pub(in crate::http) async fn list_models(call: Call) -> Result<Response, Problem> {
    let found = offered(&call.api.runs, &call.tenant, &call.run_limits()).await?;
    let list = ModelList {
        object: "list",
        data: found.into_iter().map(ModelObject::from).collect(),
    };
    json_with_room(&call, list, 0).await
}

/// Shows an agent, or a model as `PROVIDER/MODEL`.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "openai", params(("model" = String, Path)), responses(
    (status = 200, description = "The model", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::AgentNotFound]))))]
pub(in crate::http) async fn get_model(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let name = path.text("model");
    let found = offered_lookup(&call.api.runs, &call.tenant, &call.run_limits(), name).await?;
    let found = found.ok_or_else(|| {
        let words = format!("The model '{}' does not exist.", shortened(name));
        Problem::new(ProblemCode::AgentNotFound, words)
    })?;
    json_with_room(&call, ModelObject::from(found), 0).await
}

impl From<Offered> for ModelObject {
    fn from(Offered { name, created_at }: Offered) -> Self {
        let provider = name.split_once('/').map(|(provider, _)| provider.to_owned());
        Self {
            object: "model",
            created: created_at.map_or(NO_TIME, |time| time.timestamp()),
            owned_by: provider.unwrap_or_else(|| "agent-runtime".to_owned()),
            id: name,
        }
    }
}
