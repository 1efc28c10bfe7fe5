//! The link between a connection and its process: the reason of its end, and the way to end it.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::mcp::request_error::RequestError;
use sandbox::{CommandEnd, Exit};

/// How long after a broken pipe the process may take to end.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// The last lines of standard error that an error shows, and the most bytes of each.
const SHOWN_LINES: usize = 6;
const MAX_SHOWN_LINE: usize = 300;
/// Requests allow no more output than this many responses of the largest size.
const MAX_ALLOWED_RESPONSES: usize = 16;

/// The process of a connection.
#[derive(Debug)]
pub(in crate::mcp) struct ProcessLink {
    kill: CancellationToken,
    ended: CancellationToken,
    /// The program, in words.
    program: String,
    /// Why the process has ended.
    reason: OnceLock<RequestError>,
    /// The last lines of standard error.
    errors: Mutex<VecDeque<String>>,
    /// The bytes that the process may still write.
    allowance: AtomicUsize,
    max_response: usize,
}

impl ProcessLink {
    /// `kill` ends the connection, and with it the process.
    pub(super) fn new(program: String, max_response: usize, kill: &CancellationToken) -> Self {
        Self {
            kill: kill.clone(),
            ended: CancellationToken::new(),
            program,
            reason: OnceLock::new(),
            errors: Mutex::default(),
            allowance: AtomicUsize::new(max_response),
            max_response,
        }
    }

    /// Kills the process.
    pub(in crate::mcp) fn kill(&self) {
        self.kill.cancel();
    }

    /// Waits until the process is to be killed.
    pub(super) async fn killed(&self) {
        self.kill.cancelled().await;
    }

    /// Notes that the process breaks the rules, and kills it.
    pub(super) fn fail(&self, words: impl Into<String>) {
        let _ = self.reason.set(RequestError::Process(words.into()));
        self.kill();
    }

    /// Notes the end of the process, of which nothing is left.
    pub(super) fn end(&self, end: &CommandEnd) {
        let _ = self.reason.set(reason(&end.exit));
        self.ended.cancel();
    }

    /// Lets the process write a response to a request.
    pub(super) fn allow_response(&self) {
        let most = self.max_response.saturating_mul(MAX_ALLOWED_RESPONSES);
        let add = |allowance: usize| Some(allowance.saturating_add(self.max_response).min(most));
        let _ = self.allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Counts output. Returns whether the process may write that much.
    pub(super) fn count(&self, bytes: usize) -> bool {
        let subtract = |allowance: usize| allowance.checked_sub(bytes);
        self.allowance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract)
            .is_ok()
    }

    /// Adds a line of standard error.
    pub(super) fn add_error(&self, mut line: String) {
        line.truncate(line.floor_char_boundary(MAX_SHOWN_LINE));
        if line.trim().is_empty() {
            return;
        }
        let mut errors = self.errors.lock();
        if errors.len() == SHOWN_LINES {
            errors.pop_front();
        }
        errors.push_back(line);
    }

    /// Returns why a connection broke, as far as that is known.
    pub(in crate::mcp) async fn explained(&self, error: RequestError) -> RequestError {
        if error != RequestError::Broken {
            return error;
        }
        if self.reason.get().is_none() {
            let _ = timeout(END_PATIENCE, self.ended.cancelled()).await;
        }
        match self.reason.get() {
            Some(RequestError::Process(words)) => RequestError::Process(self.with_details(words)),
            Some(RequestError::Unreachable(words)) => RequestError::Unreachable(self.with_details(words)),
            _ => error,
        }
    }

    /// Returns why a connection was not opened. A program may say why it needs so long.
    pub(in crate::mcp) async fn explained_opening(&self, error: RequestError) -> RequestError {
        match error {
            RequestError::Timeout(limit) => {
                RequestError::Process(self.with_details(&format!("did not respond within {limit:?}")))
            }
            error => self.explained(error).await,
        }
    }

    /// Adds the program, and the end of its standard error.
    fn with_details(&self, words: &str) -> String {
        let errors = self.errors.lock();
        let lines: Vec<_> = errors.iter().map(String::as_str).collect();
        let program = &self.program;
        if lines.is_empty() {
            format!("{words} ({program})")
        } else {
            let lines = lines.join(" | ");
            format!("{words} ({program}); the end of its standard error: {lines}")
        }
    }
}

fn reason(exit: &Exit) -> RequestError {
    let words = match exit {
        Exit::Code(code) => format!("has ended with the exit code {code}"),
        Exit::Signal(signal) => format!("was ended by the signal {signal}"),
        Exit::TimedOut => "was killed, since its time was spent".to_owned(),
        Exit::CpuExceeded => "was killed, since it used more processor time than allowed".to_owned(),
        Exit::MemoryExceeded => "was killed, since it used more memory than allowed".to_owned(),
        Exit::ProcessesExceeded => "was killed, since it had more processes than allowed".to_owned(),
        Exit::DiskExceeded => "was killed, since it wrote more to the disk than allowed".to_owned(),
        Exit::OutputExceeded => "was killed, since it wrote more output than allowed".to_owned(),
        Exit::Cancelled => "was stopped".to_owned(),
        Exit::Failed { message } => {
            return RequestError::Unreachable(format!("its process can't be started: {message}"));
        }
    };
    RequestError::Process(words)
}
