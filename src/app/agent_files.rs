//! Agents from configuration: the built-in agent, and the agents of the configured folder.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow, ensure};

use super::toml_file::parse;
use crate::run::agents::{AgentChecks, AgentSource, ConfiguredAgent};
use agent::definition::AgentDefinition;

/// The agent that every service has. A file with an agent of the same name replaces it.
const DEMO: &str = include_str!("../../config/agents/demo.toml");
/// The origin of that agent in messages.
const BUILT_IN: &str = "the built-in agent";

/// The folder of the files.
#[derive(Debug)]
pub(super) struct AgentFiles {
    directory: PathBuf,
    /// Whether the folder had agents at the last read. If so, a missing or empty folder is an
    /// error: its volume may be unmounted.
    held_agents: AtomicBool,
}

/// The contents of the folder.
#[derive(Debug, Default)]
pub(super) struct FoundAgents {
    /// The agents, by name.
    pub(super) agents: BTreeMap<String, ConfiguredAgent>,
    /// The mistakes in files that define no valid agent.
    pub(super) faults: Vec<anyhow::Error>,
    /// Entries of the folder that are ignored.
    pub(super) ignored: Vec<PathBuf>,
}

/// A fixed list of agents.
impl AgentSource for Vec<ConfiguredAgent> {
    fn read(&self) -> Result<Vec<ConfiguredAgent>, Box<dyn Error + Send + Sync>> {
        Ok(self.clone())
    }
}

impl FoundAgents {
    /// Separates valid agents from mistakes.
    pub(super) fn check(self, checks: &AgentChecks) -> (Vec<ConfiguredAgent>, Vec<anyhow::Error>) {
        let (mut usable, mut faults) = (Vec::new(), self.faults);
        for agent in self.agents.into_values() {
            match checks.check_configured(&agent) {
                Ok(()) => usable.push(agent),
                Err(fault) => faults.push(fault.into()),
            }
        }
        (usable, faults)
    }
}

impl AgentSource for AgentFiles {
    fn read(&self) -> Result<Vec<ConfiguredAgent>, Box<dyn Error + Send + Sync>> {
        let mut found = self.find()?;
        if !found.faults.is_empty() {
            return Err(found.faults.swap_remove(0).into());
        }
        Ok(found.agents.into_values().collect())
    }
}

impl AgentFiles {
    /// Makes a source that reads this folder each time the agents are loaded.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            held_agents: AtomicBool::new(false),
        }
    }

    /// Reads every `*.toml` of the folder. A folder that never had agents may be missing.
    pub(super) fn find(&self) -> anyhow::Result<FoundAgents> {
        let directory = self.directory.display();
        let entries = self
            .entries()
            .with_context(|| format!("can't read the directory of agents {directory}"))?;
        ensure!(
            !entries.is_empty() || !self.held_agents.load(Ordering::Relaxed),
            "the directory of agents {directory} had agents and is empty now: mount its volume again, or put any file into it if it should have none"
        );
        let (files, ignored): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .filter(|path| !is_hidden(path))
            .partition(|path| is_agent(path));
        self.held_agents.store(!files.is_empty(), Ordering::Relaxed);
        let mut found = FoundAgents {
            ignored,
            ..FoundAgents::default()
        };
        for path in files {
            match read(&path) {
                Ok(agent) => match found.agents.entry(agent.definition.name.clone()) {
                    Entry::Vacant(entry) => drop(entry.insert(agent)),
                    Entry::Occupied(entry) => {
                        let (name, earlier, location) = (entry.key(), &entry.get().location, &agent.location);
                        let fault = anyhow!("{earlier} and {location} both define the agent {name:?}");
                        found.faults.push(fault);
                    }
                },
                Err(fault) => found.faults.push(fault),
            }
        }
        let demo: AgentDefinition = parse(DEMO).context(BUILT_IN)?;
        found
            .agents
            .entry(demo.name.clone())
            .or_insert_with(|| ConfiguredAgent {
                location: BUILT_IN.to_owned(),
                definition: demo,
            });
        Ok(found)
    }

    /// Returns all entries of the folder, in order.
    fn entries(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound && !self.held_agents.load(Ordering::Relaxed) => {
                return Ok(Vec::new());
            }
            entries => entries?,
        };
        let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        paths.sort();
        Ok(paths)
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_agent(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "toml") && !path.is_dir()
}

