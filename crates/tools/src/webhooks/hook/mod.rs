//! The hook `webhook`: sends a message to the agent's address at the configured points, and applies
//! the reply.

mod apply;
mod config;
mod reply;
mod request;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use self::config::{OnFailure, WebhookConfig};
use self::reply::Reply;
use super::secrets::WebhookSecret;
use super::sender::{Delivery, SendError, WebhookSender};
use agent::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, HookField, is_permitted};
use agent::state::StopSignal;
use agent::{HookPoint, TracedWork};
use tasks::fair_share::Share;
use tasks::off_thread::{by_size_of, off_thread};
use values::clock::Timestamp;
use values::json::{Object, json_length, weight};
use values::tenant::TenantId;

/// The name that agents attach the hook by.
const NAME: &str = "webhook";
/// The text that replaces content if a fail-closed webhook has not released it.
const WITHHELD: &str = "The run was cancelled before this was released.";

/// Makes webhooks.
#[derive(Debug)]
pub struct WebhookHookFactory {
    sender: Arc<WebhookSender>,
    secrets: BTreeMap<String, WebhookSecret>,
}

impl WebhookHookFactory {
    /// Makes a factory of webhooks that use the sender and these secrets, by name.
    pub fn new(sender: Arc<WebhookSender>, secrets: BTreeMap<String, WebhookSecret>) -> Self {
        Self { sender, secrets }
    }

    fn read(&self, config: &Object, tenant: Option<&TenantId>) -> Result<WebhookConfig, String> {
        WebhookConfig::read(config, &self.sender, &self.secrets, tenant)
    }
}

