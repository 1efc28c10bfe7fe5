//! `[traces]`, and what the standard variables of `OpenTelemetry` say. Its library reads their
//! values itself.

use super::error::ConfigError;
use super::origin::Origin;
use super::sections::Sections;
use crate::spans::TraceSettings;

/// The variables that name a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// The variables for the time of a request to it.
const TIMEOUTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"];
/// The names of what chooses the recorded requests, without those that the library lacks.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

pub(super) fn read(sections: &Sections<'_>) -> Result<TraceSettings, ConfigError> {
    let is_disabled = sections
        .variable_text("OTEL_SDK_DISABLED")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let is_none = sections.variable_text("OTEL_TRACES_EXPORTER") == Some("none");
    let has_endpoint = ENDPOINTS.iter().any(|name| sections.variable_text(name).is_some());
    let has_collector = has_endpoint && !is_disabled && !is_none;
    if has_collector {
        check(sections)?;
    }
    Ok(TraceSettings {
        has_collector,
        has_service_name: sections.variable_text("OTEL_SERVICE_NAME").is_some(),
        ..sections.read("traces")?
    })
}

/// Refuses values that would be replaced by a default without a word.
fn check(sections: &Sections<'_>) -> Result<(), ConfigError> {
    one_of(sections, "OTEL_TRACES_EXPORTER", &["otlp", "none"])?;
    // The one for traces comes first.
    let of_traces = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
    let protocol = match sections.variable_text(of_traces) {
        Some(_) => of_traces,
        None => "OTEL_EXPORTER_OTLP_PROTOCOL",
    };
    one_of(sections, protocol, &["http/protobuf"])?;
    one_of(sections, "OTEL_TRACES_SAMPLER", &SAMPLERS)?;
    let sampler = sections.variable_text("OTEL_TRACES_SAMPLER").unwrap_or_default();
    if sampler.ends_with("traceidratio") {
        let name = "OTEL_TRACES_SAMPLER_ARG";
        let ratio = sections.variable_text(name).map(str::parse::<f64>);
        if !matches!(ratio, Some(Ok(0.0..=1.0))) {
            return Err(invalid(name, "expected a number from 0 to 1"));
        }
    }
    for name in TIMEOUTS {
        if sections
            .variable_text(name)
            .is_some_and(|text| text.parse::<u32>().is_err())
        {
            return Err(invalid(name, "expected a whole number of milliseconds"));
        }
    }
    Ok(())
}

fn one_of(sections: &Sections<'_>, name: &str, values: &[&str]) -> Result<(), ConfigError> {
    match sections.variable_text(name) {
        Some(value) if !values.contains(&value) => Err(invalid(name, &format!("expected {}", values.join(", ")))),
        _ => Ok(()),
    }
}

fn invalid(name: &str, problem: &str) -> ConfigError {
    ConfigError::InvalidValue {
        key: name.to_owned(),
        origin: Origin::Environment {
            variable: name.to_owned(),
        },
        problem: problem.to_owned(),
    }
}
