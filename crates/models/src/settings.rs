//! Settings of providers and of their HTTP client: plain data.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::capability_settings::Capabilities;
use agent::ports::{ModelErrorClass, StructuredOutput};
use values::settings::{duration, integer, optional_integer, path, secret_text};

/// The protocol that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// OpenAI chat completions, which most servers offer.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// OpenAI responses.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Amazon Bedrock's Converse.
    Bedrock,
    /// Plays a script.
    Scripted,
}

impl ProviderKind {
    /// The kinds of providers that are reached over HTTP.
    pub const OVER_HTTP: [Self; 5] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
    ];

    /// Returns the name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Scripted => "scripted",
        }
    }
}

/// A provider. Its name, its credentials and the capabilities of its models are found elsewhere.
#[derive(Debug, Clone, Deserialize)]
pub struct ProviderSettings {
    /// The name before the slash of a model's name.
    #[serde(skip)]
    pub name: String,
    /// The protocol.
    pub kind: ProviderKind,
    /// The base address of the protocol's paths, without a trailing slash; `None` for the public
    /// address of the protocol's owner.
    #[serde(default, deserialize_with = "base_url")]
    pub base_url: Option<String>,
    #[serde(skip)]
    pub api_key: Option<SecretString>,
    /// The source of the key, for error messages; empty when the provider needs none.
    #[serde(skip)]
    pub api_key_source: String,
    /// The models that it offers; empty for any.
    #[serde(default)]
    pub models: Vec<String>,
    /// Whether responses are streamed.
    #[serde(default = "streams")]
    pub stream: bool,
    /// The way in which models are asked for structured output; `None` leaves it to the protocol.
    #[serde(default)]
    pub structured_output: Option<StructuredOutput>,
    /// Further headers of each request. A value may be a credential.
    #[serde(default)]
    pub headers: BTreeMap<String, SecretString>,
    /// Whether requests have the header `traceparent`, if the run is recorded.
    #[serde(default)]
    pub trace_context: bool,
    /// The region and the credentials of AWS.
    #[serde(skip)]
    pub aws: AwsSettings,
    /// The script of a scripted provider; `None` for the built-in demo.
    #[serde(default, deserialize_with = "path")]
    pub script: Option<PathBuf>,
    /// The most tokens that a request may ask for; `None` if it is not known.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, { i64::MAX }, _>")]
    pub max_output_tokens: Option<u64>,
    /// Whether its models write their reasoning into the text, between `<think>` and `</think>`;
    /// `None` lets the address decide.
    #[serde(default)]
    pub think_tags: Option<bool>,
    /// The configured capabilities of its models, by model.
    #[serde(skip)]
    pub capabilities: Arc<BTreeMap<String, Capabilities>>,
    /// Words of its errors beyond the words that all servers share.
    #[serde(default)]
    pub error_words: ErrorWords,
}

/// Codes and phrases that tell the class of a provider's error, in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorWords {
    /// The conversation is too long.
    pub context: Vec<String>,
    /// Too many requests for now.
    pub rate_limit: Vec<String>,
    /// The provider has no capacity.
    pub overload: Vec<String>,
    /// The provider's rules for contents forbid the request.
    pub content_policy: Vec<String>,
}

impl ProviderSettings {
    /// Makes the settings of a provider with streamed responses, any model and no key.
    pub fn new(name: impl Into<String>, kind: ProviderKind) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: None,
            api_key: None,
            api_key_source: String::new(),
            models: Vec::new(),
            stream: true,
            structured_output: None,
            headers: BTreeMap::new(),
            trace_context: false,
            aws: AwsSettings::default(),
            script: None,
            max_output_tokens: None,
            think_tags: None,
            error_words: ErrorWords::default(),
            capabilities: Arc::default(),
        }
    }
}

fn streams() -> bool {
    true
}

