//! Large messages of webhooks: they share room until the reply, and are encoded beside the async
//! workers.

use std::sync::Arc;
use std::time::Duration;

use agent::definition::HookConfig;
use agent::hooks::{ExecutionPorts, HookContext, HookStack, HookSubject};
use agent::ports::ModelRequest;
use agent::state::{AgentState, ExecutionBudget, StopReason};
use agent::{ExecutionControl, HookPoint, RequestRoom};
use serde_json::json;
use test_support::execution_ports::execution_ports;
use test_support::model_request::model_request;
use test_support::processors::HeldProcessors;
use test_support::wait::until;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, ExecutionId, MessageId, UuidV7Source};
use values::json::Value;
use values::message::{Message, Role};
use values::tenant::TenantId;

use super::setup::webhook_hooks;
use crate::support::webhook_receiver::{Reaction, Received, WebhookReceiver};

/// A large text; the message that holds it has a little more.
const LARGE: usize = 400 << 10;
/// As much as two such messages of different tenants, and less than three.
const ROOM: usize = 2 * LARGE + (64 << 10);

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Runs {
    room: RequestRoom,
    receiver: WebhookReceiver,
    cancellation: CancellationToken,
}

impl Runs {
    async fn with_receiver(reaction: Reaction) -> Self {
        Self {
            room: RequestRoom::new(ROOM),
            receiver: WebhookReceiver::start(move |_| reaction.clone()).await,
            cancellation: CancellationToken::new(),
        }
    }

    fn stack(&self, tenant: &TenantId, include_messages: bool, timeout: &str) -> HookStack {
        let registry = webhook_hooks();
        let config = json!({
            "url": self.receiver.url("/"), "points": ["before_model_request", "on_stop", "after_execution"],
            "include_messages": include_messages, "timeout": timeout,
        });
        let attached: HookConfig = serde_json::from_value(json!({"name": "webhook", "config": config})).unwrap();
        let control = ExecutionControl::new(
            ExecutionBudget::default(),
            self.cancellation.clone(),
            Arc::new(SystemClock),
        );
        let ports = ExecutionPorts {
            request_room: self.room.clone(),
            ..execution_ports(tenant, control)
        };
        registry.attach(HookStack::default(), &[attached], &ports).unwrap()
    }

    /// Has a run of the tenant call its webhook before a request with so many bytes of text, and
    /// returns the reason why it is to stop.
    fn run(&self, tenant: &TenantId, bytes: usize, include_messages: bool) -> JoinHandle<Option<StopReason>> {
        self.run_with(tenant, request("x".repeat(bytes)), include_messages)
    }

    /// Does so before a request.
    fn run_with(
        &self,
        tenant: &TenantId,
        request: ModelRequest,
        include_messages: bool,
    ) -> JoinHandle<Option<StopReason>> {
        let stack = self.stack(tenant, include_messages, "10s");
        let now = SystemClock.now();
        let state = AgentState::new(AgentId::generate(&UuidV7Source), now);
        let context = HookContext::new(
            HookPoint::BeforeModelRequest,
            state.start_execution(ExecutionId::generate(&UuidV7Source), now),
            HookSubject::Request(Box::new(request)),
        );
        tokio::spawn(async move {
            let (context, failure) = stack.call(context, || SystemClock.now()).await;
            assert!(failure.is_none(), "{failure:?}");
            context.state.stop_reason()
        })
    }

    async fn until_received(&self, count: usize) {
        until("the webhook never got the messages", async || {
            self.receiver.received().len() >= count
        })
        .await;
    }
}

/// A request with one message.
fn request(text: String) -> ModelRequest {
    let id = MessageId::generate(&UuidV7Source);
    model_request(vec![Message::text(id, Role::User, text, SystemClock.now())])
}

/// A tenant whose work beside the async workers is that of one test.
fn tenant() -> TenantId {
    format!("tenant-{}", AgentId::generate(&UuidV7Source)).parse().unwrap()
}

