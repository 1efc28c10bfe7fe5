//! `[traces]`, and what the standard variables of `OpenTelemetry` say. Its library reads their
//! values itself.

use super::error::ConfigError;
use super::sections::Sections;
use crate::spans::TraceSettings;

/// The variables that name a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

pub(super) fn read(sections: &Sections<'_>) -> Result<TraceSettings, ConfigError> {
    let is_disabled = sections
        .variable_text("OTEL_SDK_DISABLED")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let has_endpoint = ENDPOINTS.iter().any(|name| sections.variable_text(name).is_some());
    Ok(TraceSettings {
        has_collector: has_endpoint && !is_disabled,
        has_service_name: sections.variable_text("OTEL_SERVICE_NAME").is_some(),
        ..sections.read("traces")?
    })
}