fn base_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let wanted = "a URL such as \"https://api.openai.com/v1\", without user, query or fragment";
    secret_text(deserializer, wanted, |text| {
        let url = text.trim().trim_end_matches('/');
        let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        let plain = address
            .chars()
            .all(|c| c.is_ascii_graphic() && !"@?#\"<>\\".contains(c));
        let named = !address.starts_with(['/', ':']) && !address.is_empty();
        (plain && named).then(|| Some(url.to_owned()))
    })
}

impl ErrorWords {
    /// Iterates over all words, with the class that each tells.
    pub fn all(&self) -> impl Iterator<Item = (ModelErrorClass, &str)> {
        let words = [
            (ModelErrorClass::Context, &self.context),
            (ModelErrorClass::RateLimit, &self.rate_limit),
            (ModelErrorClass::Overload, &self.overload),
            (ModelErrorClass::Policy, &self.content_policy),
        ];
        words
            .into_iter()
            .flat_map(|(class, words)| words.iter().map(move |word| (class, word.as_str())))
    }
}

/// The settings of requests to AWS.
#[derive(Debug, Clone, Default)]
pub struct AwsSettings {
    /// The region, such as `us-east-1`.
    pub region: String,
    /// The credentials that sign requests; an API key replaces them.
    pub credentials: Option<AwsCredentials>,
}

/// Credentials of AWS.
#[derive(Debug, Clone)]
pub struct AwsCredentials {
    /// The id of the access key.
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    /// The token of temporary credentials.
    pub session_token: Option<SecretString>,
}

/// The settings of calls of providers.
#[derive(Debug, Clone, Default)]
pub struct ClientSettings {
    /// Limits of time.
    pub timeouts: TimeoutSettings,
    /// The retries of failed calls.
    pub retries: RetrySettings,
    /// Limits of size.
    pub caps: CapSettings,
    /// The address of a proxy. The process environment is ignored.
    pub proxy: Option<String>,
}

/// Limits of time of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct TimeoutSettings {
    /// Until the connection is established, TLS included.
    #[serde(rename = "connect_timeout", deserialize_with = "duration::<10, 600_000, _>")]
    pub connect: Duration,
    /// From the start of the request to the first byte of the response body.
    #[serde(rename = "first_byte_timeout", deserialize_with = "duration::<10, 86_400_000, _>")]
    pub first_byte: Duration,
    /// Between two chunks of the response.
    #[serde(rename = "idle_timeout", deserialize_with = "duration::<10, 86_400_000, _>")]
    pub idle: Duration,
    /// From the start of the request to the end of the response.
    #[serde(rename = "total_timeout", deserialize_with = "duration::<10, 86_400_000, _>")]
    pub total: Duration,
}

impl Default for TimeoutSettings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(2),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(10),
        }
    }
}

/// The retries of failed calls: full jitter over an exponential delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct RetrySettings {
    /// Attempts after the first; 0 for none.
    #[serde(deserialize_with = "integer::<_, 0, 20, _>")]
    pub max_retries: u32,
    /// The upper bound of the first delay; it doubles with each further one.
    #[serde(rename = "retry_base_delay", deserialize_with = "duration::<1, 600_000, _>")]
    pub base_delay: Duration,
    /// The longest delay, even if the provider asks for a longer one.
    #[serde(rename = "retry_max_delay", deserialize_with = "duration::<1, 3_600_000, _>")]
    pub max_delay: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_retries: 4,
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }
}

/// Limits of a provider's responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CapSettings {
    /// Bytes of one server-sent event.
    #[serde(
        rename = "max_event_bytes",
        deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>"
    )]
    pub event_bytes: usize,
    /// Bytes of a whole response, decompressed.
    #[serde(
        rename = "max_response_bytes",
        deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>"
    )]
    pub response_bytes: usize,
    /// Tool calls of one completion.
    #[serde(skip)]
    pub tool_calls: usize,
    /// Parts and citations of one completion, together with the values in its blocks that arrive in
    /// pieces.
    #[serde(skip)]
    pub parts: usize,
}

impl Default for CapSettings {
    fn default() -> Self {
        Self {
            event_bytes: 8 << 20,
            response_bytes: 64 << 20,
            tool_calls: 256,
            parts: 16_384,
        }
    }
}
