//! The configured models, by name. Made once at start; looking up a model does no IO.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::Url;

use super::address::{SettingsError, is_local};
use super::client::{HttpModel, Shared};
use super::protocols::{NotBuilt, protocol_of};
use super::retry::{Retry, TokioPauses};
use super::scripted::{Script, ScriptError, Scripted};
use super::settings::{ClientSettings, ProviderKind, ProviderSettings};
use super::transport::{Transport, TransportError};
use agent::ports::{Model, ModelCatalog, ModelLookupError, ProviderInfo};
use values::clock::Clock;
use values::ids::IdSource;
use values::model_ref::ModelRef;

/// Settings that no catalog can be made of.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// Two providers have one name.
    #[error("two providers are named {provider:?}")]
    Duplicate { provider: String },
    /// The HTTP client can't be made.
    #[error("the provider {provider:?} has no HTTP client")]
    Transport {
        provider: String,
        #[source]
        source: TransportError,
    },
    /// The client's settings are wrong.
    #[error("the settings of the provider {provider:?} are wrong")]
    Client {
        provider: String,
        #[source]
        source: SettingsError,
    },
    /// The script is wrong.
    #[error("the script of the provider {provider:?} can't be used")]
    Script {
        provider: String,
        #[source]
        source: ScriptError,
    },
}

/// The configured providers.
#[derive(Debug)]
pub struct Catalog {
    providers: BTreeMap<String, Provider>,
}

#[derive(Debug)]
struct Provider {
    kind: ProviderKind,
    server: Option<(String, u16)>,
    has_credentials: bool,
    models: Vec<String>,
    /// The model, or the error of each name that leads to it.
    model: Result<Arc<dyn Model>, ModelLookupError>,
}

impl Catalog {
    /// Makes the clients of the providers. A provider whose key is missing, or whose protocol was
    /// not built in, is an error only when one of its models is requested.
    pub fn new(
        providers: Vec<ProviderSettings>,
        client: &ClientSettings,
        ids: Arc<dyn IdSource>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CatalogError> {
        let mut maker = Maker {
            client,
            ids,
            clock,
            shared: None,
        };
        let mut made = BTreeMap::new();
        for settings in providers {
            let model = maker.model(&settings)?;
            let provider = Provider {
                kind: settings.kind,
                server: server_of(&settings),
                has_credentials: !lacks_key(&settings),
                models: settings.models,
                model,
            };
            if made.insert(settings.name.clone(), provider).is_some() {
                return Err(CatalogError::Duplicate {
                    provider: settings.name,
                });
            }
        }
        Ok(Self { providers: made })
    }
}

impl ModelCatalog for Catalog {
    fn model(&self, name: &ModelRef) -> Result<Arc<dyn Model>, ModelLookupError> {
        let found = self.providers.get(name.provider());
        let provider = found.ok_or_else(|| ModelLookupError::UnknownProvider {
            provider: name.provider().to_owned(),
            known: self.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })?;
        if !provider.models.is_empty() && !provider.models.iter().any(|model| model == name.model()) {
            return Err(ModelLookupError::UnknownModel {
                provider: name.provider().to_owned(),
                model: name.model().to_owned(),
            });
        }
        provider.model.clone()
    }

    fn names(&self) -> Vec<ModelRef> {
        let usable = self.providers.iter().filter(|(_, provider)| provider.model.is_ok());
        let names =
            usable.flat_map(|(name, provider)| provider.models.iter().map(move |model| format!("{name}/{model}")));
        names.filter_map(|name| name.parse().ok()).collect()
    }

    fn providers(&self) -> Vec<ProviderInfo> {
        let info = |(name, provider): (&String, &Provider)| ProviderInfo {
            name: name.clone(),
            kind: provider.kind.as_str(),
            server: provider.server.clone(),
            has_credentials: provider.has_credentials,
            models: provider.models.clone(),
        };
        self.providers.iter().map(info).collect()
    }
}

struct Maker<'a> {
    client: &'a ClientSettings,
    ids: Arc<dyn IdSource>,
    clock: Arc<dyn Clock>,
    /// Made for the first provider that needs the network, so that a demo starts even without
    /// certificates.
    shared: Option<Shared>,
}

