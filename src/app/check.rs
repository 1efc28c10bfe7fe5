//! Finds mistakes in a configuration before the service starts with it.
//!
//! The check reads the store and connects to Redis if they are configured. It changes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use super::agent_files::AgentFiles;
use super::extensions::Extensions;
use super::ingredients::Ingredients;
use super::{derived_settings, require_keys_beyond_loopback};
use crate::config::{Config, Loaded, Origin};
use crate::http::Tls;
use crate::run::agents::ConfiguredAgent;
use crate::run::refusal::suggestion;
use crate::spans;
use board::Board;
use store::{self, OpenError, Store, StoreError, StoreSettings};
use values::causes::with_causes;
use values::clock::{Clock as _, SystemClock};
use values::spelling::nearest;
use values::tenant::TenantId;

/// The timeouts of opening the store and of a query.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// A mistake or an ineffective setting that an operator should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The service would not start, or something that is configured would not work.
    Error(String),
    /// A setting or a file has no effect.
    Warning(String),
}

/// Finds the mistakes in a configuration that was loaded.
pub async fn check(loaded: &Loaded, extensions: Extensions) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_variables(loaded, &mut findings);
    check_certificate(&loaded.config, &mut findings);
    if let (Some(file), Some(unread)) = (&loaded.file, &loaded.unread_file) {
        findings.push(Finding::Warning(format!(
            "{} is not read: {} comes first",
            unread.display(),
            file.display()
        )));
    }
    if let Err(error) = spans::check(loaded.config.traces) {
        findings.push(Finding::Error(with_causes(&error)));
    }
    if let Err(error) = check_board(&loaded.config).await {
        findings.push(Finding::Error(with_causes(error.as_ref())));
    }
    let agents = check_agents(loaded, extensions, &mut findings);
    let agents = agents.map_err(|error| findings.push(Finding::Error(with_causes(error.as_ref()))));
    if let Err(error) = check_store(loaded, agents.ok().as_ref(), &mut findings).await {
        findings.push(Finding::Error(with_causes(error.as_ref())));
    }
    findings
}

fn check_variables(loaded: &Loaded, findings: &mut Vec<Finding>) {
    for unread in &loaded.unread_variables {
        findings.push(match &unread.meant {
            Some(_) => Finding::Error(unread.to_string()),
            None => Finding::Warning(unread.to_string()),
        });
    }
}

/// Reads the files of TLS. The service would start with an expired certificate.
fn check_certificate(config: &Config, findings: &mut Vec<Finding>) {
    let fault = match Tls::load(&config.tls) {
        Ok(Some((_, expires_at))) if expires_at <= SystemClock.now() => {
            format!("the certificate expired at {expires_at}")
        }
        Ok(_) => return,
        Err(error) => with_causes(&error),
    };
    findings.push(Finding::Error(format!("`http.tls`: {fault}")));
}

/// Returns the names of the usable agents. Fails if the parts that agents refer to can't be made.
fn check_agents(
    loaded: &Loaded,
    extensions: Extensions,
    findings: &mut Vec<Finding>,
) -> anyhow::Result<BTreeSet<String>> {
    let config = &loaded.config;
    check_directory(loaded, "agents", &config.agents.directory, findings);
    check_directory(loaded, "tools", &config.tools.directory, findings);
    check_directory(loaded, "mcp", &config.mcp.directory, findings);
    if let Some(directory) = &config.console.directory {
        check_directory(loaded, "console", directory, findings);
    }
    let found = AgentFiles::new(&config.agents.directory).find()?;
    // An example is meant to be renamed, so it is not reported.
    let is_example = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "example");
    for path in found.ignored.iter().filter(|path| !is_example(path)) {
        let why = if path.is_dir() {
            "it is a directory"
        } else {
            "its name does not end in .toml"
        };
        findings.push(Finding::Warning(format!("{} is not read: {why}", path.display())));
    }
    let ingredients = Ingredients::make(config, extensions, None, None)?;
    findings.extend(ingredients.servers.problems().into_iter().map(Finding::Error));
    let checks = ingredients.checks(config);
    let (usable, faults) = found.check(&checks);
    let faults = faults.iter().map(|fault| Finding::Error(with_causes(fault.as_ref())));
    findings.extend(faults);
    for ConfiguredAgent { location, definition } in &usable {
        let name = &definition.name;
        let missing = checks.missing_keys(definition).into_iter();
        findings
            .extend(missing.map(|error| Finding::Error(format!("{location}: the agent {name:?} can't work: {error}"))));
    }
    let names = usable.into_iter().map(|agent| agent.definition.name);
    Ok(names.collect())
}

