//! Agents of configuration files: the built-in one and those of the configured folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

use crate::agent::AgentDefinition;
use crate::json::{Objects, plain_words};
use crate::run::UnusableAgent;

/// The agent that every service has; a file that defines another of its name hides it.
const DEMO: &str = include_str!("../../config/agents/demo.toml");

/// Agents by name, each with its file; the built-in one has none.
#[derive(Debug)]
pub(super) struct AgentFiles(BTreeMap<String, (Option<PathBuf>, AgentDefinition)>);

impl AgentFiles {
    /// Reads every `*.toml` of the folder. A folder that does not exist holds no agents.
    pub(super) fn load(directory: &Path) -> anyhow::Result<Self> {
        let demo = parse(DEMO).context("the built-in agent is wrong")?;
        let mut agents = BTreeMap::from([(demo.name.clone(), (None, demo))]);
        let files = agent_files(directory)
            .with_context(|| format!("can't read the directory of agents {}", directory.display()))?;
        for path in files {
            let text = fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
            let agent = parse(&text).with_context(|| path.display().to_string())?;
            let name = agent.name.clone();
            if let Some((Some(earlier), _)) = agents.insert(name.clone(), (Some(path.clone()), agent)) {
                bail!(
                    "{} and {} both define the agent {name:?}",
                    earlier.display(),
                    path.display()
                );
            }
        }
        Ok(Self(agents))
    }

    /// Returns the agents.
    pub(super) fn definitions(&self) -> Vec<AgentDefinition> {
        self.0.values().map(|(_, agent)| agent.clone()).collect()
    }

    /// Adds the file to what is wrong with an agent.
    pub(super) fn name_file(&self, error: UnusableAgent) -> anyhow::Error {
        let file = self.0.get(&error.name).and_then(|(path, _)| path.as_ref());
        let place = file.map_or_else(|| "the built-in agent".to_owned(), |path| path.display().to_string());
        anyhow::Error::new(error).context(place)
    }
}

fn agent_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    let mut files: Vec<_> = paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    Ok(files)
}

/// Reads a definition. The error names the line of a mistake in the syntax, and the key of any other.
fn parse(text: &str) -> anyhow::Result<AgentDefinition> {
    let deserializer = toml::Deserializer::parse(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        anyhow!("line {line}: not valid TOML: {}", error.message())
    })?;
    serde_path_to_error::deserialize(Objects::new(deserializer)).map_err(|error| {
        let key = error.path().to_string();
        let problem = plain_words(error.inner().message());
        if key == "." {
            anyhow!("{problem}")
        } else {
            anyhow!("`{key}`: {problem}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::hooks::HookConfigError;
    use crate::run::Refusal;

    /// Makes a folder with these files and loads it.
    fn load(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<AgentFiles, String>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let loaded = AgentFiles::load(folder.path()).map_err(|error| format!("{error:#}"));
        (folder, loaded)
    }

    fn names(files: &AgentFiles) -> Vec<String> {
        files.definitions().into_iter().map(|agent| agent.name).collect()
    }

    #[test]
    fn a_folder_holds_agents_and_other_files() {
        let (_folder, loaded) = load(&[
            ("b.toml", "name = 'writer'\nmodel = 'demo/demo'"),
            ("a.toml", "name = 'reader'\nmodel = 'demo/demo'"),
            ("notes.md", "not an agent"),
        ]);
        assert_eq!(names(&loaded.unwrap()), ["demo", "reader", "writer"]);
    }

    #[test]
    fn a_missing_folder_holds_no_agents_and_a_file_is_none() {
        let files = AgentFiles::load(Path::new("/nonexistent")).unwrap();
        assert_eq!(names(&files), ["demo"]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = format!("{:#}", AgentFiles::load(file.path()).unwrap_err());
        assert!(error.contains(&file.path().display().to_string()), "{error}");
    }

    #[test]
    fn a_file_hides_the_built_in_agent() {
        let (_folder, loaded) = load(&[(
            "mine.toml",
            "name = 'demo'\ndescription = 'mine'\nmodel = 'openai/gpt-4.1'",
        )]);
        let agents = loaded.unwrap().definitions();
        assert_eq!(agents.len(), 1);
        assert_eq!(agents[0].description, "mine");
    }

    #[test]
    fn a_name_belongs_to_one_file() {
        let agent = "name = 'x'\nmodel = 'demo/demo'";
        let (folder, loaded) = load(&[("one.toml", agent), ("two.toml", agent)]);
        let path = folder.path().display();
        assert_eq!(
            loaded.unwrap_err(),
            format!("{path}/one.toml and {path}/two.toml both define the agent \"x\"")
        );
    }

    #[test]
    fn mistakes_are_told_with_file_and_place() {
        for (text, told) in [
            ("name = 'x'\nmodel = 'demo/demo", "line 2: not valid TOML: "),
            ("name = 'x'\nmodel = 7", "`model`: "),
            ("name = 'x'\nmodel = 'demo'", "`model`: "),
            ("name = 'x'\nmodels = 7", "`models`: "),
            ("name = 'x'\nmodel = 'demo/demo'\ntool = []", "unknown field `tool`"),
            (
                "name = 'x'\nmodel = 'demo/demo'\n[budget]\nmax_steps = 'two'",
                "`budget.max_steps`: invalid type: string \"two\", expected an integer of 0 or more",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\nbudget = [2]",
                "`budget`: invalid type: array, expected an object",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\nhooks = [['limits']]",
                "`hooks[0]`: invalid type: array, expected an object",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\ncompiler = ['last_n', 3]",
                "`compiler`: invalid type: array, expected an object",
            ),
            ("name = 'x'\nmodel = 'demo/demo'\ndriver = 'magic'", "`driver`: "),
        ] {
            let (folder, loaded) = load(&[("bad.toml", text)]);
            let error = loaded.unwrap_err();
            let place = format!("{}/bad.toml: ", folder.path().display());
            let problem = error.strip_prefix(&place).unwrap_or_else(|| panic!("{error}"));
            assert!(problem.contains(told), "{problem}");
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
    }

    #[test]
    fn an_agent_that_can_not_work_is_told_with_its_file() {
        let (folder, loaded) = load(&[("x.toml", "name = 'x'\nmodel = 'demo/demo'")]);
        let files = loaded.unwrap();
        let unusable = |name: &str| UnusableAgent {
            name: name.to_owned(),
            source: Refusal::Hook(HookConfigError::Unknown {
                name: "h".to_owned(),
                known: "a, b".to_owned(),
            }),
        };
        assert_eq!(
            format!("{:#}", files.name_file(unusable("x"))),
            format!(
                "{}/x.toml: the agent \"x\" can't work: no hook is named \"h\"; known are a, b",
                folder.path().display()
            )
        );
        assert!(format!("{:#}", files.name_file(unusable("demo"))).starts_with("the built-in agent: "));
    }
}
