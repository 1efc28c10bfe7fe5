//! The hook `webhook`: sends a message to the agent's address at the configured points, and applies
//! the reply.

mod answer;
mod apply;
mod config;
mod request;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use self::answer::Answer;
use self::config::{OnFailure, WebhookConfig, unknown_secret};
pub use self::config::{SecretTenants, WebhookSecret};
use super::sender::{Delivery, SendError, WebhookSender};
use crate::agent::hooks::{
    ExecutionPorts, Hook, HookContext, HookError, HookFactory, HookField, HookPoint, HookSubject, is_permitted,
};
use crate::agent::state::StopSignal;
use crate::clock::Timestamp;
use crate::fair_share::Share;
use crate::json::{Object, escaped_length};
use crate::off_thread::{by_size_of, off_thread};
use crate::tenant::TenantId;

/// The name that agents attach the hook by.
const NAME: &str = "webhook";
/// What is read in place of what a closed webhook has not let pass.
const WITHHELD: &str = "The run was cancelled before this was released.";

/// Makes webhooks.
#[derive(Debug)]
pub struct WebhookHookFactory {
    sender: Arc<WebhookSender>,
    secrets: BTreeMap<String, WebhookSecret>,
}

impl WebhookHookFactory {
    /// Makes webhooks that send by the sender and sign with the secrets, by name.
    pub fn new(sender: Arc<WebhookSender>, secrets: BTreeMap<String, WebhookSecret>) -> Self {
        Self { sender, secrets }
    }

    fn read_for(&self, config: &Object, tenant: &TenantId) -> Result<WebhookConfig, String> {
        let config = WebhookConfig::read(config, &self.sender, &self.secrets)?;
        let named = config.secret.as_ref();
        let foreign = named.filter(|name| self.secrets.get(*name).is_some_and(|secret| !secret.is_for(tenant)));
        match foreign {
            Some(name) => Err(unknown_secret(name)),
            None => Ok(config),
        }
    }
}

impl HookFactory for WebhookHookFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        WebhookConfig::read(config, &self.sender, &self.secrets).map(drop)
    }

    /// Refuses secrets that do not sign for the tenant. Does not reveal which secrets exist.
    fn check_tenant(&self, config: &Object, tenant: &TenantId) -> Result<(), String> {
        self.read_for(config, tenant).map(drop)
    }

    /// The configuration may have changed since the agent was stored, so the tenant is checked again.
    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Ok(Arc::new(WebhookHook {
            config: self.read_for(config, &ports.tenant)?,
            sender: Arc::clone(&self.sender),
            ports: ports.clone(),
        }))
    }
}

/// One webhook of one execution.
#[derive(Debug)]
struct WebhookHook {
    config: WebhookConfig,
    sender: Arc<WebhookSender>,
    ports: ExecutionPorts,
}

/// Why there is no answer that could be followed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The run was cancelled or stopped, or its time is spent.
    #[error("the run's time was spent before it answered")]
    Interrupted(Box<StopSignal>),
    /// Nothing was delivered.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The message could not be written.
    #[error("the message to it can't be written")]
    Encode(#[source] serde_json::Error),
    /// The message has waited too long for room or for processors.
    #[error("its message was not ready in time")]
    Late,
    /// The answer is none that can be followed.
    #[error("its answer can't be used: {0}")]
    Answer(String),
}

impl Hook for WebhookHook {
    fn name(&self) -> &str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &self.config.points
    }

    fn call(&self, context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        Box::pin(async move {
            match self.followed(&context).await {
                Ok(next) => Ok(next),
                Err(Failure::Interrupted(signal)) if self.ports.control.called_off().is_some() => {
                    Ok(self.cancelled(context, *signal))
                }
                Err(failure) => self.failed(context, failure),
            }
        })
    }

    /// The answer may replace what the model said.
    fn holds_back_deltas(&self) -> bool {
        self.config.points.contains(&HookPoint::AfterModelRequest)
    }
}

impl WebhookHook {
    /// Asks until the execution is interrupted, and returns the context as the answer makes it.
    async fn followed(&self, context: &HookContext) -> Result<HookContext, Failure> {
        let control = &self.ports.control;
        // When the execution has ended, it may have been stopped or its time be spent, and the webhook hears of it still.
        let interrupted = async {
            if has_ended(context.point) {
                control.cancelled().await
            } else {
                control.interrupted(control.time_limit(&context.state)).await
            }
        };
        tokio::select! {
            biased;
            signal = interrupted => Err(Failure::Interrupted(Box::new(signal))),
            context = self.answered(context) => context,
        }
    }

