//! Merges the layers into a checked [`Config`].

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::Config;
use super::environment::{self, UnreadVariable};
use super::error::ConfigError;
use super::explanation;
use super::layers::Layers;
use super::origin::{Origin, key_path};
use super::overrides::split_key;
use super::schema::DEFAULTS;
use super::sections::Sections;
use super::sources::Sources;

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
    layers: Layers,
    /// The names of the variables that are set.
    variables: BTreeSet<String>,
}

impl Loaded {
    /// Lists every key in force with its value and its origin, without secrets.
    pub fn explain(&self) -> String {
        explanation::explain(&self.layers, &self.variables)
    }

    /// Returns where a key such as `["http", "listen"]` was set.
    pub fn origin(&self, path: &[&str]) -> Origin {
        self.layers.origin(&key_path(path))
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
    let mut layers = Layers::default();
    layers.add_document(DEFAULTS, Origin::Default)?;
    environment::apply_openai_base_url(&sources.environment, &mut layers)?;
    let (file, unread_file) = find_files(sources);
    if let Some(path) = &file {
        read_file(path, &mut layers)?;
    }
    environment::apply(&sources.environment, &mut layers)?;
    for (key, value) in &sources.overrides {
        layers.add_text(&split_key(key)?, value, Origin::CommandLine)?;
    }

    let environment = &sources.environment;
    let config = Config::read(&Sections::new(&layers, environment))?;
    Ok(Loaded {
        config,
        file,
        unread_file,
        unread_variables: environment::unread(environment, &layers),
        variables: environment::set(environment),
        layers,
    })
}

/// Returns the file to read, and a second file that is ignored because of it.
fn find_files(sources: &Sources) -> (Option<PathBuf>, Option<PathBuf>) {
    if sources.file.is_some() {
        return (sources.file.clone(), None);
    }
    let directory = sources.directory.iter();
    let paths = directory.flat_map(|directory| FILE_NAMES.map(|name| directory.join(name)));
    let mut found = paths.filter(|path| path.exists());
    (found.next(), found.next())
}

fn read_file(path: &Path, layers: &mut Layers) -> Result<(), ConfigError> {
    let text = fs::read_to_string(path).map_err(|source| ConfigError::ReadFile {
        path: path.to_owned(),
        source,
    })?;
    let origin = Origin::File {
        path: path.strip_prefix(".").unwrap_or(path).to_owned(),
        line: 1,
    };
    layers.add_document(&text, origin)
}
