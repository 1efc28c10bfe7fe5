//! Merges the layers into a checked [`Config`].

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_path_to_error::Segment;
use toml::Value;

use super::Config;
use super::capabilities;
use super::context_windows;
use super::environment::{self, UnreadVariable};
use super::error::{ConfigError, Fault};
use super::explanation;
use super::limits;
use super::overrides::split_key;
use super::prices;
use super::providers;
use super::sandbox;
use super::schema::DEFAULTS;
use super::secrets::{read_secret, secret_variable};
use super::settings::{KeyPath, Origin, Settings, dotted, key_path};
use super::sources::Sources;
use super::toml_layer::{read_document, read_text};
use super::tools;
use super::webhooks;
use models::ProviderKind;
use values::spelling::{meant, nearest};

/// The default paths of the configuration file.
const FILE_NAMES: [&str; 2] = ["agent-runtime.toml", "config/agent-runtime.toml"];

/// A configuration, and where each of its values came from.
pub struct Loaded {
    pub config: Config,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// Another file, which would be read if the first one did not exist.
    pub unread_file: Option<PathBuf>,
    /// Variables that look like settings and have no effect.
    pub unread_variables: Vec<UnreadVariable>,
    settings: Settings,
}

impl Loaded {
    /// Lists every key in force with its value and its origin, without secrets.
    pub fn explain(&self) -> String {
        explanation::explain(&self.settings, &self.config)
    }

    /// Returns where a key such as `["http", "listen"]` was set.
    pub fn origin(&self, path: &[&str]) -> Origin {
        self.settings.origin(&key_path(path))
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("config", &self.config)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// Reads all layers and checks them as a whole.
///
/// An unset variable of a secret is no error: that provider or webhook then
/// has none.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let mut settings = Settings::default();
    read_document(DEFAULTS, &|_| Origin::Default, &mut settings)?;
    environment::apply_openai_base_url(&sources.environment, &mut settings)?;
    let (file, unread_file) = find_files(sources);
    if let Some(path) = &file {
        read_file(path, &mut settings)?;
    }
    environment::apply(&sources.environment, &mut settings)?;
    for (key, value) in &sources.overrides {
        read_text(split_key(key)?, value, &Origin::CommandLine, &mut settings)?;
    }

    let mut config = deserialize(&settings)?;
    check(&config).map_err(|fault| invalid(&fault.path, &settings, fault.problem))?;
    find_secrets(&mut config, &settings, sources)?;
    Ok(Loaded {
        config,
        file,
        unread_file,
        unread_variables: environment::unread(&sources.environment, &settings),
        settings,
    })
}

/// Returns the file to read, and a second one that is ignored because of it.
fn find_files(sources: &Sources) -> (Option<PathBuf>, Option<PathBuf>) {
    if sources.file.is_some() {
        return (sources.file.clone(), None);
    }
    let directory = sources.directory.iter();
    let paths = directory.flat_map(|directory| FILE_NAMES.map(|name| directory.join(name)));
    let mut found = paths.filter(|path| path.exists());
    (found.next(), found.next())
}

fn read_file(path: &Path, settings: &mut Settings) -> Result<(), ConfigError> {
    let text = fs::read_to_string(path).map_err(|source| ConfigError::ReadFile {
        path: path.to_owned(),
        source,
    })?;
    let origin = |line| Origin::File {
        path: path.strip_prefix(".").unwrap_or(path).to_owned(),
        line,
    };
    read_document(&text, &origin, settings)
}

fn deserialize(settings: &Settings) -> Result<Config, ConfigError> {
    let document = Value::Table(settings.document());
    serde_path_to_error::deserialize(document).map_err(|error| {
        let path: KeyPath = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                Segment::Map { key } | Segment::Enum { variant: key } => Some(key.clone()),
                Segment::Seq { .. } | Segment::Unknown => None,
            })
            .collect();
        let mut problem = error.inner().message().to_owned();
        if problem.starts_with("missing field") {
            problem.push_str(&similar_name(&path, settings));
        } else if problem.starts_with("unknown variant") {
            let hint = providers::kind_hint(&path, &problem).map(str::to_owned);
            let hint = hint.or_else(|| meant(&problem).map(|name| format!("; did you mean `{name}`?")));
            problem.push_str(&hint.unwrap_or_default());
        }
        invalid(&path, settings, problem)
    })
}

/// Suggests a known name, since an incomplete provider is usually a misspelt one.
fn similar_name(path: &[String], settings: &Settings) -> String {
    let Some((name, table)) = path.split_last() else {
        return String::new();
    };
    let others = settings.names_below(table).into_iter().filter(|other| other != name);
    nearest(name, others).map_or_else(String::new, |other| {
        let mut path = table.to_vec();
        path.push(other.to_owned());
        format!(", did you mean `{}`?", dotted(&path))
    })
}

/// Checks rules that concern several keys, and the names of tables.
fn check(config: &Config) -> Result<(), Fault> {
    config.models.check()?;
    providers::check(&config.providers)?;
    prices::check(&config.prices, &config.providers)?;
    sandbox::check(&config.sandbox)?;
    tools::check(&config.tools)?;
    webhooks::check(&config.webhooks)?;
    limits::check(&config.limits)?;
    capabilities::check(&config.capabilities, &config.providers)?;
    context_windows::check(&config.context_windows, &config.providers)
}

fn find_secrets(config: &mut Config, settings: &Settings, sources: &Sources) -> Result<(), ConfigError> {
    let find = |file: &Option<PathBuf>, variable: &Option<String>, key: &[&str]| match (file, variable) {
        (Some(path), _) => {
            let key = key_path(key);
            read_secret(&key, settings.origin(&key), path).map(|secret| Some(secret.into()))
        }
        (None, Some(variable)) => secret_variable(&sources.environment, variable),
        (None, None) => Ok(None),
    };
    for (name, provider) in &mut config.providers {
        let key = ["providers", name, "api_key_file"];
        provider.api_key = find(&provider.api_key_file, &provider.api_key_env, &key)?;
        if provider.kind == ProviderKind::Bedrock {
            provider.aws.read(&sources.environment)?;
            let checked = provider.aws.check_region(name);
            checked.map_err(|fault| invalid(&fault.path, settings, fault.problem))?;
        }
    }
    let mcp = &mut config.http.mcp;
    mcp.state_key = find(
        &mcp.state_key_file,
        &mcp.state_key_env,
        &["http", "mcp", "state_key_file"],
    )?;
    config.store.objects.read(&sources.environment)?;
    for (name, source) in &mut config.tools.secrets {
        let key = ["tools", "secrets", name, "file"];
        source.secret = find(&source.file, &source.env, &key)?;
    }
    for (name, source) in &mut config.webhooks.secrets {
        let key = ["webhooks", "secrets", name, "file"];
        source.secret = find(&source.file, &source.env, &key)?;
    }
    Ok(())
}

fn invalid(path: &[String], settings: &Settings, problem: String) -> ConfigError {
    ConfigError::InvalidValue {
        key: dotted(path),
        origin: settings.origin(path),
        problem,
    }
}
