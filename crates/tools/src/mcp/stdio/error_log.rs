//! The standard error of a process: in the log, and its end in the errors of its server.

use std::sync::Arc;

use super::link::ProcessLink;
use crate::Redactor;

/// The longest part of a line that is read, in bytes.
const MAX_LINE: usize = 1_000;
/// The most lines of a process that are logged.
const MAX_LINES: usize = 1_000;

/// Reads lines, and logs them up to a limit.
#[derive(Debug)]
pub(super) struct ErrorLog {
    server: String,
    redactor: Redactor,
    link: Arc<ProcessLink>,
    line: Vec<u8>,
    logged: usize,
}

impl ErrorLog {
    pub(super) fn new(server: String, redactor: Redactor, link: &Arc<ProcessLink>) -> Self {
        Self {
            server,
            redactor,
            link: Arc::clone(link),
            line: Vec::new(),
            logged: 0,
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend(text.iter().take(room));
            if text.len() < piece.len() {
                self.end_line();
            }
        }
    }

    /// Ends the last line, which has no end.
    pub(super) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let is_cut = self.line.len() >= MAX_LINE;
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let line = self.redactor.redacted(text, is_cut);
        self.logged += 1;
        if self.logged <= MAX_LINES {
            tracing::debug!(server = self.server, line, "standard error of an MCP server");
        }
        self.link.add_error(line);
    }
}
