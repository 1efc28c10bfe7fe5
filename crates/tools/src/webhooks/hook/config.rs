//! The configuration of a webhook in an agent. It names secrets and contains none.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::webhooks::secrets::{WebhookSecret, find_keys};
use crate::webhooks::sender::{Endpoint, SigningKeys, WebhookSender};
use agent::HookPoint;
use agent::hooks::read_config;
use net::outgoing::{HeaderMap, HeaderName, HeaderValue};
use values::http_headers::CREDENTIAL_HEADERS;
use values::json::Object;
use values::spelling::meant;
use values::tenant::TenantId;

/// Headers that only the sender sets, in addition to all that begin with `webhook-`.
const OURS: [&str; 10] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "traceparent",
    "transfer-encoding",
    "upgrade",
];

/// The consequence of a failed webhook for its execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnFailure {
    /// The execution continues without a reply.
    Open,
    /// The execution fails.
    #[default]
    Closed,
}

/// The checked configuration of a webhook.
#[derive(Debug, Clone)]
pub(super) struct WebhookConfig {
    pub(super) endpoint: Endpoint,
    pub(super) points: Vec<HookPoint>,
    pub(super) keys: Option<SigningKeys>,
    /// The timeout; `None` for the sender's.
    pub(super) timeout: Option<Duration>,
    pub(super) on_failure: OnFailure,
    pub(super) headers: HeaderMap,
    /// Whether requests to models are sent with their messages.
    pub(super) include_messages: bool,
    /// Whether messages have the header `traceparent`, if the run is recorded.
    pub(super) trace_context: bool,
}

/// The configuration as it appears in an agent's definition.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: String,
    points: Vec<String>,
    secret: Option<String>,
    timeout: Option<String>,
    #[serde(default)]
    on_failure: OnFailure,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    include_messages: bool,
    #[serde(default = "yes")]
    trace_context: bool,
}

impl WebhookConfig {
    /// Reads and checks a configuration, for one tenant or for any. The error says what is wrong.
    pub(super) fn read(
        config: &Object,
        sender: &WebhookSender,
        secrets: &BTreeMap<String, WebhookSecret>,
        tenant: Option<&TenantId>,
    ) -> Result<Self, String> {
        let written: Written = read_config(config).map_err(|fault| match meant(&fault) {
            Some(name) => format!("{fault}; did you mean `{name}`?"),
            None => fault,
        })?;
        let endpoint = sender.endpoint(&written.url);
        let keys = |name: String| find_keys(secrets, &name, tenant).map_err(|fault| format!("secret: {fault}"));
        Ok(Self {
            endpoint: endpoint.map_err(|fault| format!("url: {fault}"))?,
            points: points(&written.points)?,
            keys: written.secret.map(keys).transpose()?.cloned(),
            timeout: written.timeout.map(|text| timeout(&text)).transpose()?,
            on_failure: written.on_failure,
            headers: headers(&written.headers)?,
            include_messages: written.include_messages,
            trace_context: written.trace_context,
        })
    }
}

fn yes() -> bool {
    true
}

fn points(names: &[String]) -> Result<Vec<HookPoint>, String> {
    if names.is_empty() {
        return Err("points: at least one is needed".to_owned());
    }
    let point = |name: &String| {
        let mut all = HookPoint::ALL.iter().copied();
        let found = all.find(|point| point.as_str() == name);
        found.ok_or_else(|| {
            let known: Vec<_> = HookPoint::ALL.iter().map(|point| point.as_str()).collect();
            let known = known.join(", ");
            format!("points: there is no point {name:?}; known are {known}")
        })
    };
    names.iter().map(point).collect()
}

fn timeout(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text).ok().filter(|it| !it.is_zero());
    parsed.ok_or_else(|| "timeout: it must be a duration such as \"5s\" or \"250ms\"".to_owned())
}

