//! The sources of the configuration. Only [`Sources::from_process`] reads the process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use secrecy::SecretString;

use super::environment::{CALLERS_KEY, CALLERS_URL};

/// The inputs of [`load`](super::load) in addition to the embedded defaults.
///
/// `Sources::default()` is empty, so it yields the documented defaults on every machine.
#[derive(Clone, Default)]
pub struct Sources {
    /// The file named by `--config`; it must exist.
    pub file: Option<PathBuf>,
    /// The folder of the default configuration file; `None` for no default file.
    pub directory: Option<PathBuf>,
    pub environment: BTreeMap<String, String>,
    /// Dotted keys and their values, from flags. The last value of a key wins.
    pub overrides: Vec<(String, String)>,
}

impl Sources {
    /// Takes the environment and the working directory of this process.
    ///
    /// Bytes that are not UTF-8 become U+FFFD here, which is an error once the variable is used.
    pub fn from_process(file: Option<PathBuf>, overrides: Vec<(String, String)>) -> Self {
        let environment = std::env::vars_os()
            .map(|(name, value)| {
                let name = name.to_string_lossy().into_owned();
                (name, value.to_string_lossy().into_owned())
            })
            .collect();
        Self {
            file,
            directory: Some(PathBuf::from(".")),
            environment,
            overrides,
        }
    }
}

/// The variables of the commands that call a running service. They are no settings.
#[derive(Debug, Clone, Default)]
pub struct CallerVariables {
    /// `AGENT_RUNTIME_URL`: the address of the service.
    pub url: Option<String>,
    /// `AGENT_RUNTIME_KEY`: the API key.
    pub key: Option<SecretString>,
}

impl CallerVariables {
    /// Takes the variables of this process that are not blank.
    pub fn from_process() -> Self {
        let mut environment = Sources::from_process(None, Vec::new()).environment;
        let mut read = |name| environment.remove(name).filter(|value| !value.trim().is_empty());
        Self {
            url: read(CALLERS_URL),
            key: read(CALLERS_KEY).map(SecretString::from),
        }
    }
}

impl fmt::Debug for Sources {
    /// Shows the variables and overridden keys without their values, since any value may be a
    /// secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.overrides.iter().map(|(key, _)| key.as_str()).collect();
        f.debug_struct("Sources")
            .field("file", &self.file)
            .field("directory", &self.directory)
            .field("environment", &self.environment.keys())
            .field("overrides", &keys)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_values() {
        let sources = Sources {
            environment: BTreeMap::from([("OPENAI_API_KEY".into(), "sk-secret".into())]),
            overrides: vec![("store.url".into(), "postgres://u:hunter2@db/x".into())],
            ..Sources::default()
        };
        let shown = format!("{sources:?}");
        assert!(shown.contains("OPENAI_API_KEY") && shown.contains("store.url"));
        assert!(!shown.contains("sk-secret") && !shown.contains("hunter2"));
    }
}
