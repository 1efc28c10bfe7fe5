//! Redis servers for tests: the shared one that the environment names, and private ones that a test
//! may stop.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use board::{Board, RedisSettings};
use tasks::supervision::Supervisor;

use crate::environment::{REQUIRE, variable};
use crate::ports::free_port;

/// How long a run is shown after its process has refreshed it last; longer than most tests.
pub const EXPIRY: Duration = Duration::from_secs(30);
/// A limit that a test machine keeps even if it stands still for some seconds, and that a test can
/// wait for.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// The time by which a busy machine may exceed the limit.
pub const SLACK: Duration = Duration::from_secs(20);

/// Opens a board on the shared server, or reports why the test is skipped.
pub async fn shared_board() -> Option<Board> {
    Some(board(&shared_url()?, EXPIRY).await)
}

/// Returns the URL of the shared server, or reports why the test is skipped.
pub fn shared_url() -> Option<String> {
    variable("AGENT_RUNTIME_TEST_REDIS_URL").or_else(|| skip("AGENT_RUNTIME_TEST_REDIS_URL is not set"))
}

/// Opens a board whose runs expire after the given time.
pub async fn board(url: &str, expiry: Duration) -> Board {
    Board::open(url, settings(expiry), &Supervisor::default())
        .await
        .unwrap()
}

/// Settings for a busy test machine.
pub fn settings(expiry: Duration) -> RedisSettings {
    RedisSettings {
        expiry,
        timeout: TIMEOUT,
        ..RedisSettings::default()
    }
}

/// A server of one test.
#[derive(Debug)]
pub struct PrivateServer {
    port: u16,
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    process: Option<Child>,
}

impl PrivateServer {
    /// Starts a server, or reports why the test is skipped.
    pub fn start() -> Option<Self> {
        Self::start_with(Vec::new())
    }

    /// Starts a server with further arguments.
    pub fn start_with(arguments: Vec<String>) -> Option<Self> {
        let own = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"].map(str::to_owned);
        let mut server = Self {
            port: free_port(),
            arguments: own.into_iter().chain(arguments).collect(),
            folder: tempfile::tempdir().unwrap(),
            process: None,
        };
        match server.spawn() {
            Ok(()) => Some(server),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => skip("redis-server is not on the PATH"),
            Err(error) => panic!("redis-server does not start: {error}"),
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Kills the server with all that it holds.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the stopped server again, empty, on the same port.
    pub fn restart(&mut self) {
        self.stop();
        self.spawn().unwrap();
    }

    /// Sends the server a signal, such as `STOP`.
    pub fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Sends a command and returns the first line of the answer.
    pub fn command(&self, words: &[&str]) -> String {
        self.try_command(words).unwrap().0
    }

    /// Sends a command and returns the text that it answers.
    pub fn text(&self, words: &[&str]) -> String {
        self.try_command(words).unwrap().1
    }

    /// Returns the first line of an answer, and the text that follows if it is one.
    fn try_command(&self, words: &[&str]) -> std::io::Result<(String, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.extend([format!("${}\r\n", word.len()), format!("{word}\r\n")]);
        }
        stream.write_all(request.as_bytes())?;
        let mut answer = BufReader::new(stream);
        let mut line = String::new();
        answer.read_line(&mut line)?;
        let line = line.trim_end().to_owned();
        let length = line.strip_prefix('$').and_then(|length| length.parse().ok());
        let mut text = vec![0; length.unwrap_or(0)];
        answer.read_exact(&mut text)?;
        Ok((line, String::from_utf8_lossy(&text).into_owned()))
    }

    fn spawn(&mut self) -> std::io::Result<()> {
        let process = Command::new("redis-server")
            .args(&self.arguments)
            .args(["--port", &self.port.to_string()])
            .arg("--dir")
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let process = self.process.insert(process);
        let pid = format!("process_id:{}\r", process.id());
        for _ in 0..2000 {
            // Another process could have taken the port: the server must be ours.
            let info = self.try_command(&["INFO", "server"]);
            if info.is_ok_and(|(_, info)| info.contains(&pid)) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("redis-server is not ready on port {}", self.port);
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Leaves a test out, unless servers are required.
pub fn skip<T>(reason: &str) -> Option<T> {
    assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set: {reason}");
    eprintln!("SKIPPED, no Redis: {reason}");
    None
}
