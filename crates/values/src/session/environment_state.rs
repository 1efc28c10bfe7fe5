//! The environment in a bundle: variables, opaque resources, the files of the workspace, and the
//! shell. Unknown keys are retained.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use super::hash::Hash;
use crate::json::{Object, Value};

/// The key of the workspace in JSON.
const WORKSPACE: &str = "workspace";
/// The key of the shell in JSON.
const SHELL: &str = "shell";

/// The stored form of an environment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, utoipa::ToSchema)]
#[serde(default, from = "StoredEnvironment")]
pub struct EnvironmentState {
    /// Values that tools and prompts can read, by name.
    pub variables: BTreeMap<String, Value>,
    /// The stored states of resources, by key. Only the resource can read its state.
    pub resources: BTreeMap<String, Value>,
    /// The files; absent while there are none.
    pub workspace: Option<WorkspaceState>,
    /// The shell; absent until one was used.
    pub shell: Option<ShellState>,
    /// Keys that this version does not know, or can't read.
    #[serde(flatten)]
    pub other: Object,
}

/// The files of an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorkspaceState {
    /// The hash of the root directory. It covers all files.
    pub tree: Hash,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: Object,
}

/// The stored state of a shell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ShellState {
    /// The working directory.
    pub cwd: String,
    /// The exported variables, by name.
    pub variables: BTreeMap<String, String>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: Object,
}

/// The JSON of an environment.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredEnvironment {
    variables: BTreeMap<String, Value>,
    resources: BTreeMap<String, Value>,
    #[serde(flatten)]
    other: Object,
}

impl EnvironmentState {
    /// Returns the state with variables set; a `null` removes its variable.
    #[must_use]
    pub fn with_variables(mut self, changes: BTreeMap<String, Value>) -> Self {
        change_values(&mut self.variables, changes);
        self
    }

    /// Returns the hash of the root directory of the files, if there are any.
    pub fn tree(&self) -> Option<Hash> {
        self.workspace.as_ref().map(|workspace| workspace.tree)
    }
}

/// Sets variables or resources; a `null` removes its value.
pub fn change_values(values: &mut BTreeMap<String, Value>, changes: BTreeMap<String, Value>) {
    for (name, value) in changes {
        if value.is_null() {
            values.remove(&name);
        } else {
            values.insert(name, value);
        }
    }
}

impl From<StoredEnvironment> for EnvironmentState {
    fn from(stored: StoredEnvironment) -> Self {
        let mut other = stored.other;
        Self {
            variables: stored.variables,
            resources: stored.resources,
            workspace: take_known(&mut other, WORKSPACE),
            shell: take_known(&mut other, SHELL),
            other,
        }
    }
}

/// Takes a value out of the unknown keys if this version can read it. A session of an earlier
/// version may have the key with another meaning. Its value then stays an unknown key. A value that
/// would be written in another form stays as well, since the environment's hash covers its JSON.
fn take_known<T: DeserializeOwned + Serialize>(other: &mut Object, key: &str) -> Option<T> {
    let stored = other.get(key)?;
    let known = T::deserialize(stored).ok()?;
    let is_same = serde_json::to_value(&known).is_ok_and(|written| written == *stored);
    is_same.then(|| {
        other.remove(key);
        known
    })
}

impl Serialize for EnvironmentState {
    /// Leaves out absent keys, so that environments without files have the hash that they always
    /// had. A known value replaces an unknown one of the same key.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("variables", &self.variables)?;
        map.serialize_entry("resources", &self.resources)?;
        if let Some(workspace) = &self.workspace {
            map.serialize_entry(WORKSPACE, workspace)?;
        }
        if let Some(shell) = &self.shell {
            map.serialize_entry(SHELL, shell)?;
        }
        for (key, value) in &self.other {
            let is_replaced = match key.as_str() {
                WORKSPACE => self.workspace.is_some(),
                SHELL => self.shell.is_some(),
                _ => false,
            };
            if !is_replaced {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::canonical_bytes;
    use crate::session::hash_environment;

    fn read(json: &Value) -> EnvironmentState {
        serde_json::from_value(json.clone()).unwrap()
    }

    #[test]
    fn an_environment_without_files_has_the_hash_that_it_always_had() {
        let state = read(&json!({"variables": {"city": "Bergen"}, "mood": "fine"}));
        let bytes = canonical_bytes(&state).unwrap();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            r#"{"mood":"fine","resources":{},"variables":{"city":"Bergen"}}"#
        );
        assert_eq!(
            hash_environment(&bytes).to_string(),
            "233af07492cab784fbe4f5c8e9b08488bd8108e2813270b933d0c42388b43738"
        );
        let empty = canonical_bytes(&EnvironmentState::default()).unwrap();
        assert_eq!(empty, br#"{"resources":{},"variables":{}}"#);
    }

    #[test]
    fn files_and_a_shell_are_read_and_written() {
        let tree = hash_environment(b"tree");
        let stored = json!({
            "variables": {}, "resources": {}, "mood": "fine",
            "workspace": {"tree": tree.to_string(), "zz_new": 1},
            "shell": {"cwd": "src", "variables": {"A": "b"}, "zz_new": [2]},
        });
        let state = read(&stored);
        assert_eq!(state.tree(), Some(tree));
        assert_eq!(state.shell.as_ref().unwrap().cwd, "src");
        assert_eq!(state.other.keys().collect::<Vec<_>>(), ["mood"]);
        assert_eq!(serde_json::to_value(&state).unwrap(), stored);
    }

    #[test]
    fn a_key_with_another_meaning_stays_an_unknown_key() {
        let tree = hash_environment(b"tree").to_string();
        for value in [
            json!(null),
            json!("files"),
            json!({}),
            json!({"tree": "a"}),
            json!({"tree": tree.to_uppercase()}),
            json!({"cwd": "/"}),
            json!({"cwd": "/", "variables": {"A": 1}}),
        ] {
            let stored = json!({"variables": {}, "resources": {}, "workspace": value, "shell": value});
            let state = read(&stored);
            assert_eq!((state.tree(), state.shell.as_ref()), (None, None), "{value}");
            assert_eq!(serde_json::to_value(&state).unwrap(), stored);
            // A text has each key once, also after the session has got files.
            let with_files = EnvironmentState {
                workspace: read(&json!({"workspace": {"tree": tree}})).workspace,
                shell: Some(ShellState::default()),
                ..state
            };
            let text = serde_json::to_string(&with_files).unwrap();
            assert_eq!(text.matches("\"workspace\"").count(), 1, "{text}");
            assert_eq!(text.matches("\"shell\"").count(), 1, "{text}");
            let again: EnvironmentState = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (again.tree(), again.shell.as_ref()),
                (with_files.tree(), with_files.shell.as_ref())
            );
        }
    }
}
