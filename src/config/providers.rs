//! `[models]`, `[providers.NAME]` and `[capabilities]`: the addresses of models, the credentials,
//! and the capabilities of models.
//!
//! A key itself is never part of the configuration. It is read from the named variable or file.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::model_names::model_named;
use super::secrets::SecretSource;
use super::sections::Sections;
use models::{AwsCredentials, AwsSettings, Capabilities, ClientSettings, ProviderKind, ProviderSettings};
use values::http_headers::CREDENTIAL_HEADERS;
use values::settings::{text, variable_name};

/// The part of a provider that only the kind `bedrock` has.
#[derive(Default, Deserialize)]
struct Signing {
    #[serde(default)]
    aws: Option<Aws>,
}

/// The region of a provider, and where the credentials that sign its requests are found.
#[derive(Default, Deserialize)]
struct Aws {
    #[serde(default, deserialize_with = "region")]
    region: Option<String>,
    /// The variable that holds the region; it wins over `region`.
    #[serde(default, deserialize_with = "variable_name")]
    region_env: Option<String>,
    #[serde(default, deserialize_with = "variable_name")]
    access_key_id_env: Option<String>,
    #[serde(default, deserialize_with = "variable_name")]
    secret_access_key_env: Option<String>,
    #[serde(default, deserialize_with = "variable_name")]
    session_token_env: Option<String>,
}

/// Reads how all providers are called.
pub(super) fn client(sections: &Sections<'_>) -> Result<ClientSettings, ConfigError> {
    let settings = ClientSettings {
        timeouts: sections.read("models")?,
        retries: sections.read("models")?,
        caps: sections.read("models")?,
        proxy: None,
    };
    if settings.retries.max_delay < settings.retries.base_delay {
        let problem = "shorter than `models.retry_base_delay`";
        return Err(sections.invalid(&["models", "retry_max_delay"], problem));
    }
    if settings.caps.response_bytes < settings.caps.event_bytes {
        let problem = "smaller than `models.max_event_bytes`";
        return Err(sections.invalid(&["models", "max_response_bytes"], problem));
    }
    Ok(settings)
}

/// Reads the providers with their credentials.
pub(super) fn read(sections: &Sections<'_>) -> Result<BTreeMap<String, ProviderSettings>, ConfigError> {
    let mut sources: BTreeMap<String, SecretSource> = sections.read("providers")?;
    let mut signing: BTreeMap<String, Signing> = sections.read("providers")?;
    let mut providers: BTreeMap<String, ProviderSettings> = sections.read("providers")?;
    for (name, provider) in &mut providers {
        let source = sources.remove(name).unwrap_or_default();
        let aws = signing.remove(name).unwrap_or_default().aws;
        check_provider(sections, name, provider, aws.is_some())?;
        provider.name.clone_from(name);
        provider.api_key = sections.secret(&["providers", name, "api_key_file"], &source)?;
        let mut key_sources: Vec<String> = source.shown().into_iter().collect();
        if provider.kind == ProviderKind::Bedrock {
            let aws = aws.unwrap_or_default();
            provider.aws = aws.settings(sections, name)?;
            if let (Some(id), Some(key)) = (aws.access_key_id_env, aws.secret_access_key_env) {
                key_sources.push(format!("{id} and {key}"));
            }
        }
        provider.api_key_source = key_sources.join(", or ");
    }
    let capabilities: BTreeMap<String, Capabilities> = sections.read("capabilities")?;
    let mut by_provider: BTreeMap<String, BTreeMap<String, Capabilities>> = BTreeMap::new();
    for (name, own) in capabilities {
        let model = model_named(sections, "capabilities", "a model with capabilities", &name, &providers)?;
        let models = by_provider.entry(model.provider().to_owned()).or_default();
        models.insert(model.model().to_owned(), own);
    }
    for (name, models) in by_provider {
        if let Some(provider) = providers.get_mut(&name) {
            provider.capabilities = Arc::new(models);
        }
    }
    Ok(providers)
}

