//! Reads the lines of a file of sessions, in memory that is bounded however the file was made.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};

use anyhow::ensure;
use zstd::Decoder;

use super::Line;
use store::contents::MAX_CONTENT_BYTES;
use values::json::without_mark;

/// The least bytes of the longest line. The bytes of a content take up to six as JSON.
const LEAST_LIMIT: usize = 7 * MAX_CONTENT_BYTES;
/// How many parts of a session the longest line has room for.
const PARTS: usize = 2;
/// The memory that the decoder may take for repeated parts of a file, as a power of two.
const MAX_WINDOW: u32 = 23;

/// The lines of a file.
pub(super) struct Lines {
    reader: BufReader<Decoder<'static, BufReader<File>>>,
    text: Vec<u8>,
    max_line: u64,
    /// The bytes of all lines so far.
    pub(super) bytes: u64,
}

impl Lines {
    /// Begins a file. The parts of its sessions have as many bytes as a store accepts.
    pub(super) fn new(file: File, max_session_bytes: usize) -> anyhow::Result<Self> {
        let mut decoder = Decoder::new(file)?;
        decoder.window_log_max(MAX_WINDOW)?;
        Ok(Self {
            reader: BufReader::new(decoder),
            text: Vec::new(),
            max_line: LEAST_LIMIT.max(max_session_bytes.saturating_mul(PARTS)) as u64,
            bytes: 0,
        })
    }

    /// Reads the next line; `None` at the end of the file.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Line>> {
        self.text.clear();
        let length = self
            .reader
            .by_ref()
            .take(self.max_line)
            .read_until(b'\n', &mut self.text)?;
        if length == 0 {
            return Ok(None);
        }
        self.bytes += length as u64;
        let is_long = length as u64 == self.max_line && !self.text.ends_with(b"\n");
        ensure!(!is_long, "a line has more than {} bytes", self.max_line);
        ensure!(self.text.ends_with(b"\n"), "a line is cut");
        Ok(Some(serde_json::from_slice(without_mark(&self.text))?))
    }
}
