//! Budgets stop an execution before a step and during it, and retain its work.

use std::sync::Arc;
use std::time::Duration;

use agent::HookPoint;
use agent::journal::{JournalEntry, Progress};
use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::{AgentState, ExecutionBudget, ExecutionStatus, FinishReason, StopReason};
use chrono::TimeDelta;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use test_support::fake_model::{Beat, asks_for, completed, counted, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::wires::{chat_settings, encode_request};
use values::clock::Clock as _;
use values::message::ContentPart;
use values::usage::{Cost, Price, Usage};

use crate::hooks::probe::Probe;
use crate::memory_journal::MemoryJournal;
use crate::setup::{Setup, assert_ended, budget, last_words, transcript};

#[track_caller]
fn assert_stopped(state: &AgentState, reason: StopReason, limit: &str) {
    assert_eq!(state.status(), Some(ExecutionStatus::Stopped));
    assert_eq!(state.stop_reason(), Some(reason));
    let signal = state.stop_signal().unwrap();
    assert_eq!(signal.source.as_deref(), Some("budget"));
    assert!(limit.is_empty() || signal.context.contains_key(limit), "{signal:?}");
    // The message names the limit and its value.
    let (name, value) = signal.context.iter().next().unwrap();
    let words = format!(": {name} is {value}");
    assert!(signal.message.ends_with(&words), "{}", signal.message);
    assert!(
        state.errors().iter().all(|error| error.code == "tool_timeout"),
        "{:?}",
        state.errors()
    );
}

/// An agent that asks for a tool for ever.
fn tireless(steps: usize) -> Setup {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let ids: Vec<_> = (0..steps).map(|step| format!("c{step}")).collect();
    let answers: Vec<_> = ids.iter().map(|id| asks_for(&[(id, "echo", "{}")])).collect();
    Setup::new(answers).with_tool(&echo)
}

#[tokio::test(start_paused = true)]
async fn steps() {
    for max_steps in [0, 1, 3] {
        let setup = tireless(4).with_budget(budget(|b| b.max_steps = Some(max_steps)));
        let state = setup.run().await;
        assert_stopped(&state, StopReason::StepsLimitReached, "max_steps");
        assert_eq!(state.step_count(), max_steps as usize);
        assert_eq!(setup.model.requests().len(), max_steps as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tokens_that_are_left_bound_the_next_completion() {
    // Each step uses 15 tokens.
    let setup = tireless(4).with_budget(budget(|b| b.max_tokens = Some(40)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TokenLimitReached, "max_tokens");
    let limits: Vec<_> = setup
        .model
        .requests()
        .iter()
        .map(|request| request.max_output_tokens)
        .collect();
    // Each request takes some itself, and a longer one takes more.
    assert_eq!(limits, [Some(39), Some(23), Some(7)]);
    assert_eq!(state.usage().total_tokens, 45);
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_ends_by_itself_completes_even_on_the_last_token() {
    let setup = Setup::new([says("done")]).with_budget(budget(|b| b.max_tokens = Some(15)));
    let state = setup.run().await;
    assert_ended(&state, ExecutionStatus::Completed, StopReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_the_limit_cut_short_is_not_complete() {
    let cut = completed(
        vec![ContentPart::text("half a sen")],
        FinishReason::Length,
        usage(10, 5),
    );
    let setup = Setup::new([vec![text("half a sen"), cut]]).with_budget(budget(|b| b.max_tokens = Some(15)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TokenLimitReached, "max_tokens");
    assert_eq!(last_words(&state), "half a sen");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_ignores_the_limit_is_cut_by_size() {
    let endless = (0..100).map(|_| text("lorem ipsum ")).chain([Beat::Hang]).collect();
    let setup = Setup::new([endless]).with_budget(budget(|b| b.max_tokens = Some(10)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TokenLimitReached, "max_tokens");
    // 8 characters a token and 8 tokens to spare.
    assert_eq!(last_words(&state), "lorem ipsum ".repeat(13));
    let response = state.last_step().unwrap().response.clone().unwrap();
    assert_eq!(response.finish_reason, FinishReason::Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_reports_usage_is_cut_by_it() {
    let beats = vec![
        text("a"),
        Beat::Event(ModelEvent::Usage(usage(5, 20))),
        text("b"),
        Beat::Event(ModelEvent::Usage(usage(5, 31))),
        text("never read"),
    ];
    let setup = Setup::new([beats]).with_budget(budget(|b| b.max_tokens = Some(30)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TokenLimitReached, "max_tokens");
    assert_eq!(last_words(&state), "ab");
    assert_eq!(state.usage(), usage(5, 31));
}

#[tokio::test(start_paused = true)]
async fn the_cost_that_is_left_bounds_the_next_completion() {
    // A step costs 10 x 1 + 5 x 2 dollars per million tokens: 20 microdollars.
    let price = Price::per_million(1.0, 2.0, None, None).unwrap();
    let max_cost = Cost::from_dollars(0.000_05);
    let setup = tireless(4)
        .with_price(price)
        .with_budget(budget(|b| b.max_cost = max_cost));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TokenLimitReached, "max_cost");
    let limits: Vec<_> = setup
        .model
        .requests()
        .iter()
        .map(|request| request.max_output_tokens)
        .collect();
    assert_eq!(limits, [Some(24), Some(14), Some(3)]);
    assert_eq!(state.usage().cost, Cost::from_dollars(0.000_06));
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_costs_too_much_is_cut() {
    // 10 dollars buy 10 tokens of output.
    let price = Price::per_million(0.0, 1e6, None, None).unwrap();
    let max_cost = Cost::from_dollars(10.0);
    // What is not told is estimated: four bytes a token.
    let reported = vec![
        text("a"),
        Beat::Event(ModelEvent::Usage(usage(5, 11))),
        text("never read"),
    ];
    let untold = (0..100).map(|_| text("lorem ipsum ")).chain([Beat::Hang]).collect();
    for (beats, words, cost) in [
        (reported, "a".to_owned(), 11.0),
        (untold, "lorem ipsum ".repeat(13), 39.0),
    ] {
        let setup = Setup::new([beats])
            .with_price(price)
            .with_budget(budget(|b| b.max_cost = max_cost));
        let state = setup.run().await;
        assert_stopped(&state, StopReason::TokenLimitReached, "max_cost");
        assert_eq!(
            (last_words(&state), state.usage().cost),
            (words, Cost::from_dollars(cost))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_overruns_is_cut_by_the_limit_that_left_the_least() {
    // A dollar a token.
    let price = Price::per_million(0.0, 1e6, None, None).unwrap();
    let tokens = |max| budget(|b| b.max_tokens = Some(max));
    let dollars = |max| budget(|b| b.max_cost = Cost::from_dollars(max));
    let both = |max_tokens, max_dollars| ExecutionBudget {
        max_tokens: Some(max_tokens),
        ..dollars(max_dollars)
    };
    let unlimited = ExecutionBudget::default;
    for (own, above, limit, value) in [
        (unlimited(), tokens(10), "max_tokens", json!(10)),
        (unlimited(), dollars(10.0), "max_cost", json!(10.0)),
        (tokens(20), dollars(10.0), "max_cost", json!(10.0)),
        (both(20, 10.0), unlimited(), "max_cost", json!(10.0)),
        (both(10, 20.0), tokens(15), "max_tokens", json!(10)),
    ] {
        let endless = (0..100).map(|_| text("lorem ipsum ")).chain([Beat::Hang]).collect();
        let setup = Setup::new([endless]).with_price(price).with_budget(own).below(above);
        let state = setup.run().await;
        assert_stopped(&state, StopReason::TokenLimitReached, limit);
        assert_eq!(state.stop_signal().unwrap().context[limit], value);
    }
}

#[tokio::test(start_paused = true)]
async fn seconds_cut_a_slow_completion_and_retain_its_text() {
    let second = Duration::from_secs(1);
    let slow = (0..9).flat_map(|_| [text("tick "), Beat::Wait(second)]).collect();
    let setup = Setup::new([slow]).with_budget(budget(|b| b.max_seconds = Some(2.5)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TimeLimitReached, "");
    assert_eq!(transcript(&state), ["user: go", "assistant: tick tick tick "]);
    assert_eq!(setup.elapsed(&state), TimeDelta::milliseconds(2_500));
    let step = &state.execution().unwrap().step_executions[0];
    assert_eq!(step.duration(), TimeDelta::milliseconds(2_500));
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_seconds_and_deadline_counts() {
    let setup = Setup::new([vec![Beat::Hang]]);
    let deadline = setup.clock.now() + TimeDelta::milliseconds(700);
    let setup = setup.with_budget(budget(|b| {
        b.max_seconds = Some(60.0);
        b.deadline = Some(deadline);
    }));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TimeLimitReached, "");
    assert_eq!(setup.clock.now(), deadline);
    assert_eq!(
        transcript(&state),
        ["user: go"],
        "an answer without content makes no message"
    );
}

#[tokio::test(start_paused = true)]
async fn no_request_is_made_after_the_deadline() {
    let setup = Setup::new([]);
    let deadline = setup.clock.now() - TimeDelta::milliseconds(1);
    let setup = setup.with_budget(budget(|b| b.deadline = Some(deadline)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TimeLimitReached, "");
    assert_eq!((state.step_count(), setup.model.requests().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_completion_is_not_read_once_a_hook_before_it_has_spent_the_time() {
    let slow = Probe::changing(HookPoint::BeforeModelRequest, |context| {
        // What it does is done when it is first polled.
        let _ = tokio::time::advance(Duration::from_mins(1)).now_or_never();
        context
    });
    let setup = Setup::new([says("late")]).with_hook(slow);
    let state = setup.with_budget(budget(|b| b.max_seconds = Some(60.0))).run().await;
    assert_stopped(&state, StopReason::TimeLimitReached, "");
    assert_eq!(transcript(&state), ["user: go"]);
}

/// Time servers and administrators set the time of day while runs are in progress.
#[tokio::test(start_paused = true)]
async fn setting_the_time_of_day_neither_ends_an_execution_nor_makes_it_endless() {
    for by in [TimeDelta::days(1), TimeDelta::days(-1)] {
        let quick = FakeTool::new("quick", Behaviour::Answer("ok".to_owned()));
        let hangs = FakeTool::new("hangs", Behaviour::Hang);
        let setup = Setup::new([asks_for(&[("c1", "quick", "")]), asks_for(&[("c2", "hangs", "")])]);
        let clock = setup.clock;
        let setting = Probe::changing(HookPoint::BeforeModelRequest, move |context| {
            clock.set(by);
            context
        });
        let setup = setup.with_tool(&quick).with_tool(&hangs).with_hook(setting);
        let began = tokio::time::Instant::now();
        let state = setup.with_budget(budget(|b| b.max_seconds = Some(3.0))).run().await;
        assert_stopped(&state, StopReason::TimeLimitReached, "");
        assert_eq!(began.elapsed(), Duration::from_secs(3), "{by}");
        assert_eq!((quick.begun(), hangs.begun(), hangs.working()), (1, 1, 0), "{by}");
        // The steps have times that agree with each other.
        let execution = state.execution().unwrap();
        assert_eq!(execution.duration(clock.now()), TimeDelta::seconds(3), "{by}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_a_tool_and_its_call_gets_an_error_result() {
    let hangs = FakeTool::new("hangs", Behaviour::Hang);
    let quick = FakeTool::new("quick", Behaviour::Answer("ok".to_owned()));
    let answer = asks_for(&[("c1", "hangs", ""), ("c2", "quick", "")]);
    let setup = Setup::new([answer])
        .with_tool(&hangs)
        .with_tool(&quick)
        .with_budget(budget(|b| b.max_seconds = Some(3.0)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TimeLimitReached, "");
    assert_eq!(
        transcript(&state),
        ["user: go", "assistant: call c1 call c2", "tool: error c1 result c2"]
    );
    assert_eq!(setup.elapsed(&state), TimeDelta::seconds(3));
    assert_eq!(hangs.working(), 0);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_no_server_counts_are_estimated() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let arguments = format!(r#"{{"note": "{}"}}"#, "x".repeat(84));
    let answers = ["c1", "c2", "c3", "c4"].map(|id| counted(asks_for(&[(id, "echo", &arguments)]), usage(0, 0)));
    let setup = Setup::new(answers)
        .with_tool(&echo)
        .with_budget(budget(|b| b.max_tokens = Some(60)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TokenLimitReached, "max_tokens");
    // The first step reads "go" and writes 100 bytes, the second reads them and their result too.
    let first = &state.execution().unwrap().step_executions[0];
    assert_eq!(first.step.usage(), usage(1, 25));
    assert_eq!(state.step_count(), 2, "{:?}", state.usage());
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_is_cut_or_fails_halfway_is_not_free() {
    let cut = vec![text("12345678"), Beat::Hang];
    let failed = vec![text("12345678"), Beat::Fail(ModelErrorClass::Network, "gone")];
    let refused = vec![Beat::Fail(ModelErrorClass::Auth, "no")];
    for (beats, used) in [(cut, usage(1, 2)), (failed, usage(1, 2)), (refused, Usage::NOTHING)] {
        let setup = Setup::new([beats]).with_budget(budget(|b| b.max_seconds = Some(1.0)));
        assert_eq!(setup.run().await.usage(), used);
    }
}

#[tokio::test(start_paused = true)]
async fn reasoning_that_was_cut_is_stored_and_not_sent_again() {
    let thinks = Beat::Event(ModelEvent::ReasoningDelta { text: "hm".to_owned() });
    let setup = Setup::new([vec![thinks, Beat::Hang], says("yes")]).with_budget(budget(|b| b.max_seconds = Some(1.0)));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::TimeLimitReached, "");
    assert_eq!(transcript(&state), ["user: go", "assistant:"]);
    let state = setup.run_from(state, "and now?").await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    let body = encode_request(&setup.model.requests()[1], &chat_settings("fake"), true);
    let body: Value = serde_json::from_slice(&body).unwrap();
    let said = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(body["messages"], json!([said("go"), said("and now?")]));
}

#[tokio::test(start_paused = true)]
async fn all_limits_that_are_reached_signal_and_the_highest_decides() {
    let setup = tireless(1).with_budget(budget(|b| {
        b.max_steps = Some(1);
        b.max_tokens = Some(15);
    }));
    let state = setup.run().await;
    assert_stopped(&state, StopReason::StepsLimitReached, "max_steps");
    let signals = &state.execution().unwrap().continuation.stop_signals;
    let reasons: Vec<_> = signals.iter().map(|signal| signal.reason).collect();
    assert_eq!(reasons, [StopReason::TokenLimitReached, StopReason::StepsLimitReached]);
}

#[tokio::test(start_paused = true)]
async fn the_record_bounds_about_as_many_bytes_of_json_and_those_of_earlier_attempts_count() {
    let json_bytes = |state: &AgentState| -> usize {
        let steps = state.steps().map(|step| serde_json::to_string(step).unwrap().len());
        steps.sum()
    };
    for behaviour in [Behaviour::EchoArguments, Behaviour::Fail("no ".repeat(1_000))] {
        let setup = |made: usize| {
            let tool = FakeTool::new("work", behaviour.clone());
            let arguments = json!({"note": "x".repeat(500)}).to_string();
            let answers = (made..30).map(|step| asks_for(&[(&format!("c{step}"), "work", &arguments)]));
            Setup::new(answers).with_tool(&tool)
        };
        let one = setup(0).with_budget(budget(|b| b.max_steps = Some(1))).run().await;
        let max = 10 * json_bytes(&one);
        let journal = MemoryJournal::new();
        let first = setup(0)
            .with_max_record(max as u64)
            .with_journal(Arc::clone(&journal) as _);
        let begun = first.new_state();
        let whole = first.run_from(begun.clone(), "go").await;
        let signal = whole.stop_signal().unwrap();
        assert_eq!(signal.source.as_deref(), Some("record"));
        assert_eq!(signal.context.get("max_record_bytes"), Some(&json!(max)));
        // Messages that stand in a step several times are counted once.
        let size = json_bytes(&whole);
        assert!((max..=2 * max).contains(&size), "{size} of {max}: {behaviour:?}");

        let completed = |entry: &JournalEntry| usize::from(matches!(entry, JournalEntry::Reached(_)));
        let retained = journal.entries().into_iter().scan(0, |reached, entry| {
            *reached += completed(&entry);
            (*reached <= 5).then_some(entry)
        });
        let progress = Progress::of(begun, retained).unwrap().unwrap();
        assert_eq!(progress.state.step_count(), 4);
        let made = 4 + usize::from(progress.pending.is_some());
        let resumed = setup(made).with_max_record(max as u64).go_on(progress).await;
        // The same steps, but for the digits of times.
        let (steps, expected) = (resumed.step_count(), whole.step_count());
        assert!(steps.abs_diff(expected) <= 1, "{steps} instead of {expected}");
    }
}
