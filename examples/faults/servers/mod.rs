//! The servers that the replicas share. They are this suite's own, so that it may stop them.

mod postgres;
mod redis;

pub(crate) use self::postgres::{Postgres, Shutdown, url as postgres_url};
pub(crate) use self::redis::Redis;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

/// Where servers live and how they are started.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// A folder that their user can write to.
    pub(crate) folder: PathBuf,
    /// The folder of PostgreSQL's programs.
    pub(crate) postgres_bin: PathBuf,
    /// Words before a command line, which change to the servers' user.
    pub(crate) launch: Vec<String>,
}

impl Location {
    /// Begins a server's command line.
    fn command(&self, program: &std::path::Path) -> Command {
        let mut words = self.launch.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or(program.as_os_str()));
        command.args(words).current_dir(&self.folder);
        command
    }
}

/// Finds a port below the range from which the kernel picks those of clients: it stays free while
/// its server is down.
pub(crate) fn free_port() -> Result<u16> {
    let mut random = crate::random::Random::new(uuid::Uuid::new_v4().as_u64_pair().0, 0);
    loop {
        let port = 15_000 + u16::try_from(random.below(15_000))?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
}