impl Maker<'_> {
    fn model(&mut self, settings: &ProviderSettings) -> Result<Result<Arc<dyn Model>, ModelLookupError>, CatalogError> {
        let provider = || settings.name.clone();
        let protocol = match protocol_of(settings.kind) {
            Ok(Some(protocol)) => protocol,
            Ok(None) => return self.scripted(settings).map(Ok),
            Err(NotBuilt { feature }) => {
                let provider = provider();
                return Ok(Err(ModelLookupError::NotBuilt { provider, feature }));
            }
        };
        if lacks_key(settings) {
            return Ok(Err(ModelLookupError::MissingKey {
                provider: provider(),
                variable: settings.api_key_source.clone(),
            }));
        }
        let shared = self.shared().map_err(|source| CatalogError::Transport {
            provider: provider(),
            source,
        })?;
        let model = HttpModel::new(settings, shared, protocol).map_err(|source| CatalogError::Client {
            provider: provider(),
            source,
        })?;
        Ok(Ok(Arc::new(model)))
    }

    fn scripted(&self, settings: &ProviderSettings) -> Result<Arc<dyn Model>, CatalogError> {
        let script = settings.script.as_deref().map_or_else(Script::demo, Script::read);
        let script = script.map_err(|source| CatalogError::Script {
            provider: settings.name.clone(),
            source,
        })?;
        let model = Scripted::new(script, Arc::clone(&self.ids));
        Ok(Arc::new(model.structured_by(settings.structured_output)))
    }

    fn shared(&mut self) -> Result<Shared, TransportError> {
        if let Some(shared) = &self.shared {
            return Ok(shared.clone());
        }
        let shared = Shared {
            transport: Arc::new(Transport::new(self.client)?),
            retry: Retry::new(self.client.retries, Arc::new(TokioPauses)),
            caps: self.client.caps,
            ids: Arc::clone(&self.ids),
            clock: Arc::clone(&self.clock),
        };
        Ok(self.shared.insert(shared).clone())
    }
}

/// Returns the host and the port of a provider; `None` if it has no address.
fn server_of(settings: &ProviderSettings) -> Option<(String, u16)> {
    let protocol = protocol_of(settings.kind).ok().flatten()?;
    let url = protocol.address.endpoint(settings).ok()?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

/// Returns whether a configured key is missing. Servers on this machine seldom need one.
fn lacks_key(settings: &ProviderSettings) -> bool {
    let base = settings.base_url.as_deref().unwrap_or_default();
    let has_key = settings.api_key.is_some() || settings.aws.credentials.is_some();
    !has_key && !settings.api_key_source.is_empty() && !Url::parse(base).is_ok_and(|url| is_local(&url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::clock::SystemClock;
    use values::ids::UuidV7Source;

    fn catalog(providers: Vec<ProviderSettings>) -> Result<Catalog, CatalogError> {
        Catalog::new(
            providers,
            &ClientSettings::default(),
            Arc::new(UuidV7Source),
            Arc::new(SystemClock),
        )
    }

    fn settings(name: &str, kind: ProviderKind) -> ProviderSettings {
        ProviderSettings::new(name, kind)
    }

    #[test]
    fn a_name_leads_to_a_model_or_to_an_error() {
        let openai = ProviderSettings {
            api_key_source: "OPENAI_API_KEY".to_owned(),
            ..settings("openai", ProviderKind::OpenAiChat)
        };
        let vllm = ProviderSettings {
            api_key_source: "VLLM_API_KEY".to_owned(),
            base_url: Some("http://127.0.0.1:8000/v1".to_owned()),
            models: vec!["a/b".to_owned()],
            ..settings("vllm", ProviderKind::OpenAiChat)
        };
        let catalog = catalog(vec![openai, vllm, settings("demo", ProviderKind::Scripted)]).unwrap();
        let lookup = |name: &str| {
            catalog
                .model(&name.parse().unwrap())
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        assert_eq!(lookup("demo/anything"), Ok(()));
        assert_eq!(lookup("vllm/a/b"), Ok(()), "a server on this machine may need no key");
        assert_eq!(
            lookup("vllm/c").unwrap_err(),
            r#"the provider "vllm" does not offer the model "c""#
        );
        assert_eq!(
            lookup("openai/x").unwrap_err(),
            r#"the provider "openai" has no API key: set OPENAI_API_KEY"#
        );
        let known = r#"no provider is named "other"; known are demo, openai, vllm"#;
        assert_eq!(lookup("other/x").unwrap_err(), known);
    }

    #[test]
    fn wrong_settings_are_errors_at_start() {
        let base = |base: &str, kind| ProviderSettings {
            base_url: Some(base.to_owned()),
            ..settings("x", kind)
        };
        let script = ProviderSettings {
            script: Some("/nowhere.toml".into()),
            ..settings("x", ProviderKind::Scripted)
        };
        for (providers, expected) in [
            (
                vec![base("ftp://h", ProviderKind::OpenAiChat)],
                r#"the settings of the provider "x" are wrong"#,
            ),
            (
                vec![base("ftp://h", ProviderKind::OpenAiResponses)],
                r#"the settings of the provider "x" are wrong"#,
            ),
            (vec![script], r#"the script of the provider "x" can't be used"#),
            (
                vec![
                    base("http://h", ProviderKind::OpenAiChat),
                    base("http://h", ProviderKind::OpenAiResponses),
                ],
                r#"two providers are named "x""#,
            ),
        ] {
            assert_eq!(catalog(providers).unwrap_err().to_string(), expected);
        }
    }
}
