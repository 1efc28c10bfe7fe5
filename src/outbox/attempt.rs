//! One attempt to deliver a message, and the resulting status. Does not use the store.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;

use super::backoff::Backoff;
use agent::record::{DeliveryRecord, DeliveryStatus};
use store::outbox::{DeliveryOutcome, DueDelivery};
use tools::webhooks::{Delivery, EndpointFault, SendError, SigningKeys, WebhookSecret, WebhookSender};
use values::clock::Timestamp;
use values::tenant::TenantId;

/// The HTTP status of a receiver that wants no more messages.
const GONE: u16 = 410;

/// The reason why a message was not delivered. API callers can read it.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    /// The address is not or no longer allowed.
    #[error("the address can't be used: {0}")]
    Endpoint(EndpointFault),
    /// The secret that signs the message is not or no longer configured.
    #[error("there is no secret {name:?} to sign it with")]
    Secret {
        /// The name.
        name: String,
    },
    /// The receiver did not accept it.
    #[error("{0}")]
    Send(SendError),
    /// All attempts are used up, and the worker of the last one crashed before it recorded the
    /// result.
    #[error("{error}")]
    Exhausted {
        /// The error of the last attempt with a recorded result.
        error: String,
        /// The status of the reply to that attempt.
        response_status: Option<u16>,
    },
}

/// Sends a message once. Returns the status of the reply.
pub(super) async fn attempt(
    sender: &WebhookSender,
    secrets: &BTreeMap<String, WebhookSecret>,
    due: DueDelivery,
    now: Timestamp,
) -> Result<u16, AttemptError> {
    let endpoint = sender.endpoint(&due.record.url).map_err(AttemptError::Endpoint)?;
    let id = due.record.delivery_id.to_string();
    let secret = due.record.secret.as_deref();
    let delivery = Delivery {
        endpoint: &endpoint,
        id: &id,
        timestamp: now,
        body: &Bytes::from(due.body),
        keys: secret.map(|name| keys(secrets, name, &due.tenant)).transpose()?,
        headers: None,
        trace: due.trace,
        timeout: None,
    };
    let delivered = sender.send(&delivery).await.map_err(AttemptError::Send)?;
    Ok(delivered.status)
}

/// Returns the keys that sign for the tenant. A message whose secret is missing is not sent
/// unsigned: its receiver expects a signature.
fn keys<'a>(
    secrets: &'a BTreeMap<String, WebhookSecret>,
    name: &str,
    tenant: &TenantId,
) -> Result<&'a SigningKeys, AttemptError> {
    let keys = secrets.get(name).and_then(|secret| secret.keys_for(tenant));
    keys.ok_or_else(|| AttemptError::Secret { name: name.to_owned() })
}

/// Returns the new status of a delivery after the attempt that its record counts.
pub(super) fn outcome(
    record: &DeliveryRecord,
    attempted: &Result<u16, AttemptError>,
    backoff: &Backoff,
    max_attempts: u32,
    now: Timestamp,
) -> DeliveryOutcome {
    let error = match attempted {
        Ok(status) => {
            return DeliveryOutcome {
                status: DeliveryStatus::Delivered,
                response_status: Some(*status),
                error: None,
                delivered_at: Some(now),
                due_at: None,
            };
        }
        Err(error) => error,
    };
    let response_status = error.status();
    let is_over = response_status == Some(GONE) || record.attempts >= max_attempts;
    let delay = backoff.delay(record.delivery_id, record.attempts, error.retry_after());
    DeliveryOutcome {
        status: if is_over {
            DeliveryStatus::Dead
        } else {
            DeliveryStatus::Pending
        },
        response_status,
        error: Some(error.to_string()),
        delivered_at: None,
        due_at: (!is_over).then_some(now + delay),
    }
}

impl AttemptError {
    /// Returns the error of a delivery that has used up its attempts.
    pub(super) fn exhausted(record: &DeliveryRecord) -> Self {
        let error = record.error.clone();
        Self::Exhausted {
            error: error.unwrap_or_else(|| "no attempt has ended".to_owned()),
            response_status: record.response_status,
        }
    }

    /// Returns the status of the reply.
    fn status(&self) -> Option<u16> {
        match self {
            Self::Exhausted { response_status, .. } => *response_status,
            Self::Send(SendError::Status { status, .. } | SendError::Redirect { status }) => Some(*status),
            Self::Endpoint(_) | Self::Secret { .. } | Self::Send(_) => None,
        }
    }

    /// Returns the delay that the receiver requested before the next attempt.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Send(SendError::Status { retry_after, .. }) => *retry_after,
            Self::Endpoint(_) | Self::Secret { .. } | Self::Send(_) | Self::Exhausted { .. } => None,
        }
    }

    /// Returns the cause, for the operator.
    pub(super) fn cause(&self) -> Option<String> {
        match self {
            Self::Send(error) => error.source().map(ToString::to_string),
            Self::Endpoint(_) | Self::Secret { .. } | Self::Exhausted { .. } => None,
        }
    }
}
