//! Webhooks, which receive the ends of runs, and the port to the rules for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use values::tenant::TenantId;

/// What a webhook may report: the ends of runs, and limits of spending.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    strum::IntoStaticStr,
)]
pub enum WebhookEvent {
    /// The run ended with its work done.
    #[serde(rename = "run.completed")]
    #[strum(serialize = "run.completed")]
    Completed,
    /// The run ended before its work was done.
    #[serde(rename = "run.stopped")]
    #[strum(serialize = "run.stopped")]
    Stopped,
    /// The run ended with calls that wait for answers of the caller.
    #[serde(rename = "run.waiting")]
    #[strum(serialize = "run.waiting")]
    Waiting,
    /// The run ended by an error.
    #[serde(rename = "run.failed")]
    #[strum(serialize = "run.failed")]
    Failed,
    /// The run ended by the caller.
    #[serde(rename = "run.cancelled")]
    #[strum(serialize = "run.cancelled")]
    Cancelled,
    /// Most of a limit of spending is spent. Only the webhook of the limits receives it.
    #[serde(rename = "spend.threshold")]
    #[strum(serialize = "spend.threshold")]
    SpendThreshold,
}

/// An address that receives the ends of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunWebhook {
    /// The receiver of the messages: an `https://` address.
    #[schema(pattern = "^https?://")]
    pub url: String,
    /// The ends that it receives; all when none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<WebhookEvent>,
    /// The name of a configured secret that signs the messages; they are not signed without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether the messages have the header `traceparent`, if the run is recorded; `true` by
    /// default.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    #[schema(default = true)]
    pub trace_context: bool,
}

fn yes() -> bool {
    true
}

impl WebhookEvent {
    /// The ends of runs.
    pub const ENDS: [Self; 5] = [
        Self::Completed,
        Self::Stopped,
        Self::Waiting,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the name, which the run's last event also has.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A fault of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFault {
    /// The field: `webhook.url` or `webhook.secret`.
    pub field: &'static str,
    /// The fault, in words for the caller.
    pub message: String,
}

/// The rules for the addresses of webhooks and for the secrets that sign their messages.
pub trait WebhookRules: Send + Sync + fmt::Debug {
    /// Checks the form of a webhook, and that the tenant may use its secret. `tenant` is `None` for
    /// a webhook of the operator.
    fn check(&self, webhook: &RunWebhook, tenant: Option<&TenantId>) -> Result<(), WebhookFault>;
}
