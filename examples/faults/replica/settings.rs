//! The files that a replica reads. They give it short times, so that a mishap is followed by what
//! it causes within the suite's time, and more attempts than the default: a run that loses one
//! worker after the other shall still show how it goes on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{CHARGE, DECIDE, MARK, SHELL, WRITE_FILE, lasting_process};
use crate::servers::postgres_url;

/// The agent that all runs use.
pub(crate) const AGENT: &str = "worker";

/// The agent whose runs wait for answers.
pub(crate) const APPROVER: &str = "approver";

/// The settings of one replica.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Its number.
    pub(crate) number: usize,
    /// Where it listens.
    pub(crate) port: u16,
    /// Where it finds PostgreSQL.
    pub(crate) postgres_port: u16,
    /// Where it finds Redis.
    pub(crate) redis_port: u16,
    /// Where the directories of commands are.
    pub(crate) commands: PathBuf,
    /// Whether it leaves its commands to the worker.
    pub(crate) leaves_commands: bool,
}

/// Writes the files of a replica and returns its configuration's path.
pub(crate) fn write(folder: &Path, settings: &Settings) -> Result<PathBuf> {
    let agents = folder.join("agents");
    fs::create_dir_all(&agents)?;
    let tools = format!("[\"{MARK}\", \"{CHARGE}\", \"{SHELL}\", \"{WRITE_FILE}\"]");
    let agent = format!("name = \"{AGENT}\"\nmodel = \"scripted/m\"\ntools = {tools}\n");
    fs::write(agents.join("worker.toml"), agent)?;
    let approver = format!(
        "name = \"{APPROVER}\"\nmodel = \"scripted/m\"\ntools = {tools}\n\
         client_tools = [{{ name = \"{DECIDE}\" }}]\n\
         approvals = [{{ tools = [\"{CHARGE}\", \"{SHELL}\"], approval = \"always\" }}]\n"
    );
    fs::write(agents.join("approver.toml"), approver)?;
    let script = folder.join("script.toml");
    let turns = include_str!("script.toml").replace("LASTING_PROCESS", &lasting_process());
    fs::write(&script, turns)?;
    let Settings {
        number,
        port,
        postgres_port,
        redis_port,
        commands,
        leaves_commands,
    } = settings;
    let text = format!(
        r#"
[http]
listen = "127.0.0.1:{port}"
keep_alive_interval = "1s"
[store]
url = "{store}"
max_connections = 12
acquire_timeout = "3s"
[board]
url = "redis://127.0.0.1:{redis_port}/"
[agents]
directory = "{agents}"
[providers.scripted]
kind = "scripted"
script = "{script}"
[runs]
shutdown_grace = "500ms"
[sandbox]
backend = "{backend}"
directory = "{commands}"
required = true
[queue]
lease = "3s"
max_attempts = 50
[log]
filter = "info"
"#,
        store = postgres_url(*postgres_port),
        agents = agents.display(),
        script = script.display(),
        commands = commands.display(),
        backend = if *leaves_commands { "worker" } else { "local" },
    );
    let path = folder.join(format!("replica-{number}.toml"));
    fs::write(&path, text)?;
    Ok(path)
}

/// Writes the configuration of the worker for commands and returns its path.
pub(crate) fn write_worker(folder: &Path, postgres_port: u16, commands: &Path) -> Result<PathBuf> {
    let text = format!(
        r#"
[store]
url = "{store}"
max_connections = 12
acquire_timeout = "3s"
[runs]
shutdown_grace = "500ms"
[sandbox]
directory = "{commands}"
[log]
filter = "info"
"#,
        store = postgres_url(postgres_port),
        commands = commands.display(),
    );
    let path = folder.join("worker.toml");
    fs::write(&path, text)?;
    Ok(path)
}
