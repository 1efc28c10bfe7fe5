//! Settings from the environment: `AGENT_RUNTIME__SECTION__KEY`.
//!
//! A name is matched to the existing keys and named tables without regard to case. So
//! `AGENT_RUNTIME__PROVIDERS__OPENAI__BASE_URL` sets `providers.openai`, in any spelling. A
//! character that variables can't contain, such as `-` or `/`, is matched by `_`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use super::error::ConfigError;
use super::layers::{Layers, unknown};
use super::origin::{KeyPath, Origin, dotted, key_path};
use super::schema::{Shape, keys_below, known_keys, shape};
use super::secrets::read_secret;
use values::spelling::nearest;

const PREFIX: &str = "AGENT_RUNTIME__";

/// The prefix of variables that may be meant as settings.
const NEAR_PREFIX: &str = "AGENT_RUNTIME_";

/// The variables in which callers of a service have its address and their API key.
pub(super) const CALLERS_URL: &str = "AGENT_RUNTIME_URL";
pub(super) const CALLERS_KEY: &str = "AGENT_RUNTIME_KEY";

/// The prefix of variables for the repository's own tests and scripts.
const TEST_PREFIX: &str = "AGENT_RUNTIME_TEST_";

/// A variable that looks like a setting and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadVariable {
    /// Its name.
    pub variable: String,
    /// The variable that was probably meant.
    pub meant: Option<String>,
    /// The key that it would set, and the origin that sets the key instead.
    pub overridden: Option<(String, Origin)>,
}

impl fmt::Display for UnreadVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = &self.variable;
        match (&self.meant, &self.overridden) {
            (_, Some((key, origin))) => write!(f, "environment {variable}: no effect, since {origin} sets `{key}`"),
            (Some(meant), None) => write!(
                f,
                "environment {variable}: no setting has this name, did you mean `{meant}`?"
            ),
            (None, None) => write!(f, "environment {variable}: no setting has this name"),
        }
    }
}

/// Keys whose value may hold a secret. With the suffix `_FILE`, the variable names a file with the
/// value.
const SECRET_KEYS: [[&str; 2]; 3] = [["store", "url"], ["store", "listen_url"], ["board", "url"]];

/// The variable that OpenAI's own clients read the server's address from.
const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// The key that it sets.
const OPENAI_BASE_URL_KEY: [&str; 3] = ["providers", "openai", "base_url"];

pub(super) fn apply(environment: &BTreeMap<String, String>, layers: &mut Layers) -> Result<(), ConfigError> {
    let mut given: BTreeMap<KeyPath, Origin> = BTreeMap::new();
    for (variable, value) in environment {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        let origin = from(variable);
        if [variable, value]
            .iter()
            .any(|text| text.contains(char::REPLACEMENT_CHARACTER))
        {
            let variable = variable.clone();
            return Err(ConfigError::NotUnicode { variable });
        }
        let (path, value) = match resolve(name, layers) {
            Ok(path) => (path, value.clone()),
            Err(path) => match secret_file_key(&path) {
                Some(key) => {
                    let secret = read_secret(&key, origin.clone(), Path::new(value))?;
                    (key, secret)
                }
                None => return Err(unknown(&path, origin)),
            },
        };
        if let Some(first) = given.insert(path.clone(), origin.clone()) {
            return Err(ConfigError::SetTwice {
                key: dotted(&path),
                first,
                second: origin,
            });
        }
        layers.add_text(&path, &value, origin)?;
    }
    Ok(())
}

/// Lists the variables that are not blank.
pub(super) fn set(environment: &BTreeMap<String, String>) -> BTreeSet<String> {
    let set = environment.iter().filter(|(_, value)| !value.trim().is_empty());
    set.map(|(name, _)| name.clone()).collect()
}