/// Reports a directory of a section that is set and does not exist.
fn check_directory(loaded: &Loaded, section: &str, directory: &Path, findings: &mut Vec<Finding>) {
    let origin = loaded.origin(&[section, "directory"]);
    if origin != Origin::Default && !directory.exists() {
        let shown = directory.display();
        let problem = format!("{origin}: `{section}.directory`: there is no directory {shown}");
        findings.push(Finding::Error(problem));
    }
}

/// Connects to the Redis that replicas share. The service would start without it.
async fn check_board(config: &Config) -> anyhow::Result<()> {
    let settings = derived_settings::redis_board(config)?;
    let Some(url) = &config.board.url else { return Ok(()) };
    let tried = Board::check(url.expose(), settings).await;
    tried.with_context(|| format!("can't use the board {url}"))
}

/// Checks the configuration against the contents of the store. The store is neither created nor
/// migrated.
async fn check_store(
    loaded: &Loaded,
    agents: Option<&BTreeSet<String>>,
    findings: &mut Vec<Finding>,
) -> anyhow::Result<()> {
    let config = &loaded.config;
    let settings = StoreSettings {
        migrate: false,
        acquire_timeout: STORE_PATIENCE,
        ..config.connections.clone()
    };
    let opened = store::open_with(config.store.url.expose(), settings, &derived_settings::contents(config)).await;
    let address = config.store.address();
    let store = match opened {
        Ok(store) => Some(store),
        Err(OpenError::Missing { .. }) if config.connections.migrate => None,
        Err(OpenError::Store(StoreError::Schema { found, needed })) if config.connections.migrate && found < needed => {
            findings.push(Finding::Warning(format!(
                "the service brings the tables of the store {address} up to date when it starts; before that, its keys and agents are not checked"
            )));
            return Ok(());
        }
        Err(error) => return Err(error).with_context(|| format!("can't open the store {address}")),
    };
    let checked = timeout(STORE_PATIENCE, check_against(store.as_ref(), loaded, agents)).await;
    if let Some(store) = store {
        store.close().await;
    }
    findings.extend(checked.context("the store does not respond any more")??);
    Ok(())
}

/// Checks the configuration against the keys and agents of the store. A store that does not exist
/// yet has none. Without the agents of files, the default agent is not checked.
async fn check_against(
    store: Option<&Arc<dyn Store>>,
    loaded: &Loaded,
    agents: Option<&BTreeSet<String>>,
) -> anyhow::Result<Vec<Finding>> {
    let config = &loaded.config;
    let mut findings = Vec::new();
    let has_keys = match store {
        Some(store) => store.key_exists().await?,
        None => false,
    };
    if let Err(error) = require_keys_beyond_loopback(has_keys, config) {
        findings.push(Finding::Error(with_causes(error.as_ref())));
    }
    let name = &config.runs.default_agent;
    if let Some(agents) = agents
        && !agents.contains(name)
        && !is_stored(store, name).await?
    {
        let origin = loaded.origin(&["runs", "default_agent"]);
        let similar = suggestion(nearest(name, agents.iter().map(String::as_str)));
        findings.push(Finding::Error(format!(
            "{origin}: `runs.default_agent`: there is no agent named {name:?}{similar}"
        )));
    }
    Ok(findings)
}

/// Returns whether a tenant has stored the agent.
async fn is_stored(store: Option<&Arc<dyn Store>>, name: &str) -> Result<bool, StoreError> {
    let Some(store) = store else { return Ok(false) };
    let keys = store.key_list().await?;
    let tenants = keys.into_iter().map(|key| key.tenant);
    let tenants: BTreeSet<TenantId> = tenants.chain([TenantId::anonymous()]).collect();
    for tenant in &tenants {
        if store.agent_lookup(tenant, name).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
