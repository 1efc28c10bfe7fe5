//! The pooler PgBouncer in transaction mode, before the database of one test. `scripts/test` has it
//! ready.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;
use test_support::environment::{REQUIRE, variable};
use test_support::ports::free_port;

const PROGRAM: &str = "AGENT_RUNTIME_TEST_PGBOUNCER";
const START_ATTEMPTS: usize = 2000;

/// A running pooler; dropping it kills it.
#[derive(Debug)]
pub(crate) struct PgBouncer {
    process: Child,
    port: u16,
    target: url::Url,
    _folder: TempDir,
}

impl PgBouncer {
    /// Starts a pooler with so many connections to the database at this URL; `None` if there is no
    /// program and none is required.
    pub(crate) fn start(url: &str, pool_size: usize) -> Option<Self> {
        let Some(program) = variable(PROGRAM) else {
            assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set and {PROGRAM} is not");
            eprintln!("SKIPPED: {PROGRAM} names no PgBouncer of version 1.21 or newer");
            return None;
        };
        let target = url::Url::parse(url).unwrap();
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        // It does not run as root, and reads its file as somebody else.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, settings(&target, port, pool_size)).unwrap();
        let mut command = Command::new(program);
        if rustix::process::geteuid().is_root() {
            command.args(["--user", "nobody"]);
        }
        command
            .arg("--quiet")
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        for _ in 0..START_ATTEMPTS {
            assert!(process.try_wait().unwrap().is_none(), "PgBouncer does not start");
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        Some(Self {
            process,
            port,
            target,
            _folder: folder,
        })
    }

    /// Returns the URL by which the database is reached through the pooler.
    pub(crate) fn url(&self) -> String {
        format!("postgres://anybody@127.0.0.1:{}{}", self.port, self.target.path())
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        // Fails only when the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn settings(target: &url::Url, port: u16, pool_size: usize) -> String {
    let (user, password) = (target.username(), target.password().unwrap_or_default());
    format!(
        "[databases]
* = host={} port={} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 1000
max_prepared_statements = 500
",
        target.host_str().unwrap_or_default(),
        target.port().unwrap_or(5432),
    )
}
