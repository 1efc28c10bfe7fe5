//! The definition of HTTP tools as a file has it. No IO.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::secrets::{SecretValue, ToolSecrets};
use crate::fault::DefinitionFault;
use net::outgoing::{HttpMethod, Network};
use values::json::Value;
use values::settings::{duration, integer};

/// One file: one tool, or tools made of an OpenAPI document.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpToolDefinition {
    /// The name; if it is empty, the tool is named like its file.
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    method: Option<HttpMethod>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    body: Option<Value>,
    #[serde(default)]
    openapi: Option<PathBuf>,
    #[serde(default)]
    base_url: Option<String>,
    #[serde(default)]
    operations: Option<Vec<String>>,
    #[serde(default)]
    prefix: Option<String>,
    /// Headers of every request.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, ValueSource>,
    /// Parts of the query of every request.
    #[serde(default)]
    pub(super) query: BTreeMap<String, ValueSource>,
    /// A JSON pointer to the part of a response that the model reads.
    #[serde(default)]
    pub(super) response: Option<String>,
    #[serde(default)]
    pub(super) idempotent: Option<bool>,
    /// The header with the idempotency key; empty for none.
    #[serde(default = "idempotency_header")]
    pub(super) idempotency_header: String,
    #[serde(default = "timeout", deserialize_with = "duration::<10, 600_000, _>")]
    pub(super) timeout: Duration,
    #[serde(default = "max_retries", deserialize_with = "integer::<_, 0, 10, _>")]
    pub(super) max_retries: usize,
    #[serde(default = "max_redirects", deserialize_with = "integer::<_, 0, 20, _>")]
    pub(super) max_redirects: usize,
    #[serde(
        default = "max_response_bytes",
        deserialize_with = "integer::<_, 1_024, 67_108_864, _>"
    )]
    pub(super) max_response_bytes: usize,
    /// Whether requests have the header `traceparent`, if the run is recorded.
    #[serde(default)]
    pub(super) trace_context: bool,
    #[serde(default)]
    pub(super) allow_http: bool,
    #[serde(default)]
    pub(super) allow_networks: Vec<Network>,
}

/// A value in a definition: a text, which may have parameters, or a secret.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "a text, or a table such as { secret = \"NAME\", prefix = \"Bearer \" }"
)]
pub(crate) enum ValueSource {
    Text(String),
    Secret(SecretReference),
}

impl ValueSource {
    /// Returns the text, or the whole secret, which it adds to those in use.
    pub(crate) fn resolve(
        &self,
        key: &str,
        secrets: &ToolSecrets,
        used: &mut Vec<SecretValue>,
    ) -> Result<String, DefinitionFault> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Secret(reference) => {
                let secret = SecretValue::find(secrets, key, &reference.secret, &reference.prefix)?;
                let value = secret.exposed();
                used.push(secret);
                Ok(value)
            }
        }
    }
}

/// The name of a secret, and the text before the secret.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretReference {
    /// The name.
    pub(crate) secret: String,
    /// The text before the secret, such as `Bearer `.
    #[serde(default)]
    pub(crate) prefix: String,
}

/// Where the requests of a definition are described.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpToolSource {
    /// In the definition.
    Declared(DeclaredRequest),
    /// In an OpenAPI document.
    OpenApi(ChosenOperations),
}

/// A request that a definition describes.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredRequest {
    pub(super) description: String,
    pub(super) method: HttpMethod,
    pub(super) url: String,
    pub(super) parameters: Option<Value>,
    pub(super) body: Option<Value>,
}

/// Operations of an OpenAPI document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenOperations {
    /// The path of the document, relative to the file.
    pub document: PathBuf,
    pub(super) base_url: String,
    pub(super) operations: Vec<String>,
    pub(super) prefix: String,
}

impl HttpToolDefinition {
    /// Returns where the requests are described. A definition has the keys of one kind only.
    pub fn source(&self) -> Result<HttpToolSource, DefinitionFault> {
        let required = |key: &str| DefinitionFault::new(key, "missing");
        let Some(document) = &self.openapi else {
            let others = [
                ("base_url", self.base_url.is_some()),
                ("operations", self.operations.is_some()),
                ("prefix", self.prefix.is_some()),
            ];
            refuse(&others, "only a definition with `openapi` has it")?;
            return Ok(HttpToolSource::Declared(DeclaredRequest {
                description: self.description.clone().ok_or_else(|| required("description"))?,
                method: self.method.unwrap_or(HttpMethod::Get),
                url: self.url.clone().ok_or_else(|| required("url"))?,
                parameters: self.parameters.clone(),
                body: self.body.clone(),
            }));
        };
        let others = [
            ("description", self.description.is_some()),
            ("method", self.method.is_some()),
            ("url", self.url.is_some()),
            ("parameters", self.parameters.is_some()),
            ("body", self.body.is_some()),
        ];
        refuse(&others, "the OpenAPI document has it; leave it out")?;
        Ok(HttpToolSource::OpenApi(ChosenOperations {
            document: document.clone(),
            base_url: self.base_url.clone().ok_or_else(|| required("base_url"))?,
            operations: self.operations.clone().ok_or_else(|| required("operations"))?,
            prefix: self.prefix.clone().unwrap_or_default(),
        }))
    }
}

fn refuse(keys: &[(&str, bool)], problem: &str) -> Result<(), DefinitionFault> {
    let present = keys.iter().find(|(_, is_present)| *is_present);
    present.map_or(Ok(()), |(key, _)| Err(DefinitionFault::new(*key, problem)))
}

fn idempotency_header() -> String {
    "idempotency-key".to_owned()
}

fn timeout() -> Duration {
    Duration::from_secs(30)
}

fn max_retries() -> usize {
    2
}

fn max_redirects() -> usize {
    3
}

fn max_response_bytes() -> usize {
    1 << 20
}
