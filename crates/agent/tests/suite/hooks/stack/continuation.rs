//! Requests to continue against stop signals: what happens next. The last decision and the end
//! report the same.

use std::time::Duration;

use agent::hooks::{Hook, HookContext, HookError};
use agent::state::{ExecutionBudget, ExecutionStatus, StopReason, StopSignal};
use agent::{AgentEvent, ContinuationDecision, HookPoint};
use futures_util::future::BoxFuture;
use test_support::fake_model::says;
use tokio_util::sync::CancellationToken;
use values::usage::{Cost, Price};

use crate::hooks::probe::Probe;
use crate::setup::{Setup, transcript};

/// Asks for one more step after the first.
fn insisting() -> Probe {
    Probe::changing(HookPoint::AfterStep, |context| {
        let now = context.state.updated_at();
        let state = match context.state.step_count() {
            0 => context.state.with_continuation_requested(now),
            _ => context.state,
        };
        HookContext { state, ..context }
    })
    .named("insists")
}

/// Objects at the point.
fn objecting(point: HookPoint, reason: StopReason, is_binding: bool) -> Probe {
    let signal = StopSignal::new(reason, "objects", "enough");
    let signal = if is_binding { signal.binding() } else { signal };
    Probe::changing(point, move |context| {
        let now = context.state.updated_at();
        let state = context.state.with_stop_signal(signal.clone(), now);
        HookContext { state, ..context }
    })
    .named("objects")
}

#[tokio::test(start_paused = true)]
async fn a_request_to_continue_makes_the_next_model_call_unless_the_objection_binds() {
    // After the second step nobody asks for more, so it is the last one at most.
    for point in [HookPoint::BeforeStep, HookPoint::AfterStep] {
        for is_binding in [false, true] {
            for reason in StopReason::ALL.iter().copied() {
                let setup = Setup::new([says("one"), says("two")])
                    .with_hook(objecting(point, reason, is_binding))
                    .with_hook(insisting());
                let state = setup.run().await;
                // Before the first step nobody has asked for anything yet.
                let calls = match (point, is_binding) {
                    (HookPoint::BeforeStep, _) => 0,
                    (_, true) => 1,
                    (_, false) => 2,
                };
                let case = format!("{point:?} {reason} binding: {is_binding}");
                assert_eq!(setup.model.requests().len(), calls, "{case}");
                assert_eq!(state.stop_reason(), Some(reason), "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_to_continue_exceeds_no_budget_and_the_response_stays_final() {
    let budget = ExecutionBudget::default;
    let money = Cost::from_dollars(0.000_015);
    let price = Price::per_million(1.0, 1.0, None, None).unwrap();
    for (budget, reason) in [
        (
            ExecutionBudget {
                max_steps: Some(1),
                ..budget()
            },
            StopReason::StepsLimitReached,
        ),
        (
            ExecutionBudget {
                max_tokens: Some(15),
                ..budget()
            },
            StopReason::TokenLimitReached,
        ),
        (
            ExecutionBudget {
                max_cost: money,
                ..budget()
            },
            StopReason::TokenLimitReached,
        ),
        (
            ExecutionBudget {
                deadline: "2026-01-02T03:04:05.000001Z".parse().ok(),
                ..budget()
            },
            StopReason::TimeLimitReached,
        ),
    ] {
        let case = format!("{budget:?}");
        let answers = [says("one"), says("two")];
        let setup = Setup::new(answers).with_budget(budget).with_price(price);
        let setup = setup.with_hook(insisting()).with_hook(Pause);
        let state = setup.run().await;
        assert_eq!(setup.model.requests().len(), 1, "{case}");
        assert_eq!(
            (state.status(), state.stop_reason()),
            (Some(ExecutionStatus::Stopped), Some(reason)),
            "{case}"
        );
        assert_eq!(state.stop_signal().unwrap().source.as_deref(), Some("budget"), "{case}");
        let answer = state.stored_messages().last().unwrap();
        assert_eq!(
            (answer.joined_text().as_str(), answer.tags.is_trace),
            ("one", false),
            "{case}"
        );
        let names = setup.events.names();
        let begun = names.iter().filter(|name| *name == "step.started").count();
        assert_eq!(begun, 1, "{case}");
    }
}

/// Lets a microsecond pass after each step.
#[derive(Debug)]
struct Pause;

impl Hook for Pause {
    fn name(&self) -> &'static str {
        "pause"
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::AfterStep]
    }

    fn call(&self, context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(context)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_execution_ends_despite_other_signals() {
    let setup = Setup::new([says("one"), says("two")]);
    let token: CancellationToken = setup.cancellation.clone();
    let cancelling = Probe::changing(HookPoint::AfterModelRequest, move |context| {
        token.cancel();
        context
    });
    let setup = setup.with_hook(cancelling).with_hook(insisting());
    let state = setup.run().await;
    assert_eq!(setup.model.requests().len(), 1);
    assert_eq!(transcript(&state), ["user: go", "assistant: one"]);
    let signal = state.stop_signal().unwrap();
    assert_eq!(
        (signal.reason, signal.source.as_deref(), signal.is_binding),
        (StopReason::UserRequested, Some("cancellation"), true)
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_is_cancelled_before_it_begins_calls_no_model() {
    let setup = Setup::new([]);
    setup.cancellation.cancel();
    let state = setup.run().await;
    assert_eq!(
        (state.step_count(), state.stop_reason()),
        (0, Some(StopReason::UserRequested))
    );
    assert_eq!(state.execution().unwrap().continuation.stop_signals.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_decision_matches_the_end() {
    let mut setups = vec![Setup::new([says("done")])];
    for point in [HookPoint::BeforeExecution, HookPoint::BeforeStep, HookPoint::AfterStep] {
        for reason in StopReason::ALL.iter().copied() {
            let low = objecting(point, StopReason::Unknown, false).named("low");
            setups.push(
                Setup::new([says("done")])
                    .with_hook(low)
                    .with_hook(objecting(point, reason, true)),
            );
        }
    }
    for setup in setups {
        setup.run().await;
        let events = setup.events.events();
        let decided = events.iter().rev().find_map(|event| match event {
            AgentEvent::ContinuationEvaluated {
                decision,
                reason,
                source,
                message,
                ..
            } => {
                assert_eq!(*decision, ContinuationDecision::Stop);
                Some((reason.unwrap(), source.clone(), message.clone()))
            }
            _ => None,
        });
        let ended = events.iter().find_map(|event| match event {
            AgentEvent::ExecutionEnded {
                reason,
                source,
                message,
                ..
            } => Some((*reason, source.clone(), message.clone())),
            _ => None,
        });
        // A stop before the first step leaves nothing to decide after it.
        let names = setup.events.names();
        if names.iter().any(|name| name == "step.started") {
            assert_eq!(decided, ended, "{names:?}");
        }
        assert!(ended.is_some());
    }
}