impl HookFactory for WebhookHookFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        self.read(config, None).map(drop)
    }

    /// Rejects secrets that do not sign for the tenant.
    fn check_tenant(&self, config: &Object, tenant: &TenantId) -> Result<(), String> {
        self.read(config, Some(tenant)).map(drop)
    }

    /// Checks the tenant again, since the secrets may have changed since the agent was stored.
    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Ok(Arc::new(WebhookHook {
            config: self.read(config, Some(&ports.tenant))?,
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

/// Why there is no usable reply.
#[derive(Debug, thiserror::Error)]
enum CallError {
    /// The run was cancelled or stopped, or its time is over.
    #[error("the run's time was over before it replied")]
    Interrupted(Box<StopSignal>),
    /// Nothing was delivered.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The message could not be written.
    #[error("the message to it can't be written")]
    Encode(#[source] serde_json::Error),
    /// The message waited too long for memory or for a processor.
    #[error("its message was not ready in time")]
    Late,
    /// The reply is unusable.
    #[error("its reply can't be used: {0}")]
    Reply(String),
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
            match self.call_until_interrupted(&context).await {
                Ok(next) => Ok(next),
                Err(CallError::Interrupted(signal)) if self.ports.control.called_off().is_some() => {
                    Ok(self.end_cancelled(context, *signal))
                }
                Err(error) => self.continue_or_fail(context, error),
            }
        })
    }

    /// The reply may replace the output of the model.
    fn holds_back_deltas(&self) -> bool {
        self.config.points.contains(&HookPoint::AfterModelRequest)
    }
}

impl WebhookHook {
    /// Calls the webhook until the execution is interrupted, and returns the context with the reply
    /// applied.
    async fn call_until_interrupted(&self, context: &HookContext) -> Result<HookContext, CallError> {
        let control = &self.ports.control;
        // At the end of an execution the webhook is still called, even if the execution was stopped
        // or its time is spent.
        let interrupted = async {
            if has_ended(context.point) {
                control.cancelled().await
            } else {
                control.interrupted(control.time_limit(&context.state)).await
            }
        };
        tokio::select! {
            biased;
            signal = interrupted => Err(CallError::Interrupted(Box::new(signal))),
            context = self.call_and_apply(context) => context,
        }
    }

    /// Calls the webhook and applies the reply, if any.
    async fn call_and_apply(&self, context: &HookContext) -> Result<HookContext, CallError> {
        let Some(reply) = self.request_reply(context).await? else {
            return Ok(context.clone());
        };
        let (context, ids, now) = (context.clone(), Arc::clone(&self.ports.ids), self.ports.control.now());
        // Checking a prompt is slow, so it runs off the async workers.
        let applied = off_thread(&self.ports.tenant, move || {
            apply::apply(reply, context, NAME, &*ids, now)
        })
        .await;
        applied.map_err(CallError::Reply)
    }

    /// Sends the message. Returns the reply, if it has changes.
    async fn request_reply(&self, context: &HookContext) -> Result<Option<Reply>, CallError> {
        let writing = self.write_message(context);
        // The message takes memory until the response arrives, even if the receiver is slow.
        let (body, now, _share) = if has_ended(context.point) {
            // After the execution, no other limit applies.
            let limit = self.sender.limit(self.config.timeout);
            timeout(limit, writing).await.map_err(|_| CallError::Late)??
        } else {
            writing.await?
        };
        let id = format!("msg_{}", self.ports.ids.next_uuid().simple());
        let trace = self.ports.events.span_of(TracedWork::Execution);
        let delivery = Delivery {
            endpoint: &self.config.endpoint,
            id: &id,
            timestamp: now,
            body: &body,
            keys: self.config.keys.as_ref(),
            headers: Some(&self.config.headers),
            trace: trace.filter(|_| self.config.trace_context),
            timeout: self.config.timeout,
        };
        let delivered = self.sender.send(&delivery).await?;
        match delivered.status {
            204 => Ok(None),
            200 if delivered.body.is_empty() => Ok(None),
            200 => Reply::read(&delivered.body).map(Some).map_err(CallError::Reply),
            status => Err(SendError::Status {
                status,
                retry_after: None,
            }
            .into()),
        }
    }

    /// Writes the message once there is room for it. Returns it with its time.
    async fn write_message(&self, context: &HookContext) -> Result<(Bytes, Timestamp, Option<Share>), CallError> {
        let (tenant, include_messages) = (&self.ports.tenant, self.config.include_messages);
        let (now, of_tenant) = (self.ports.control.now(), tenant.clone());
        let in_memory = weight(&request::message(NAME, tenant, context, include_messages, now));
        let measure = move |context: &HookContext| {
            json_length(&request::message(NAME, &of_tenant, context, include_messages, now))
        };
        let bytes = by_size_of(tenant, in_memory as u64, context, measure).await;
        let share = self.ports.request_room.take(tenant, bytes).await;
        let (now, of_tenant) = (self.ports.control.now(), tenant.clone());
        let body = by_size_of(tenant, bytes as u64, context, move |context| {
            serde_json::to_vec(&request::message(NAME, &of_tenant, context, include_messages, now))
        });
        Ok((body.await.map_err(CallError::Encode)?.into(), now, share))
    }

    /// Continues without a reply, or fails. Logs have no bodies, so the details go to the caller.
    fn continue_or_fail(&self, context: HookContext, error: CallError) -> Result<HookContext, HookError> {
        let host = self.config.endpoint.host();
        let message = format!("the webhook at {host} failed: {error}");
        if self.config.on_failure == OnFailure::Closed {
            let source = error.into_cause();
            return Err(HookError {
                source,
                ..HookError::new(message)
            });
        }
        let kind = match &error {
            CallError::Reply(_) => "its reply can't be used".to_owned(),
            error => error.to_string(),
        };
        let cause = error.into_cause().map(|cause| cause.to_string());
        tracing::warn!(
            hook = NAME,
            point = context.point.as_str(),
            host,
            failure = kind,
            cause,
            "a webhook failed, and the run continues without its reply"
        );
        Ok(context)
    }

    /// Ends the call for a cancelled run. A fail-closed webhook releases nothing without a reply.
    fn end_cancelled(&self, mut context: HookContext, signal: StopSignal) -> HookContext {
        if is_permitted(context.point, HookField::Continuation) {
            context.state = context.state.with_stop_signal(signal, self.ports.control.now());
        }
        if self.config.on_failure == OnFailure::Open {
            return context;
        }
        context.subject.withhold(WITHHELD);
        context
    }
}

/// Returns whether the execution has ended at the point.
fn has_ended(point: HookPoint) -> bool {
    matches!(point, HookPoint::OnStop | HookPoint::AfterExecution)
}

impl CallError {
    /// Returns the underlying cause.
    fn into_cause(self) -> Option<Box<dyn Error + Send + Sync>> {
        match self {
            Self::Send(SendError::Unreachable(cause) | SendError::Broken(cause)) => Some(cause),
            Self::Encode(cause) => Some(Box::new(cause)),
            Self::Send(_) | Self::Late | Self::Interrupted(_) | Self::Reply(_) => None,
        }
    }
}
