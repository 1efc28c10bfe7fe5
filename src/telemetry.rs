//! Writes the events of `tracing` to standard error, as text or as JSON.
//!
//! Standard output stays free for the output of commands.

use std::io::{self, IsTerminal as _};

use tracing::Subscriber;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::{LogConfig, LogFormat};

/// The library of the Model Context Protocol.
const MCP_LIBRARY: &str = "rmcp";

/// The reason why logging can't start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("the log filter is invalid")]
    Filter(#[source] ParseError),
    #[error("logging is already set up in this process")]
    AlreadySet(#[source] SetGlobalDefaultError),
}

/// Installs the process-wide subscriber. A process can do so once.
pub fn init(log: &LogConfig) -> Result<(), TelemetryError> {
    let subscriber = subscriber(log, io::stderr, io::stderr().is_terminal())?;
    tracing::subscriber::set_global_default(subscriber).map_err(TelemetryError::AlreadySet)
}

fn subscriber<W>(log: &LogConfig, writer: W, colours: bool) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(with_quiet_modules(&log.filter)).map_err(TelemetryError::Filter)?;
    // If standard error is closed, writing an error to it would panic. Losing the log is acceptable
    // instead.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .log_internal_errors(false);
    Ok(match log.format {
        // By default it has colours, unless the variable `NO_COLOR` is set.
        LogFormat::Text if colours => Box::new(builder.finish()),
        LogFormat::Text => Box::new(builder.with_ansi(false).finish()),
        LogFormat::Json => Box::new(builder.json().flatten_event(true).finish()),
    })
}

/// Silences the library of MCP, unless the filter names it: it may log messages of servers. The
/// service itself logs the important events.
fn with_quiet_modules(filter: &str) -> String {
    if filter.contains(MCP_LIBRARY) {
        filter.to_owned()
    } else {
        format!("{filter},{MCP_LIBRARY}=off")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let log = log(format, filter);
        let subscriber = subscriber(&log, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(run = "r1", "run completed");
            tracing::debug!("not shown at info");
        });
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn log(format: LogFormat, filter: &str) -> LogConfig {
        LogConfig {
            format,
            filter: filter.to_owned(),
        }
    }

    #[test]
    fn text_and_json_lines_hold_the_event_and_its_fields() {
        let text = logged(LogFormat::Text, "info");
        assert_eq!(text.lines().count(), 1);
        assert!(
            text.contains("INFO") && text.contains("run completed run=\"r1\""),
            "{text}"
        );

        let json = logged(LogFormat::Json, "info");
        assert_eq!(json.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], "run completed");
        assert_eq!(line["run"], "r1");

        assert_eq!(logged(LogFormat::Text, "warn"), "");
    }

    #[test]
    fn a_second_start_and_a_bad_filter_are_errors() {
        let off = log(LogFormat::Text, "off");
        // Another test of this process may have installed its subscriber first.
        drop(init(&off));
        assert!(matches!(init(&off), Err(TelemetryError::AlreadySet(_))));
        let bad = log(LogFormat::Text, "info,x=loud");
        assert!(matches!(init(&bad), Err(TelemetryError::Filter(_))));
    }
}
