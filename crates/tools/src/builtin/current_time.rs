//! `current_time`: the time in a time zone.

use std::future::ready;
use std::sync::Arc;

use chrono::SecondsFormat;
use chrono_tz::{TZ_VARIANTS, Tz};
use futures_util::future::BoxFuture;
use serde_json::json;

use super::environment_tool::{Effect, environment_tool};
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use values::clock::Clock;
use values::json::Value;

/// The name of the argument. The variable of the same name in the environment has its default.
const TIMEZONE: &str = "timezone";
/// The least similarity of a suggested name.
const MIN_SIMILARITY: f64 = 0.8;

/// Tells the model the current time.
#[derive(Debug)]
pub(super) struct CurrentTime {
    spec: ToolSpec,
    clock: Arc<dyn Clock>,
}

impl CurrentTime {
    /// Makes the tool.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let description = "Returns the current date and time as RFC 3339 with the offset, the time zone and the \
                           weekday. Use it whenever an answer depends on today's date or on the time.";
        let properties = json!({
            TIMEZONE: {
                "type": "string",
                "maxLength": 64,
                "description": "IANA name of the time zone, such as Europe/Berlin or UTC. Leave it out for the \
                                caller's own zone, or UTC if that is not known.",
            },
        });
        let spec = environment_tool("current_time", Effect::Reads, description, properties, &[]);
        Self { spec, clock }
    }

    fn answer(&self, arguments: &Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let variables = context.environment.variables();
        let asked = arguments.get(TIMEZONE).or_else(|| variables.get(TIMEZONE));
        let zone = match asked.and_then(Value::as_str).map(str::trim) {
            None | Some("") => Tz::UTC,
            Some(name) => find_zone(name)?,
        };
        let now = self.clock.now().with_timezone(&zone);
        let time = now.to_rfc3339_opts(SecondsFormat::Secs, false);
        Ok(ToolOutput::text(format!(
            "{time} ({}, {})",
            zone.name(),
            now.format("%A")
        )))
    }
}

impl Tool for CurrentTime {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(ready(self.answer(&arguments, context)))
    }
}

fn find_zone(name: &str) -> Result<Tz, ToolError> {
    let found = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let hint = similar(name).map_or_else(
            || "use an IANA name such as Europe/Berlin or UTC".to_owned(),
            |zone| format!("did you mean {}?", zone.name()),
        );
        ToolError::new(format!("no time zone is named {name:?}; {hint}"))
    })
}

/// Finds a similar time zone, since models often write only the city or misspell it.
fn similar(name: &str) -> Option<Tz> {
    let wanted = name.to_ascii_lowercase().replace(' ', "_");
    let likeness = |zone: &Tz| {
        let full = zone.name().to_ascii_lowercase();
        let city = full.rsplit('/').next().unwrap_or(&full);
        strsim::jaro_winkler(&wanted, &full).max(strsim::jaro_winkler(&wanted, city))
    };
    let ranked = TZ_VARIANTS.iter().map(|zone| (likeness(zone), *zone));
    let (similarity, zone) = ranked.max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    (similarity >= MIN_SIMILARITY).then_some(zone)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use values::clock::Timestamp;
    use values::ids::{AgentId, ExecutionId, IdSource as _, UuidV7Source};
    use values::session::EnvironmentState;
    use workspace::environment::Environment;

    #[derive(Debug)]
    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> Timestamp {
            "2026-07-04T12:00:00.123456Z".parse().unwrap()
        }

        fn elapsed(&self) -> std::time::Duration {
            std::time::Duration::ZERO
        }
    }

    fn ask(arguments: &Value, variable: Option<Value>) -> Result<String, String> {
        let state = EnvironmentState {
            variables: BTreeMap::from_iter(variable.map(|value| (TIMEZONE.to_owned(), value))),
            ..EnvironmentState::default()
        };
        let context = ToolContext {
            agent_id: AgentId::from_uuid(UuidV7Source.next_uuid()),
            execution_id: ExecutionId::from_uuid(UuidV7Source.next_uuid()),
            step_number: 1,
            environment: Arc::new(Environment::in_memory(state)),
            deferred_tools: Arc::default(),
            metadata: Arc::default(),
            deadline: None,
            cancellation: CancellationToken::new(),
            output: None,
            call_id: "c".to_owned(),
            idempotency_key: String::new(),
            continuation: None,
            trace: None,
        };
        let output = CurrentTime::new(Arc::new(Noon)).answer(arguments, &context);
        let text = output.map(|output| output.content[0].as_text().unwrap().to_owned());
        text.map_err(|error| error.message)
    }

    #[test]
    fn the_argument_comes_before_the_variable_and_utc_comes_last() {
        let zurich = Some(json!("Europe/Zurich"));
        assert_eq!(
            ask(&json!({}), None).unwrap(),
            "2026-07-04T12:00:00+00:00 (UTC, Saturday)"
        );
        assert_eq!(
            ask(&json!({}), zurich.clone()).unwrap(),
            "2026-07-04T14:00:00+02:00 (Europe/Zurich, Saturday)"
        );
        assert_eq!(
            ask(&json!({"timezone": "asia/kolkata"}), zurich).unwrap(),
            "2026-07-04T17:30:00+05:30 (Asia/Kolkata, Saturday)"
        );
        assert_eq!(
            ask(&json!({"timezone": "Pacific/Kiritimati"}), Some(json!(7))).unwrap(),
            "2026-07-05T02:00:00+14:00 (Pacific/Kiritimati, Sunday)"
        );
    }

    #[test]
    fn an_unknown_zone_is_an_error_with_a_hint() {
        for (name, hint) in [
            ("Berlin", "did you mean Europe/Berlin?"),
            ("Europe/Zürich", "did you mean Europe/Zurich?"),
            ("new york", "did you mean America/New_York?"),
            ("??", "such as Europe/Berlin"),
        ] {
            let message = ask(&json!({"timezone": name}), None).unwrap_err();
            assert!(message.contains(hint), "{name}: {message}");
        }
    }
}
