//! A webhook of a run that is cancelled: the run does not wait for it, and a fail-closed one
//! releases nothing.

use std::sync::Arc;

use agent::definition::HookConfig;
use agent::hooks::{HookContext, HookStack, HookSubject};
use agent::ports::{ToolDecision, ToolUse};
use agent::state::{
    AgentError, AgentState, ErrorKind, ExecutionBudget, FinishReason, ModelResponse, StopReason, ToolExecution,
    ToolTrace, ToolVerdict,
};
use agent::{ExecutionControl, HookPoint};
use serde_json::json;
use test_support::execution_ports::execution_ports;
use test_support::wait::until;
use tokio_util::sync::CancellationToken;
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, ExecutionId, ToolExecutionId, UuidV7Source};
use values::message::{ContentPart, ProviderFields, ToolCall};
use values::tenant::TenantId;
use values::usage::Usage;

use super::setup::webhook_hooks;
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

/// Returns the hooks of an execution that the token cancels: one webhook at every point.
fn stack(receiver: &WebhookReceiver, on_failure: &str, cancellation: &CancellationToken) -> HookStack {
    let registry = webhook_hooks();
    let config = json!({"url": receiver.url("/"), "points": HookPoint::ALL, "on_failure": on_failure});
    let attached: HookConfig = serde_json::from_value(json!({"name": "webhook", "config": config})).unwrap();
    let control = ExecutionControl::new(ExecutionBudget::default(), cancellation.clone(), Arc::new(SystemClock));
    let ports = execution_ports(&TenantId::anonymous(), control);
    registry.attach(HookStack::default(), &[attached], &ports).unwrap()
}

fn call() -> ToolCall {
    ToolCall {
        id: "c1".to_owned(),
        name: "pay".to_owned(),
        arguments: "{}".to_owned(),
        signature: None,
    }
}

/// The subject of a point.
fn subject(point: HookPoint) -> HookSubject {
    let content = vec![ContentPart::text("secret")];
    match point {
        HookPoint::AfterModelRequest => HookSubject::Response(Box::new(ModelResponse {
            content,
            provider_fields: Some(ProviderFields::owner("fake")),
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            model: None,
            provider_tool_calls: std::collections::BTreeMap::new(),
            response_id: None,
        })),
        HookPoint::BeforeToolUse => HookSubject::ToolUse(ToolUse {
            call: call(),
            decision: ToolDecision::Execute,
            approved: None,
            continuation: None,
        }),
        HookPoint::AfterToolUse => HookSubject::ToolExecution(Box::new(ToolExecution {
            id: ToolExecutionId::generate(&UuidV7Source),
            call: call(),
            content,
            error: Some(AgentError {
                kind: ErrorKind::Tool,
                code: "tool_failed".to_owned(),
                message: "secret".to_owned(),
                source_name: None,
            }),
            started_at: SystemClock.now(),
            completed_at: SystemClock.now(),
            verdict: ToolVerdict::Executed,
            is_foreign: false,
            trace: ToolTrace::default(),
        })),
        _ => HookSubject::State,
    }
}

/// Returns whether everything was withheld that the webhook has not released.
fn is_withheld(subject: &HookSubject) -> bool {
    match subject {
        HookSubject::Response(response) => response.content.is_empty() && response.provider_fields.is_none(),
        HookSubject::ToolUse(tool_use) => matches!(tool_use.decision, ToolDecision::Block { .. }),
        HookSubject::ToolExecution(execution) => {
            let withheld = "The run was cancelled before this was released.";
            let error = execution.error.as_ref().map(|error| error.message.as_str());
            execution.content == [ContentPart::text(withheld)] && error == Some(withheld)
        }
        _ => false,
    }
}

#[tokio::test]
async fn a_cancelled_run_waits_for_no_webhook_and_a_closed_one_releases_nothing() {
    for point in HookPoint::ALL.iter().copied() {
        for on_failure in ["closed", "open"] {
            let shown = format!("{point:?}, {on_failure}");
            let receiver = WebhookReceiver::start(|_| Reaction::Hang).await;
            let cancellation = CancellationToken::new();
            let stack = stack(&receiver, on_failure, &cancellation);
            let now = SystemClock.now();
            let state = AgentState::new(AgentId::generate(&UuidV7Source), now);
            let before = HookContext::new(
                point,
                state.start_execution(ExecutionId::generate(&UuidV7Source), now),
                subject(point),
            );
            let cancel = async {
                until("the webhook never got the message", async || {
                    receiver.received().len() == 1
                })
                .await;
                cancellation.cancel();
            };
            let ((after, failure), ()) = tokio::join!(stack.call(before.clone(), || SystemClock.now()), cancel);
            assert!(failure.is_none(), "{shown}: {failure:?}");
            let holds_content = before.subject != HookSubject::State;
            assert_eq!(
                is_withheld(&after.subject),
                holds_content && on_failure == "closed",
                "{shown}"
            );
            let is_unchanged = after.subject == before.subject;
            assert_eq!(is_unchanged, !is_withheld(&after.subject), "{shown}");
            let has_ended = [HookPoint::OnStop, HookPoint::AfterExecution].contains(&point);
            let signal = after
                .state
                .stop_signal()
                .map(|signal| (signal.reason, signal.is_binding));
            let expected = (!has_ended).then_some((StopReason::UserRequested, true));
            assert_eq!(signal, expected, "{shown}");
        }
    }
}
