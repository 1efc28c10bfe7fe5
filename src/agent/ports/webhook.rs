//! The port to the rules for addresses that receive the ends of runs.

use std::fmt;

use crate::agent::RunWebhook;
use crate::tenant::TenantId;

/// What is wrong with a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFault {
    /// The field: `webhook.url` or `webhook.secret`.
    pub field: &'static str,
    /// What is wrong with it, in words for the caller.
    pub message: String,
}

/// Knows which addresses may be named, and whose messages which secret signs.
pub trait WebhookRules: Send + Sync + fmt::Debug {
    /// Checks the form of a webhook, and that the tenant may name its secret; one that an operator
    /// has written names no tenant.
    fn check(&self, webhook: &RunWebhook, tenant: Option<&TenantId>) -> Result<(), WebhookFault>;
}