fn headers(written: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let header = |(name, value): (&String, &String)| {
        let fault = |problem: &str| format!("headers: {name:?} {problem}");
        let parsed: HeaderName = name.parse().map_err(|_| fault("is not the name of a header"))?;
        if CREDENTIAL_HEADERS.contains(&parsed.as_str()) {
            return Err(fault("holds credentials; receivers know us by the signature"));
        }
        if OURS.contains(&parsed.as_str()) || parsed.as_str().starts_with("webhook-") {
            return Err(fault("is set by the service"));
        }
        let value = HeaderValue::from_str(value).map_err(|_| fault("has a value that can't be sent"))?;
        Ok((parsed, value))
    };
    written.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::webhooks::secrets::SecretTenants;
    use crate::webhooks::sender::SenderSettings;
    use values::json::Value;

    fn read(changes: &Value) -> Result<WebhookConfig, String> {
        let mut config = json!({"url": "https://example.org/hooks?token=hunter2", "points": ["before_step"]});
        for (key, value) in changes.as_object().unwrap() {
            config[key] = value.clone();
        }
        let sender = WebhookSender::new(SenderSettings::default()).unwrap();
        let keys = SigningKeys::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let secret = |keys| WebhookSecret {
            keys,
            tenants: SecretTenants::All,
        };
        let secrets = BTreeMap::from([
            ("empty".to_owned(), secret(None)),
            ("main".to_owned(), secret(Some(keys))),
        ]);
        WebhookConfig::read(config.as_object().unwrap(), &sender, &secrets, None)
    }

    #[test]
    fn a_webhook_is_closed_and_unsigned_by_default() {
        let config = read(&json!({})).unwrap();
        assert_eq!(config.endpoint.host(), "example.org");
        assert_eq!(config.points, [HookPoint::BeforeStep]);
        assert_eq!((config.on_failure, config.timeout), (OnFailure::Closed, None));
        assert!(config.keys.is_none() && config.headers.is_empty() && !config.include_messages);
        let config = read(&json!({
            "points": HookPoint::ALL,
            "secret": "main",
            "timeout": "250ms",
            "on_failure": "open",
            "headers": {"X-Team": "agents"},
            "include_messages": true,
        }));
        let config = config.unwrap();
        assert_eq!(config.points, HookPoint::ALL);
        assert_eq!(config.timeout, Some(Duration::from_millis(250)));
        assert_eq!(config.on_failure, OnFailure::Open);
        assert_eq!(config.headers["x-team"], "agents");
        assert!(config.keys.is_some() && config.include_messages);
    }

    #[test]
    fn a_bad_configuration_is_refused_with_its_mistake() {
        for case in [
            r#"{"url": null} => url: invalid type: null, expected a string"#,
            r#"{"url": "http://example.org/"} => url: its scheme must be https"#,
            r#"{"url": "https://10.0.0.1/"} => url: its address is not public"#,
            r#"{"points": []} => points: at least one"#,
            r#"{"points": ["before_lunch"]} => points: there is no point "before_lunch""#,
            r#"{"secret": "other"} => secret: no secret is named "other""#,
            r#"{"secret": "empty"} => secret: the operator has not set the secret "empty""#,
            r#"{"timeout": "soon"} => timeout: "#,
            r#"{"timeout": "0s"} => timeout: "#,
            r#"{"timeout": 5} => timeout: invalid type: integer `5`, expected a string"#,
            r#"{"on_failure": "closd"} => on_failure: unknown variant `closd`, expected `open` or `closed`; did you mean `closed`?"#,
            r#"{"on_failure": "maybe"} => `open` or `closed`"#,
            r#"{"headers": {"Authorization": "Bearer 1"}} => holds credentials"#,
            r#"{"headers": {"Host": "localhost"}} => is set by the service"#,
            r#"{"headers": {"Webhook-Id": "1"}} => is set by the service"#,
            r#"{"headers": {"X Team": "1"}} => is not the name of a header"#,
            r#"{"headers": {"X-Team": "a\nb"}} => can't be sent"#,
            r#"{"retries": 3} => unknown field `retries`"#,
        ] {
            let (changes, expected) = case.split_once(" => ").unwrap();
            let changes: Value = serde_json::from_str(changes).unwrap();
            let error = read(&changes).unwrap_err();
            assert!(error.contains(expected), "{changes}: {error}");
        }
    }
}
