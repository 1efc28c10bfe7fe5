//! The table of what happened, and the words on the way.

#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::time::Duration;

/// Figures with their names, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(String, String)>,
}

impl Report {
    /// Adds a figure.
    pub(crate) fn add(&mut self, figure: impl Into<String>, value: impl Into<String>) {
        self.rows.push((figure.into(), value.into()));
    }

    /// Adds the middle, the nearly longest and the longest of some times.
    pub(crate) fn add_times(&mut self, figure: &str, mut times: Vec<Duration>) {
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(rank).copied().unwrap_or_default().as_secs_f64()
        };
        let words = format!("p50 {:.2} s, p99 {:.2} s, longest {:.2} s", at(50), at(99), at(100));
        self.add(figure, words);
    }

    /// Prints the table.
    pub(crate) fn print(&self, markdown: bool) {
        let width = self
            .rows
            .iter()
            .map(|(figure, _)| figure.len())
            .max()
            .unwrap_or_default();
        if markdown {
            println!("| figure | value |\n|---|---|");
        }
        for (figure, value) in &self.rows {
            if markdown {
                println!("| {figure} | {value} |");
            } else {
                println!("{figure:width$}  {value}");
            }
        }
    }
}

/// Prints the progress to standard error.
#[expect(
    clippy::print_stderr,
    reason = "the suite takes minutes; standard output is for the table"
)]
pub(crate) fn progress(text: &str) {
    eprintln!("faults: {text}");
}
