//! Merges the layers into a checked [`Config`].

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::Config;
use super::environment::{self, UnreadVariable};
use super::error::ConfigError;
use super::explanation;
use super::overrides::split_key;
use super::schema::DEFAULTS;
use super::sections::Sections;
use super::settings::{Origin, Settings, key_path};
use super::sources::Sources;
use super::toml_layer::{read_document, read_text};

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
    /// The names of the variables that are set.
    variables: BTreeSet<String>,
}

impl Loaded {
    /// Lists every key in force with its value and its origin, without secrets.
    pub fn explain(&self) -> String {
        explanation::explain(&self.settings, &self.variables)
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

    let environment = &sources.environment;
    let config = Config::read(&Sections::new(&settings, environment))?;
    Ok(Loaded {
        config,
        file,
        unread_file,
        unread_variables: environment::unread(environment, &settings),
        variables: environment::set(environment),
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