#[tokio::test]
async fn unanswered_large_messages_share_room_and_a_cancelled_run_waits_for_none() {
    let runs = Runs::with_receiver(Reaction::Hang).await;
    let (one, other) = (tenant(), tenant());
    let mut at_work = vec![runs.run(&one, LARGE, true)];
    runs.until_received(1).await;
    let taken = runs.room.taken();
    assert!((LARGE..LARGE + 2048).contains(&taken), "{taken}");
    // The tenant has as much as it leaves.
    at_work.extend((0..20).map(|_| runs.run(&one, LARGE, true)));
    // Small messages, and those without the history, take nothing.
    at_work.extend([runs.run(&one, 1_000, true), runs.run(&one, LARGE, false)]);
    runs.until_received(3).await;
    assert_eq!(runs.room.taken(), taken);
    at_work.push(runs.run(&other, LARGE, true));
    runs.until_received(4).await;
    // Times have more digits or fewer.
    let of_both = runs.room.taken();
    assert!(of_both.abs_diff(2 * taken) < 64, "{of_both}, {taken}");
    assert_eq!(runs.receiver.received().len(), 4);
    runs.cancellation.cancel();
    for run in at_work {
        assert_eq!(run.await.unwrap(), Some(StopReason::UserRequested));
    }
    assert_eq!((runs.room.taken(), runs.receiver.received().len()), (0, 4));
}

#[tokio::test]
async fn a_large_message_is_measured_and_encoded_beside_the_async_workers() {
    let runs = Runs::with_receiver(Reaction::Status(204, String::new())).await;
    let tenant = tenant();
    let held = HeldProcessors::of(&tenant).await;
    let large = runs.run(&tenant, LARGE, true);
    assert_eq!(runs.run(&tenant, 1_000, true).await.unwrap(), None);
    assert_eq!((runs.room.taken(), runs.receiver.received().len()), (0, 1));
    drop(held);
    assert_eq!(large.await.unwrap(), None);
    let received: Vec<Value> = runs.receiver.received().iter().map(Received::json).collect();
    let text = received[1]["request"]["messages"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert_eq!((text.len(), runs.room.taken()), (LARGE, 0));
}

#[tokio::test]
async fn a_message_takes_the_room_of_its_text_as_json() {
    let runs = Runs::with_receiver(Reaction::Hang).await;
    let parameters = json!({"extra": {"a": ["\u{1}".repeat(LARGE / 6)]}});
    let with_parameters = ModelRequest {
        parameters: Arc::new(serde_json::from_value(parameters).unwrap()),
        ..request(String::new())
    };
    let system = ModelRequest {
        system: "\u{1}".repeat(LARGE / 6).into(),
        ..request(String::new())
    };
    let cases = [
        (request("\u{1}".repeat(LARGE / 6)), true),
        (system, false),
        (with_parameters, false),
    ];
    for (number, (request, include_messages)) in cases.into_iter().enumerate() {
        let run = runs.run_with(&tenant(), request, include_messages);
        runs.until_received(number + 1).await;
        let (taken, sent) = (runs.room.taken(), runs.receiver.received()[number].raw.len());
        assert!((LARGE - 6..sent + 1024).contains(&taken), "{number}: {taken} of {sent}");
        run.abort();
        assert!(run.await.unwrap_err().is_cancelled());
        assert_eq!(runs.room.taken(), 0);
    }
}

#[tokio::test]
async fn an_ended_run_waits_for_room_and_processors_no_longer_than_for_a_reply() {
    let runs = Runs::with_receiver(Reaction::Status(204, String::new())).await;
    let (one, other) = (tenant(), tenant());
    let _share = runs.room.take(&one, ROOM).await;
    let _held = HeldProcessors::of(&other).await;
    for tenant in [one, other] {
        let stack = runs.stack(&tenant, false, "50ms");
        for point in [HookPoint::OnStop, HookPoint::AfterExecution] {
            let now = SystemClock.now();
            let metadata = serde_json::from_value(json!({"a": "x".repeat(LARGE)})).unwrap();
            let state = AgentState::new(AgentId::generate(&UuidV7Source), now).with_metadata(metadata);
            let context = HookContext::new(
                point,
                state.start_execution(ExecutionId::generate(&UuidV7Source), now),
                HookSubject::State,
            );
            let call = stack.call(context, || SystemClock.now());
            let (_, failure) = timeout(PATIENCE, call).await.expect("it waits");
            let message = failure.unwrap().message;
            assert!(
                message.ends_with("failed: its message was not ready in time"),
                "{message}"
            );
        }
    }
    assert!(runs.receiver.received().is_empty());
}
