//! The trace of a request to a model: its times and its attempts. It never repeats the request.

use serde::{Deserialize, Serialize};

use super::error::AgentError;
use values::clock::Timestamp;
use values::model_ref::ModelRef;

/// A request to a model, with its retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ModelRequestTrace {
    /// The model.
    pub model: ModelRef,
    /// When the first attempt began.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    pub started_at: Timestamp,
    /// When the first piece of the completion arrived; null if none did.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    #[serde(serialize_with = "values::clock::write_some_time")]
    pub first_token_at: Option<Timestamp>,
    /// When the completion ended, was cut or failed.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    pub ended_at: Timestamp,
    /// The number of attempts that have begun: more than 1 after retries.
    pub attempts: u32,
    /// The error of the last attempt; null if the completion is complete or was cut.
    pub error: Option<AgentError>,
}
