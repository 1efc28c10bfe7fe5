//! `limits`: each limit ends an execution between steps under the hook's name, and nothing that it
//! counts outlives the execution.

use std::time::Duration;

use agent::HookPoint;
use agent::hooks::HookContext;
use agent::state::{ExecutionStatus, StopReason};
use serde_json::json;
use test_support::fake_model::{Beat, asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Value;
use values::usage::Price;

use crate::hooks::probe::Probe;
use crate::setup::Setup;

/// An agent that calls a tool of 100 ms in each step, and has an answer after `steps` of them.
fn working(steps: usize, config: Value) -> Setup {
    let call = asks_for(&[("c1", "work", "{}")]);
    with_limits(std::iter::repeat_n(call, steps).chain([says("done")]), config)
}

fn with_limits(answers: impl IntoIterator<Item = Vec<Beat>>, config: Value) -> Setup {
    Setup::new(answers)
        .with_tool(&FakeTool::new("work", Behaviour::Wait(Duration::from_millis(100))))
        .with_price(Price::per_million(1.0, 1.0, None, None).unwrap())
        .with_attached("limits", config)
}

#[tokio::test(start_paused = true)]
async fn each_limit_ends_the_execution_after_the_step_that_reaches_it() {
    use StopReason as R;
    // A step takes 100 ms and 15 tokens of a millionth of a dollar each.
    for (config, steps, reason, context) in [
        (
            json!({"max_steps": 2}),
            2,
            R::StepsLimitReached,
            json!({"max_steps": 2}),
        ),
        (
            json!({"max_tokens": 30}),
            2,
            R::TokenLimitReached,
            json!({"max_tokens": 30}),
        ),
        (
            json!({"max_tokens": 31}),
            3,
            R::TokenLimitReached,
            json!({"max_tokens": 31}),
        ),
        (
            json!({"max_cost": 0.00004}),
            3,
            R::TokenLimitReached,
            json!({"max_cost": 0.00004}),
        ),
        (
            json!({"max_seconds": 0.2}),
            2,
            R::TimeLimitReached,
            json!({"max_seconds": 0.2}),
        ),
        (
            json!({"max_seconds": 0.25}),
            3,
            R::TimeLimitReached,
            json!({"max_seconds": 0.25}),
        ),
        (
            json!({"deadline": "2026-01-02T03:04:05.100Z"}),
            1,
            R::TimeLimitReached,
            json!({"deadline": "2026-01-02T03:04:05.100Z"}),
        ),
        // Of several that are reached the highest reason decides.
        (
            json!({"max_tokens": 15, "max_steps": 1}),
            1,
            R::StepsLimitReached,
            json!({"max_steps": 1}),
        ),
    ] {
        let setup = working(5, config.clone());
        let state = setup.run().await;
        assert_eq!(state.step_count(), steps, "{config}");
        assert_eq!(state.status(), Some(ExecutionStatus::Stopped), "{config}");
        let signal = state.stop_signal().unwrap();
        assert_eq!(
            (signal.reason, signal.source.as_deref()),
            (reason, Some("limits")),
            "{config}"
        );
        assert_eq!(json!(signal.context), context, "{config}");
        // The limit was told after the step and not before another one.
        let names = setup.events.names();
        let begun = names.iter().filter(|name| *name == "step.started").count();
        assert_eq!(begun, steps, "{config}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_lets_no_step_begin() {
    let setup = working(1, json!({"deadline": "2026-01-02T03:04:05Z"}));
    let state = setup.run().await;
    assert_eq!((state.step_count(), setup.model.requests().len()), (0, 0));
    assert_eq!(state.stop_reason(), Some(StopReason::TimeLimitReached));
}

#[tokio::test(start_paused = true)]
async fn a_final_response_on_the_last_step_and_token_completes() {
    let setup = working(1, json!({"max_steps": 2, "max_tokens": 30}));
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(state.stop_signal(), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_counted_outlives_the_execution() {
    // Each limit allows one execution of two steps, 30 tokens and 100 ms, and forbids a step of the
    // next one that counts both.
    for config in [
        json!({"max_steps": 2}),
        json!({"max_tokens": 31}),
        json!({"max_cost": 0.000_031}),
        json!({"max_seconds": 0.15}),
    ] {
        let call = || asks_for(&[("c1", "work", "{}")]);
        let setup = with_limits([call(), says("done"), call(), says("done again")], config.clone());
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{config}");
        // The next execution of the same agent has all of its limits left.
        let state = setup.run_from(state, "again").await;
        assert_eq!(
            (state.status(), state.step_count(), state.final_text().as_str()),
            (Some(ExecutionStatus::Completed), 2, "done again"),
            "{config}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_to_continue_exceeds_a_limit() {
    for config in [json!({"max_steps": 1}), json!({"max_tokens": 15})] {
        let insisting = Probe::changing(HookPoint::AfterStep, |context| {
            let now = context.state.updated_at();
            let state = context.state.with_continuation_requested(now);
            HookContext { state, ..context }
        });
        let setup = with_limits([says("one"), says("two")], config.clone()).with_hook(insisting);
        let state = setup.run().await;
        assert_eq!((state.step_count(), setup.model.requests().len()), (1, 1), "{config}");
        let signal = state.stop_signal().unwrap();
        assert_eq!(
            (signal.source.as_deref(), signal.is_binding),
            (Some("limits"), true),
            "{config}"
        );
    }
}