/// Finds variables that lack an underscore or are misspelt in another way. An unknown variable with
/// the exact prefix is an error in [`apply`].
pub(super) fn unread(environment: &BTreeMap<String, String>, layers: &Layers) -> Vec<UnreadVariable> {
    let names = environment.keys().filter_map(|variable| {
        let name = variable.strip_prefix(NEAR_PREFIX)?;
        let is_read = name.starts_with('_')
            || [CALLERS_URL, CALLERS_KEY].contains(&variable.as_str())
            || variable.starts_with(TEST_PREFIX);
        (!is_read).then_some((variable, name.to_lowercase()))
    });
    let paths = known_keys()
        .cloned()
        .chain(layers.keys().into_iter().map(|(path, _)| path));
    let known: BTreeMap<String, String> = paths
        .map(|path| {
            let variable = comparable(&path.join("__")).to_uppercase();
            (comparable(&path.join("_")), format!("{PREFIX}{variable}"))
        })
        .collect();
    let misnamed = names.map(|(variable, name)| {
        let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
        let meant = nearest(&words.join("_"), known.keys().map(String::as_str));
        UnreadVariable {
            variable: variable.clone(),
            meant: meant.and_then(|name| known.get(name)).cloned(),
            overridden: None,
        }
    });
    misnamed
        .chain(overridden_openai_base_url(environment, layers))
        .collect()
}

/// Finds `OPENAI_BASE_URL` if a file overrides its address. Variables and flags of the service are
/// not reported, since they were set for this start.
fn overridden_openai_base_url(environment: &BTreeMap<String, String>, layers: &Layers) -> Option<UnreadVariable> {
    let url = openai_base_url(environment)?;
    let path = key_path(&OPENAI_BASE_URL_KEY);
    let (address, origin) = (layers.get(&path)?.as_str(), layers.origin(&path));
    let same = |other: &str| other.trim_end_matches('/') == url.trim().trim_end_matches('/');
    let is_overridden = matches!(origin, Origin::File { .. }) && !address.is_some_and(same);
    is_overridden.then(|| UnreadVariable {
        variable: OPENAI_BASE_URL.to_owned(),
        meant: None,
        overridden: Some((dotted(&path), origin)),
    })
}

/// Sets the address of the provider `openai` from the variable of OpenAI's clients.
pub(super) fn apply_openai_base_url(
    environment: &BTreeMap<String, String>,
    layers: &mut Layers,
) -> Result<(), ConfigError> {
    let Some(url) = openai_base_url(environment) else {
        return Ok(());
    };
    layers.add_text(&key_path(&OPENAI_BASE_URL_KEY), url, from(OPENAI_BASE_URL))
}

fn openai_base_url(environment: &BTreeMap<String, String>) -> Option<&str> {
    let url = environment.get(OPENAI_BASE_URL)?;
    (!url.trim().is_empty()).then_some(url)
}

fn from(variable: &str) -> Origin {
    Origin::Environment {
        variable: variable.to_owned(),
    }
}

/// Finds the key that a variable means, or the path that no key has.
fn resolve(name: &str, layers: &Layers) -> Result<KeyPath, KeyPath> {
    let mut path = KeyPath::new();
    let mut is_known = true;
    for segment in name.split("__") {
        let known: Vec<&str> = match shape(&path) {
            Some(Shape::Section) => keys_below(&path),
            Some(Shape::Named) => layers.names_below(&path),
            _ => Vec::new(),
        };
        let same = known.iter().find(|key| comparable(key) == comparable(segment));
        let key = same.map_or_else(|| segment.to_lowercase(), |key| (*key).to_owned());
        path.push(key);
        is_known &= shape(&path).is_some() && !segment.is_empty();
    }
    if is_known { Ok(path) } else { Err(path) }
}

fn comparable(name: &str) -> String {
    name.to_ascii_lowercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

fn secret_file_key(path: &[String]) -> Option<KeyPath> {
    let (name, table) = path.split_last()?;
    let mut key = table.to_vec();
    key.push(name.strip_suffix("_file")?.to_owned());
    SECRET_KEYS.iter().any(|secret| key == secret).then_some(key)
}