/// Reads a file. An agent without a name gets the file's name.
fn read(path: &Path) -> anyhow::Result<ConfiguredAgent> {
    let location = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| format!("can't read {location}"))?;
    let mut definition: AgentDefinition = parse(&text).with_context(|| location.clone())?;
    if definition.name.is_empty() {
        definition.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    Ok(ConfiguredAgent { location, definition })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a folder with these files and reads it.
    fn load(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<Vec<ConfiguredAgent>, String>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let loaded = AgentFiles::new(folder.path()).read();
        let loaded = loaded.map_err(|error| format!("{:#}", anyhow!(error)));
        (folder, loaded)
    }

    fn names(agents: &[ConfiguredAgent]) -> Vec<&str> {
        agents.iter().map(|agent| agent.definition.name.as_str()).collect()
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
        let agents = AgentFiles::new(Path::new("/nonexistent")).read().unwrap();
        assert_eq!(names(&agents), ["demo"]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = format!("{:#}", anyhow!(AgentFiles::new(file.path()).read().unwrap_err()));
        assert!(error.contains(&file.path().display().to_string()), "{error}");
    }

    #[test]
    fn a_file_hides_the_built_in_agent() {
        let (_folder, loaded) = load(&[(
            "mine.toml",
            "name = 'demo'\ndescription = 'mine'\nmodel = 'openai/gpt-4.1'",
        )]);
        let agents = loaded.unwrap();
        assert_eq!(agents.len(), 1);
        assert_eq!(agents[0].definition.description, "mine");
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
    fn mistakes_are_reported_with_file_and_line() {
        for (text, expected) in [
            ("name = 'x'\nmodel = 'demo/demo", "line 2: not valid TOML: "),
            ("name = 'x'\nmodel = 7", "`model`: "),
            ("name = 'x'\nmodel = 'demo'", "`model`: "),
            ("name = 'x'\nmodels = 7", "`models`: "),
            (
                "name = 'x'\nmodel = 'demo/demo'\ntool = []",
                "line 3: `tool`: unknown field `tool`, did you mean `tools`?",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\n\n[budget]\nmax_step = 2",
                "line 5: `budget.max_step`: unknown field `max_step`, did you mean `max_steps`?",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\nzzz = 2",
                "line 3: `zzz`: unknown field `zzz`, expected one of `",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\ndriver = 'reacts'",
                "line 3: `driver`: ",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\n[budget]\nmax_steps = 'two'",
                "`budget.max_steps`: invalid type: string \"two\", expected an integer of 0 or more",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\nbudget = 2",
                "`budget`: invalid type: integer `2`, expected an object",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\nhooks = [3]",
                "`hooks[0]`: invalid type: integer `3`, expected an object",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\ncompiler = 3",
                "`compiler`: invalid type: integer `3`, expected an object",
            ),
            ("name = 'x'\nmodel = 'demo/demo'\ndriver = 'magic'", "`driver`: "),
            (
                "name = 'x'\nmodel = 'demo/demo'\nerror_policy = 'retry'",
                "`error_policy`: unknown variant `retry`, ",
            ),
            (
                "name = 'x'\nmodel = 'demo/demo'\n[budget]\ndeadline = 'tomorrow'",
                "`budget.deadline`: not a time such as 2026-01-31T12:00:00Z (RFC 3339)",
            ),
        ] {
            let (folder, loaded) = load(&[("bad.toml", text)]);
            let error = loaded.unwrap_err();
            let location = format!("{}/bad.toml: ", folder.path().display());
            let problem = error.strip_prefix(&location).unwrap_or_else(|| panic!("{error}"));
            assert!(problem.contains(expected), "{problem}");
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
    }

    #[test]
    fn an_agent_without_a_name_has_its_file_s() {
        let (_folder, loaded) = load(&[
            ("reader.toml", "model = 'demo/demo'"),
            ("notes.v2.toml", "model = 'demo/demo'"),
            ("x.toml", "name = 'writer'\nmodel = 'demo/demo'"),
        ]);
        assert_eq!(names(&loaded.unwrap()), ["demo", "notes.v2", "reader", "writer"]);
    }

    #[test]
    fn all_that_is_wrong_and_all_that_is_not_read_is_found() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.toml", "model = 7"),
            ("b.toml", "model = 'demo/demo'"),
            ("c.toml", "tool = []"),
            ("notes.md", ""),
            (".hidden", ""),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::create_dir(folder.path().join("more.toml")).unwrap();
        let found = AgentFiles::new(folder.path()).find().unwrap();
        assert_eq!(found.agents.keys().collect::<Vec<_>>(), ["b", "demo"]);
        let faults: Vec<String> = found.faults.iter().map(|fault| format!("{fault:#}")).collect();
        assert!(
            matches!(&faults[..], [a, c] if a.contains("a.toml: line 1: `model`: ") && c.contains("c.toml: ")),
            "{faults:?}"
        );
        let ignored: Vec<_> = found.ignored.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(ignored, ["more.toml", "notes.md"]);
    }
}
