//! The port to the rules for webhooks, which receive the ends of runs.

use std::fmt;

use crate::RunWebhook;
use values::tenant::TenantId;

/// What is wrong with a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFault {
    /// The field: `webhook.url` or `webhook.secret`.
    pub field: &'static str,
    /// What is wrong with it, in words for the caller.
    pub message: String,
}

/// The rules for the addresses of webhooks and for the secrets that sign their messages.
pub trait WebhookRules: Send + Sync + fmt::Debug {
    /// Checks the form of a webhook, and that the tenant may use its secret. `tenant` is `None` for
    /// a webhook of the operator.
    fn check(&self, webhook: &RunWebhook, tenant: Option<&TenantId>) -> Result<(), WebhookFault>;
}