impl Aws {
    /// Finds the region in force, which becomes a part of a host's name, and the credentials.
    fn settings(&self, sections: &Sections<'_>, provider: &str) -> Result<AwsSettings, ConfigError> {
        let invalid = |key: &str, problem: &str| Err(sections.invalid(&["providers", provider, "aws", key], problem));
        let named_region = sections.variable(self.region_env.as_deref())?;
        let region = match (&named_region, &self.region) {
            (Some(region), _) if is_region(region.expose_secret()) => region.expose_secret(),
            (Some(_), _) => {
                return invalid(
                    "region_env",
                    "the variable holds no name of a region, such as us-east-1",
                );
            }
            (None, Some(region)) => region,
            (None, None) => return invalid("region", "missing: this kind of provider needs a region"),
        };
        let access_key_id = sections.variable(self.access_key_id_env.as_deref())?;
        let secret_access_key = sections.variable(self.secret_access_key_env.as_deref())?;
        let session_token = sections.variable(self.session_token_env.as_deref())?;
        Ok(AwsSettings {
            region: region.to_owned(),
            credentials: access_key_id.zip(secret_access_key).map(|(id, key)| AwsCredentials {
                access_key_id: id.expose_secret().to_owned(),
                secret_access_key: key,
                session_token,
            }),
        })
    }
}

fn is_region(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=32).contains(&text.len()) && text.chars().all(plain)
}

fn region<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let wanted = "the name of a region of AWS, such as \"us-east-1\"";
    text(deserializer, wanted, |words| {
        is_region(words).then(|| Some(words.to_owned()))
    })
}

fn check_provider(
    sections: &Sections<'_>,
    name: &str,
    provider: &ProviderSettings,
    has_aws: bool,
) -> Result<(), ConfigError> {
    if name.is_empty() || name.contains(|c: char| c == '/' || c.is_control() || c.is_whitespace()) {
        let problem = "a provider's name can't be empty or hold `/` or blanks";
        return Err(sections.invalid(&["providers", name], problem));
    }
    let fault = |key, problem: &str| Err(sections.invalid(&["providers", name, key], problem));
    let scripted = provider.kind == ProviderKind::Scripted;
    if scripted && provider.base_url.is_some() {
        return fault("base_url", "a scripted provider has no address");
    }
    let bedrock = provider.kind == ProviderKind::Bedrock;
    if !bedrock && has_aws {
        return fault(
            "aws",
            "only a provider of the kind bedrock has a region and signs its requests",
        );
    }
    if !scripted && !bedrock && provider.base_url.is_none() {
        return fault("base_url", "missing: this kind of provider needs an address");
    }
    if !scripted && provider.script.is_some() {
        return fault("script", "only a scripted provider plays a script");
    }
    if provider.think_tags.is_some() && provider.kind != ProviderKind::OpenAiChat {
        return fault(
            "think_tags",
            "only a provider of the kind openai_chat has reasoning between tags",
        );
    }
    if provider.error_words.all().any(|(_, word)| word.trim().is_empty()) {
        return fault("error_words", "an empty word is part of every error");
    }
    for (header, value) in &provider.headers {
        if let Some(problem) = header_fault(header, value.expose_secret()) {
            return Err(sections.invalid(&["providers", name, "headers", header], problem));
        }
    }
    Ok(())
}

fn header_fault(name: &str, value: &str) -> Option<&'static str> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        Some("not the name of a header")
    } else if CREDENTIAL_HEADERS.contains(&name.to_lowercase().as_str()) {
        Some("a header with credentials: name their source in api_key_env or api_key_file instead")
    } else if !value.chars().all(|c| c == '\t' || (' '..='~').contains(&c)) {
        Some("a header's value must be printable ASCII")
    } else {
        None
    }
}
