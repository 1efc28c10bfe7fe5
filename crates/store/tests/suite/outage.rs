//! The log lines about a store that is unavailable.

use store::{Outage, StoreError, Unavailability};
use test_support::logs::CapturedLog;

#[test]
fn an_outage_is_logged_once_with_its_cause_and_so_is_its_end() {
    let (log, _listening) = CapturedLog::listening(tracing::Level::INFO);
    let away = || {
        Err::<(), _>(StoreError::Unavailable {
            operation: "lease runs",
            reason: Unavailability::Unreachable,
            source: "connection refused".into(),
        })
    };
    let mut outage = Outage::default();
    for tried in [Ok(()), away(), away(), away(), Ok(()), Ok(()), away()] {
        outage.note("no runs are taken", &tried);
    }
    let text = log.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, words) in lines
        .iter()
        .zip(["can't be used", "can be used again", "can't be used"])
    {
        // What is over must not read as what is.
        let field = if words == "can't be used" { "effect" } else { "ended" };
        let effect = format!("{field}=\"no runs are taken\"");
        assert!(line.contains(words) && line.contains(&effect), "{line}");
        assert_eq!(line.contains("connection refused"), words == "can't be used", "{line}");
    }
}
