//! The definition of HTTP tools as a file has it. No IO.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::secrets::{SecretValue, ToolSecrets};
use crate::fault::DefinitionFault;
use net::outgoing::{HttpMethod, Network};
use values::json::Value;

/// The limits of the keys.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
const MAX_RETRIES: usize = 10;
const MAX_REDIRECTS: usize = 20;
const MAX_RESPONSE: usize = 64 << 20;

/// One file: one tool, or tools made of an OpenAPI document.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpToolDefinition {
    /// The name; empty for that of the file.
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
    /// A JSON pointer to what the model reads of a response.
    #[serde(default)]
    pub(super) response: Option<String>,
    #[serde(default)]
    pub(super) idempotent: Option<bool>,
    /// The header with the idempotency key; empty for none.
    #[serde(default = "idempotency_header")]
    pub(super) idempotency_header: String,
    #[serde(default = "timeout", deserialize_with = "deserialize_timeout")]
    pub(super) timeout: Duration,
    #[serde(default = "max_retries", deserialize_with = "retries")]
    pub(super) max_retries: usize,
    #[serde(default = "max_redirects", deserialize_with = "redirects")]
    pub(super) max_redirects: usize,
    #[serde(default = "max_response_bytes", deserialize_with = "response_bytes")]
    pub(super) max_response_bytes: usize,
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
    /// The text.
    Text(String),
    /// A secret.
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

/// Reads a timeout such as `30s`.
pub(crate) fn deserialize_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = humantime::parse_duration(&text).ok();
    let allowed = Duration::from_millis(10)..=MAX_TIMEOUT;
    duration
        .filter(|duration| allowed.contains(duration))
        .ok_or_else(|| serde::de::Error::custom("not a duration from 10ms to 10m, such as \"30s\""))
}

fn retries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    bounded(deserializer, 0, MAX_RETRIES)
}

fn redirects<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    bounded(deserializer, 0, MAX_REDIRECTS)
}

fn response_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    bounded(deserializer, 1 << 10, MAX_RESPONSE)
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D, min: usize, max: usize) -> Result<usize, D::Error> {
    let number = usize::deserialize(deserializer)?;
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(serde::de::Error::custom(format!("not an integer from {min} to {max}")))
    }
}