    /// Asks, and applies what is answered, if anything is to change.
    async fn answered(&self, context: &HookContext) -> Result<HookContext, Failure> {
        let Some(answer) = self.asked(context).await? else {
            return Ok(context.clone());
        };
        let (context, ids, now) = (context.clone(), Arc::clone(&self.ports.ids), self.ports.control.now());
        // Checking a prompt takes a while.
        let applied = off_thread(&self.ports.tenant, move || {
            apply::apply(answer, context, NAME, &*ids, now)
        })
        .await;
        applied.map_err(Failure::Answer)
    }

    /// Sends the message; returns what is answered, if anything is to change.
    async fn asked(&self, context: &HookContext) -> Result<Option<Answer>, Failure> {
        let written = self.written(context);
        // It is in memory until it is answered, for as long as the receiver likes.
        let (body, now, _share) = if has_ended(context.point) {
            // No other limit holds there.
            let limit = self.sender.limit(self.config.timeout);
            timeout(limit, written).await.map_err(|_| Failure::Late)??
        } else {
            written.await?
        };
        let id = format!("msg_{}", self.ports.ids.next_uuid().simple());
        let delivery = Delivery {
            endpoint: &self.config.endpoint,
            id: &id,
            timestamp: now,
            body: &body,
            keys: self.config.keys.as_ref(),
            headers: Some(&self.config.headers),
            timeout: self.config.timeout,
        };
        let delivered = self.sender.send(&delivery).await?;
        match delivered.status {
            204 => Ok(None),
            200 if delivered.body.is_empty() => Ok(None),
            200 => Answer::read(&delivered.body).map(Some).map_err(Failure::Answer),
            status => Err(SendError::Status {
                status,
                retry_after: None,
            }
            .into()),
        }
    }

    /// Writes the message, once there is room for it, and says when.
    async fn written(&self, context: &HookContext) -> Result<(Bytes, Timestamp, Option<Share>), Failure> {
        let (tenant, include_messages) = (&self.ports.tenant, self.config.include_messages);
        let weigh = move |context: &HookContext| request::weight(context, include_messages, escaped_length);
        let bytes = if matches!(context.subject, HookSubject::Request(_)) {
            let in_memory = request::weight(context, include_messages, str::len) as u64;
            by_size_of(tenant, in_memory, context, weigh).await
        } else {
            // All but the messages of a request takes as long to copy.
            weigh(context)
        };
        let share = self.ports.request_room.take(tenant, bytes).await;
        let (now, of_tenant) = (self.ports.control.now(), tenant.clone());
        let body = by_size_of(tenant, bytes as u64, context, move |context| {
            request::body(NAME, &of_tenant, context, include_messages, now)
        });
        Ok((body.await.map_err(Failure::Encode)?.into(), now, share))
    }

    /// Goes on without an answer, or not. Logs hold no bodies, so what an answer said is left to the caller.
    fn failed(&self, context: HookContext, failure: Failure) -> Result<HookContext, HookError> {
        let host = self.config.endpoint.host();
        let message = format!("the webhook at {host} failed: {failure}");
        if self.config.on_failure == OnFailure::Closed {
            let source = failure.into_cause();
            return Err(HookError {
                source,
                ..HookError::new(message)
            });
        }
        let kind = match &failure {
            Failure::Answer(_) => "its answer can't be used".to_owned(),
            failure => failure.to_string(),
        };
        let cause = failure.into_cause().map(|cause| cause.to_string());
        tracing::warn!(
            hook = NAME,
            point = context.point.as_str(),
            host,
            failure = kind,
            cause,
            "a webhook failed, and the run goes on without its answer"
        );
        Ok(context)
    }

    /// Ends the turn of a cancelled run. A closed webhook lets nothing pass that was not answered for.
    fn cancelled(&self, mut context: HookContext, signal: StopSignal) -> HookContext {
        if is_permitted(context.point, HookField::Continuation) {
            context.state = context.state.with_stop_signal(signal, self.ports.control.now());
        }
        if self.config.on_failure == OnFailure::Open {
            return context;
        }
        context.subject.withhold_said(WITHHELD);
        context
    }
}

/// Tells whether the execution has ended at the point.
fn has_ended(point: HookPoint) -> bool {
    matches!(point, HookPoint::OnStop | HookPoint::AfterExecution)
}

impl Failure {
    /// Returns what is behind it.
    fn into_cause(self) -> Option<Box<dyn Error + Send + Sync>> {
        match self {
            Self::Send(SendError::Unreachable(cause) | SendError::Broken(cause)) => Some(Box::new(cause)),
            Self::Encode(cause) => Some(Box::new(cause)),
            Self::Send(_) | Self::Late | Self::Interrupted(_) | Self::Answer(_) => None,
        }
    }
}
