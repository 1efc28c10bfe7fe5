//! Captures the log lines of the test's own thread.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Level, Subscriber};

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Listening {
    _guard: DefaultGuard,
    _second: Dispatch,
}

/// Sends the log lines of this thread to the subscriber.
///
/// With a single subscriber in the process, a line that another thread reaches first would be
/// switched off for this one as well, so there is a second one that listens to nothing.
#[must_use]
pub fn listen(subscriber: impl Subscriber + Send + Sync) -> Listening {
    let second = Dispatch::new(NoSubscriber::new());
    Listening {
        _guard: tracing::subscriber::set_default(subscriber),
        _second: second,
    }
}

/// A log in memory: a writer for subscribers.
#[derive(Clone, Debug, Default)]
pub struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    /// Captures the log lines of this thread up to a level, as text, until the second value is
    /// dropped.
    pub fn listening(level: Level) -> (Self, Listening) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, listen(subscriber))
    }

    /// Returns what was written so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
