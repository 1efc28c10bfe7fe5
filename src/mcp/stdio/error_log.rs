//! The standard error of a process, in the log.

use crate::tools::Redactor;

/// The longest part of a line that is logged, in bytes.
const MAX_LINE: usize = 1_000;
/// The most lines of a process that are logged.
const MAX_LINES: usize = 1_000;

/// Logs lines up to a limit.
#[derive(Debug)]
pub(super) struct ErrorLog {
    server: String,
    redactor: Redactor,
    line: Vec<u8>,
    logged: usize,
}

impl ErrorLog {
    pub(super) fn new(server: String, redactor: Redactor) -> Self {
        Self {
            server,
            redactor,
            line: Vec::new(),
            logged: 0,
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        if self.logged >= MAX_LINES || !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend(text.iter().take(room));
            if text.len() < piece.len() {
                self.log();
            }
        }
    }

    fn log(&mut self) {
        let is_cut = self.line.len() >= MAX_LINE;
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        self.logged += 1;
        if self.logged <= MAX_LINES {
            let line = self.redactor.redacted(text, is_cut);
            tracing::debug!(server = self.server, line, "standard error of an MCP server");
        }
    }
}
