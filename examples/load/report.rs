//! The table of what was measured, with the aims beside it.

#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::time::Duration;

/// Collects the rows and prints each as soon as it is known.
#[derive(Debug)]
pub(crate) struct Report {
    markdown: bool,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    figure: String,
    measured: String,
    aim: String,
    met: &'static str,
}

impl Report {
    /// Begins a report.
    pub(crate) fn new(markdown: bool) -> Self {
        Self {
            markdown,
            rows: Vec::new(),
        }
    }

    /// Adds a figure that has no aim.
    pub(crate) fn add(&mut self, figure: impl Into<String>, measured: impl Into<String>) {
        self.push(Row {
            figure: figure.into(),
            measured: measured.into(),
            aim: String::new(),
            met: "",
        });
    }

    /// Adds a figure and returns whether its aim is met.
    pub(crate) fn aim(&mut self, figure: impl Into<String>, measured: impl Into<String>, aim: &str, met: bool) {
        let met = if met { "yes" } else { "no" };
        self.push(Row {
            figure: figure.into(),
            measured: measured.into(),
            aim: aim.to_owned(),
            met,
        });
    }

    /// Prints the table.
    pub(crate) fn print(&self) {
        if self.markdown {
            println!("| figure | measured | aim | met |\n|---|---|---|---|");
            for Row {
                figure,
                measured,
                aim,
                met,
            } in &self.rows
            {
                println!("| {figure} | {measured} | {aim} | {met} |");
            }
            return;
        }
        let width = self.rows.iter().map(|row| row.figure.len()).max().unwrap_or_default();
        for Row {
            figure,
            measured,
            aim,
            met,
        } in &self.rows
        {
            let aim = if aim.is_empty() {
                String::new()
            } else {
                format!("   (aim: {aim}; met: {met})")
            };
            println!("{figure:width$}  {measured}{aim}");
        }
    }

    fn push(&mut self, row: Row) {
        progress(&format!("{}: {}", row.figure, row.measured));
        self.rows.push(row);
    }
}

/// Prints the progress to standard error.
#[expect(
    clippy::print_stderr,
    reason = "a run takes minutes; standard output is for the table"
)]
pub(crate) fn progress(text: &str) {
    eprintln!("load: {text}");
}

/// Writes a time as milliseconds.
pub(crate) fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    if milliseconds < 10.0 {
        format!("{milliseconds:.2} ms")
    } else {
        format!("{milliseconds:.1} ms")
    }
}

/// Writes bytes as megabytes.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1024 * 1024);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}
