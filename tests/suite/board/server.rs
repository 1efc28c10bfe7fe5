//! Redis servers for tests: the shared one that the environment names, and private ones that a test may stop.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agent_runtime::board::{RedisBoard, RedisBoardSettings};

/// A limit that a busy test machine keeps, and that a test can wait for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

/// Opens a board on the shared server, or tells why the test is skipped.
pub(super) async fn shared_board() -> Option<RedisBoard> {
    Some(board(&shared_url()?, Duration::from_secs(30)).await)
}

/// Returns the URL of the shared server, or tells why the test is skipped.
pub(super) fn shared_url() -> Option<String> {
    variable("AGENT_RUNTIME_TEST_REDIS_URL").or_else(|| skip("AGENT_RUNTIME_TEST_REDIS_URL is not set"))
}

/// Opens a board whose runs expire after the given time.
pub(super) async fn board(url: &str, expiry: Duration) -> RedisBoard {
    let settings = RedisBoardSettings {
        expiry,
        timeout: TIMEOUT,
    };
    RedisBoard::open(url, settings).await.unwrap()
}

/// A server of one test.
pub(crate) struct PrivateServer {
    port: u16,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl PrivateServer {
    /// Starts a server, or tells why the test is skipped.
    pub(crate) fn start() -> Option<Self> {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self {
            port,
            folder,
            process: None,
        };
        match server.spawn() {
            Ok(()) => Some(server),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => skip("redis-server is not on the PATH"),
            Err(error) => panic!("redis-server does not start: {error}"),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Kills the server with all that it holds.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the stopped server again, empty, on the same port.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.spawn().unwrap();
    }

    /// Sends the server a signal, such as `STOP`.
    pub(super) fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Sends a command and returns the first line of the answer.
    pub(crate) fn command(&self, words: &[&str]) -> String {
        self.try_command(words).unwrap()
    }

    fn try_command(&self, words: &[&str]) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.extend([format!("${}\r\n", word.len()), format!("{word}\r\n")]);
        }
        stream.write_all(request.as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn spawn(&mut self) -> std::io::Result<()> {
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port", &self.port.to_string()])
            .arg("--dir")
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let process = self.process.insert(process);
        let pid = format!("process_id:{}", process.id());
        for _ in 0..2000 {
            // Another process could have taken the port: the server must be ours.
            if self.is_ready(&pid) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("redis-server is not ready on port {}", self.port);
    }

    fn is_ready(&self, pid: &str) -> bool {
        let script = "return string.match(redis.call('INFO', 'server'), 'process_id:%d+')";
        let answer = self.try_command(&["EVAL", &format!("return {{ok = (function() {script} end)()}}"), "0"]);
        answer.is_ok_and(|answer| answer.strip_prefix('+') == Some(pid))
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn skip<T>(reason: &str) -> Option<T> {
    assert!(
        variable("AGENT_RUNTIME_TEST_REQUIRE_SERVERS").is_none(),
        "a server is required: {reason}"
    );
    eprintln!("SKIPPED, no Redis: {reason}");
    None
}

#[expect(clippy::disallowed_methods, reason = "tests find their servers in the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
