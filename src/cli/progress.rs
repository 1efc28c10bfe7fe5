//! A line on the terminal that shows how far a command is. Elsewhere nothing is shown.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The shortest time between two versions of the line.
const PAUSE: Duration = Duration::from_millis(100);
const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// The line. Dropping it removes it from the terminal.
#[derive(Debug)]
pub(super) struct Progress {
    begun: Instant,
    /// `None` if standard error is no terminal.
    next: Option<Instant>,
    /// The columns that the line occupies.
    width: usize,
}

impl Progress {
    /// Begins without a line: a short command shows none.
    pub(super) fn begin() -> Self {
        let begun = Instant::now();
        Self {
            begun,
            next: io::stderr().is_terminal().then(|| begun + PAUSE),
            width: 0,
        }
    }

    /// Shows the figures, and the rate of the bytes. Leaves most calls out.
    pub(super) fn show(&mut self, figures: impl FnOnce() -> String, bytes: u64) {
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + PAUSE);
        let milliseconds = now.duration_since(self.begun).as_millis().max(1);
        let rate = u128::from(bytes) * 1_000 / milliseconds;
        let rate = in_units(u64::try_from(rate).unwrap_or(u64::MAX));
        self.write(&format!("{}, {}, {rate}/s", figures(), in_units(bytes)));
    }

    fn write(&mut self, line: &str) {
        let length = line.chars().count();
        let mut stderr = io::stderr().lock();
        // A line that can't be shown must not end the command.
        let _ = write!(stderr, "\r{line:<width$}", width = self.width).and_then(|()| stderr.flush());
        self.width = length;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.width > 0 {
            self.write("");
            self.write("");
        }
    }
}

/// Writes a number of bytes for people.
fn in_units(bytes: u64) -> String {
    let Some(unit) = (bytes.max(1).ilog2() / 10).checked_sub(1) else {
        return format!("{bytes} B");
    };
    let unit = (unit as usize).min(UNITS.len() - 1);
    let tenths = (u128::from(bytes) * 10) >> (10 * (unit + 1));
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (35_757_261, "34.1 MiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(in_units(bytes), expected);
        }
    }
}
