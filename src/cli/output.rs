//! Output for people: results to standard output, errors to standard error.

use std::fmt;
use std::io::{self, Write as _};

use serde::Serialize;

use super::item::Item;
use crate::http::indented_json;
use crate::lifecycle::StopSignal;
use values::causes::with_causes;
use values::clock::Timestamp;

/// The number of SIGPIPE.
const PIPE: u8 = 13;

/// How a command prints its findings.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct JsonArgs {
    /// Prints JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Why a command ends with 128 and the number of a signal as its exit code.
#[derive(Debug, thiserror::Error)]
pub(super) enum EndedBySignal {
    /// The process received this signal.
    #[error("ended by {}", .0.name())]
    Received(StopSignal),
    /// No reader is left for its output.
    #[error("standard output is closed")]
    BrokenPipe,
}

impl EndedBySignal {
    /// Returns the exit code.
    pub(super) fn exit_code(&self) -> u8 {
        let number = match self {
            Self::Received(signal) => signal.number(),
            Self::BrokenPipe => PIPE,
        };
        128 + number
    }
}

/// Prints a line to standard output.
pub(super) fn print_line(line: impl fmt::Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// Prints a piece of a line to standard output at once.
pub(super) fn print_piece(piece: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(piece.as_bytes())?;
    stdout.flush()
}

/// Prints bytes to standard output as they are.
pub(super) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Prints a line to standard error.
pub(super) fn print_note(line: impl fmt::Display) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{line}")
}

/// Prints a value as JSON.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_bytes(&indented_json(&serde_json::to_vec(value)?))?;
    Ok(print_line("")?)
}

/// Prints items of the API: as JSON, or as a table with a row for each.
pub(super) fn print_items<F, const N: usize>(
    json: bool,
    items: &[Item<F>],
    heading: [&str; N],
    row: impl Fn(&F) -> [String; N],
) -> anyhow::Result<()> {
    print_list(
        json,
        items.iter().collect(),
        |item| item,
        heading,
        |item| row(&item.fields),
    )
}

/// Prints a list: as JSON, or as a table with a row for each item.
pub(super) fn print_list<T, V: Serialize, const N: usize>(
    json: bool,
    items: Vec<T>,
    view: impl Fn(T) -> V,
    heading: [&str; N],
    row: impl Fn(&T) -> [String; N],
) -> anyhow::Result<()> {
    if json {
        return print_json(&items.into_iter().map(view).collect::<Vec<_>>());
    }
    let rows: Vec<_> = items.iter().map(row).collect();
    Ok(print_table(heading, &rows)?)
}

/// Prints a table in columns. The last column may have any width.
pub(super) fn print_table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default().max(heading[column].len())
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let heading = heading.map(str::to_owned);
    for row in std::iter::once(&heading).chain(rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        print_line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Writes a time for people.
pub(super) fn moment(time: Timestamp) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// Escapes the characters of a text of others that could move the cursor or reorder the text.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let reorders =
            matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if reorders || (c.is_control() && c != '\n') {
            plain.extend(c.escape_unicode());
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Prints an error with all its causes to standard error.
pub(super) fn print_error(error: &anyhow::Error) {
    // If standard error is closed, there is no other output.
    let _ = print_note(format_args!("error: {}", with_causes(error.as_ref())));
}

/// Returns whether the reader of the output is gone, like `head` after its last line.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors
        .into_iter()
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_broken_pipe_is_known_below_any_context() {
        let error = |kind: io::ErrorKind| Err::<(), _>(io::Error::from(kind)).context("printing").unwrap_err();
        assert!(is_broken_pipe(&error(io::ErrorKind::BrokenPipe)));
        assert!(!is_broken_pipe(&error(io::ErrorKind::NotFound)));
        assert!(!is_broken_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
