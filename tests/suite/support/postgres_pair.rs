//! A primary of PostgreSQL and its standby, for a test that kills the one and promotes the other.
//! They have the programs of the server that all tests share.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use tempfile::TempDir;
use test_support::databases::TestDatabase;
use test_support::ports::free_port;
use test_support::wait::until;

use super::forwarder::{Direction, Forwarder};

/// The name of the standby for its primary.
const STANDBY: &str = "standby";
const OPTIONS: [&str; 6] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=100",
    // A killed server leaves its segments behind. These are in its folder.
    "dynamic_shared_memory_type=mmap",
    // Processes are killed, and the machine never is.
    "fsync=off",
    "autovacuum=off",
];
/// How long a server may take to end.
const END_LIMIT: Duration = Duration::from_secs(20);
/// How often a server that should end is checked.
const GLANCE: Duration = Duration::from_millis(5);

/// Whether a commit waits for the standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replication {
    Synchronous,
    Asynchronous,
}

/// The two servers. Dropping them ends them.
#[derive(Debug)]
pub(crate) struct PostgresPair {
    pub(crate) primary: PostgresServer,
    pub(crate) standby: PostgresServer,
    /// The standby replicates through it.
    link: Forwarder,
    programs: Programs,
    _folder: TempDir,
}

/// One server.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    port: u16,
    data: PathBuf,
    process: Child,
}

/// The programs of PostgreSQL, and how they are started.
#[derive(Debug)]
struct Programs {
    folder: PathBuf,
    launch: Vec<&'static str>,
}

impl PostgresPair {
    /// Starts both servers and waits until the standby replicates; `None` if there is no shared
    /// server and none is required.
    pub(crate) async fn start(replication: Replication) -> Option<Self> {
        let programs = Programs::find().await?;
        let folder = tempfile::tempdir().unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres:").arg(folder.path()));
        }
        let [primary, standby] = ["primary", STANDBY].map(|name| folder.path().join(name));
        let mut initdb = programs.command("initdb", &primary);
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        run(initdb.arg("--no-sync").arg("--pgdata").arg(&primary));
        let primary = PostgresServer::start(&programs, primary).await;

        let link = Forwarder::start(primary.port).await;
        let port = link.address().port();
        let source = format!("host=127.0.0.1 port={port} user=postgres application_name={STANDBY}");
        let mut backup = programs.command("pg_basebackup", &standby);
        backup.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"]);
        backup.args(["--no-sync", "--dbname", &source]);
        run(backup.arg("--pgdata").arg(&standby));
        let standby = PostgresServer::start(&programs, standby).await;

        let state = match replication {
            Replication::Asynchronous => "async",
            Replication::Synchronous => {
                let names = format!("alter system set synchronous_standby_names = '{STANDBY}'");
                primary.execute(&names).await;
                primary.execute("select pg_reload_conf()").await;
                "sync"
            }
        };
        let replicating =
            format!("select count(*) from pg_stat_replication where state = 'streaming' and sync_state = '{state}'");
        until("the standby does not replicate", async || {
            primary.number(&replicating).await == 1
        })
        .await;
        Some(Self {
            primary,
            standby,
            link,
            programs,
            _folder: folder,
        })
    }

    /// Loses what the servers send in one direction from now on. The standby is the client.
    pub(crate) fn lose(&self, direction: Direction) {
        self.link.lose(direction);
    }

    /// Makes the standby the primary.
    pub(crate) fn promote(&self) {
        let data = &self.standby.data;
        let mut promote = self.programs.command("pg_ctl", data);
        run(promote.args(["promote", "--wait", "--pgdata"]).arg(data));
    }
}

/// Returns the URL of the database of a server at this port.
pub(crate) fn url_at(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

impl PostgresServer {
    /// Starts a server and waits until it accepts connections.
    async fn start(programs: &Programs, data: PathBuf) -> Self {
        let (port, log) = (free_port(), data.with_extension("log"));
        let mut command = programs.command("postgres", &data);
        command.args(["-p", &port.to_string()]).arg("-D").arg(&data);
        for option in OPTIONS {
            command.args(["-c", option]);
        }
        let output = File::create(&log).unwrap();
        command.stdout(output.try_clone().unwrap()).stderr(output);
        let process = command.spawn().unwrap();
        let mut server = Self { port, data, process };
        until("PostgreSQL does not start", async || {
            let ended = server.process.try_wait().unwrap();
            assert!(ended.is_none(), "{}", fs::read_to_string(&log).unwrap());
            server.state().is_some_and(|state| state.contains("\nready"))
        })
        .await;
        server
    }

    /// Returns the port at which it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Reads one number.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let mut connection = PgConnection::connect(&url_at(self.port)).await.unwrap();
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        statement.fetch_one(&mut connection).await.unwrap().get(0)
    }

    async fn execute(&self, sql: &str) {
        let mut connection = PgConnection::connect(&url_at(self.port)).await.unwrap();
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        statement.execute(&mut connection).await.unwrap();
    }

    /// Kills its first process. The others end when they notice.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Returns the file in which it describes itself, from its start to an orderly end.
    fn state(&self) -> Option<String> {
        fs::read_to_string(self.data.join("postmaster.pid")).ok()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            let pid = self.process.id().to_string();
            // It waits for no client and no standby.
            let _ = Command::new("kill").args(["-s", "QUIT", &pid]).status();
            let begun = Instant::now();
            while matches!(self.process.try_wait(), Ok(None)) && begun.elapsed() < END_LIMIT {
                sleep(GLANCE);
            }
            // Fails only when the process has ended.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        // A killed server leaves a segment of shared memory, whose key and id are in the file.
        let state = self.state().unwrap_or_default();
        let segment = state.lines().nth(6).and_then(|line| line.split_whitespace().nth(1));
        if let Some(segment) = segment {
            let mut remove = Command::new("ipcrm");
            let _ = remove.args(["-m", segment]).stderr(Stdio::null()).status();
        }
    }
}

impl Programs {
    /// Finds the programs of the shared server; `None` if there is none and none is required.
    async fn find() -> Option<Self> {
        let database = TestDatabase::postgres().await?;
        let folder = database.texts("select setting from pg_config where name = 'BINDIR'");
        let folder = PathBuf::from(folder.await.remove(0));
        // A test that is killed leaves no servers behind.
        let mut launch = vec!["setpriv", "--pdeathsig", "INT"];
        if is_root() {
            launch.extend(["--reuid", "postgres", "--regid", "postgres", "--init-groups"]);
        }
        launch.push("--");
        Some(Self { folder, launch })
    }

    /// Begins the command line of a program for a data directory.
    fn command(&self, program: &str, data: &Path) -> Command {
        let mut command = Command::new(self.launch[0]);
        command.args(&self.launch[1..]).arg(self.folder.join(program));
        // Its user may have no access to the folder of the tests.
        command.current_dir(data.parent().unwrap()).stdin(Stdio::null());
        command
    }
}

/// Returns whether the servers need another user: PostgreSQL does not run as root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a program that must succeed.
fn run(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}
