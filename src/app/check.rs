//! Finds what is wrong with a configuration before anything is started by it. Opens no store and no connection.

use super::agent_files::AgentFiles;
use super::extensions::Extensions;
use super::ingredients::Ingredients;
use super::settings;
use crate::agent::ports::{ModelCatalog as _, ModelLookupError};
use crate::config::{Loaded, Origin};

/// Something that an operator should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The service would not start, or something that is configured would not work.
    Error(String),
    /// Something has no effect.
    Warning(String),
}

/// Finds everything that is wrong with a configuration that could be loaded.
pub fn check(loaded: &Loaded, extensions: Extensions) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_variables(loaded, &mut findings);
    if let (Some(file), Some(unread)) = (&loaded.file, &loaded.unread_file) {
        findings.push(Finding::Warning(format!(
            "{} is not read: {} comes first",
            unread.display(),
            file.display()
        )));
    }
    if let Err(error) = settings::redis_board(&loaded.config) {
        findings.push(Finding::Error(format!("{error:#}")));
    }
    if let Err(error) = check_agents(loaded, extensions, &mut findings) {
        findings.push(Finding::Error(format!("{error:#}")));
    }
    findings
}

fn check_variables(loaded: &Loaded, findings: &mut Vec<Finding>) {
    for unread in &loaded.unread_variables {
        let variable = &unread.variable;
        findings.push(match &unread.meant {
            Some(meant) => Finding::Error(format!(
                "environment {variable}: no setting has this name, did you mean `{meant}`?"
            )),
            None => Finding::Warning(format!("environment {variable}: no setting has this name")),
        });
    }
}

/// Fails on what leaves nothing to check agents against.
fn check_agents(loaded: &Loaded, extensions: Extensions, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let config = &loaded.config;
    let directory = &config.agents.directory;
    let origin = loaded.origin(&["agents", "directory"]);
    if origin != Origin::Default && !directory.exists() {
        let problem = format!(
            "{origin}: `agents.directory`: there is no directory {}",
            directory.display()
        );
        findings.push(Finding::Error(problem));
    }
    let found = AgentFiles::new(directory).find()?;
    for path in found.unread {
        let why = if path.is_dir() {
            "it is a directory"
        } else {
            "its name does not end in .toml"
        };
        findings.push(Finding::Warning(format!("{} is not read: {why}", path.display())));
    }
    let faults = found.faults.iter().map(|fault| Finding::Error(format!("{fault:#}")));
    findings.extend(faults);
    let made = Ingredients::make(config, extensions)?;
    let checks = made.checks(config)?;
    for agent in found.agents.values() {
        if let Err(error) = checks.check_configured(agent) {
            findings.push(Finding::Error(format!("{:#}", anyhow::Error::new(error))));
            continue;
        }
        for model in agent.definition.model_chain() {
            if let Err(error @ ModelLookupError::MissingKey { .. }) = made.models.model(model) {
                let (place, name) = (&agent.place, &agent.definition.name);
                findings.push(Finding::Error(format!(
                    "{place}: the agent {name:?} can't work: {error}"
                )));
            }
        }
    }
    Ok(())
}
