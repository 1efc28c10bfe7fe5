//! Bounds how often a process is started.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::mcp::request_error::RequestError;

/// The most starts within the period.
const MAX_STARTS: usize = 5;
const PERIOD: Duration = Duration::from_mins(1);

/// The last starts of a process.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Starts(VecDeque<Instant>);

impl Starts {
    /// Adds a start, unless there were too many.
    pub(in crate::mcp) fn add(&mut self, now: Instant) -> Result<(), RequestError> {
        self.0.retain(|start| is_recent(*start, now));
        if self.0.len() >= MAX_STARTS {
            let words = format!("its process was started {MAX_STARTS} times within a minute, and has to wait");
            return Err(RequestError::Unreachable(words));
        }
        self.0.push_back(now);
        Ok(())
    }

    /// Returns whether a start still counts.
    pub(in crate::mcp) fn are_recent(&self, now: Instant) -> bool {
        self.0.iter().any(|start| is_recent(*start, now))
    }
}

fn is_recent(start: Instant, now: Instant) -> bool {
    now.duration_since(start) < PERIOD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_started_a_few_times_a_minute() {
        let (mut starts, began) = (Starts::default(), Instant::now());
        let after = |seconds| began + Duration::from_secs(seconds);
        for second in 0..5 {
            assert_eq!(starts.add(after(second)), Ok(()));
        }
        assert!(matches!(starts.add(after(5)), Err(RequestError::Unreachable(_))));
        assert!(starts.add(after(59)).is_err());
        assert_eq!(starts.add(after(60)), Ok(()));
        assert!(starts.add(after(60)).is_err());
        assert_eq!(starts.add(after(61)), Ok(()));
        assert!(starts.are_recent(after(120)) && !starts.are_recent(after(121)));
    }
}
