//! Budgets before the provider has counted: the least that a request uses, and the least that a
//! completion is while it streams.

use std::path::Path;
use std::time::Duration;

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::{AgentState, ExecutionBudget, ExecutionStatus, FinishReason, StopReason};
use test_support::fake_model::{Beat, FakeModel, completed, counted, says, text, usage};
use values::json::Value;
use values::message::ContentPart;
use values::usage::{Cost, Price, Usage};

use crate::setup::{Setup, assert_ended, budget, last_words, transcript};

/// A text of 120 tokens at least, of which it has 200.
fn input() -> String {
    "lorem ipsum ".repeat(80)
}

fn tokens(max: u64) -> ExecutionBudget {
    budget(|budget| budget.max_tokens = Some(max))
}

fn dollars(max: f64) -> ExecutionBudget {
    budget(|budget| budget.max_cost = Cost::from_dollars(max))
}

/// Dollars per million tokens.
fn price(input: f64, output: f64, cache_read: Option<f64>) -> Option<Price> {
    Price::per_million(input, output, cache_read, None)
}

fn assert_stopped(state: &AgentState) {
    assert_ended(state, ExecutionStatus::Stopped, StopReason::TokenLimitReached);
    assert!(state.errors().is_empty());
}

fn sent(setup: &Setup) -> Vec<Option<u64>> {
    let requests = setup.model.requests();
    requests.iter().map(|request| request.max_output_tokens).collect()
}

#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_nothing_for_a_completion_is_not_sent() {
    let unlimited = ExecutionBudget::default;
    let plain = price(1.0, 2.0, None);
    for (own, above, price, expected) in [
        (tokens(120), unlimited(), None, Err("max_tokens is 120")),
        (tokens(121), unlimited(), None, Ok(Some(1))),
        (unlimited(), tokens(100), None, Err("max_tokens is 100")),
        (tokens(500), tokens(150), None, Ok(Some(30))),
        (dollars(0.000_12), unlimited(), plain, Err("max_cost is 0.00012")),
        (dollars(0.000_121), unlimited(), plain, Err("max_cost is 0.000121")),
        (dollars(0.000_122), unlimited(), plain, Ok(Some(1))),
        (tokens(500), dollars(0.000_1), plain, Err("max_cost is 0.0001")),
        // The provider may have the whole of it in its cache.
        (dollars(0.000_05), unlimited(), price(1.0, 2.0, Some(0.1)), Ok(Some(19))),
        (
            dollars(0.000_01),
            unlimited(),
            price(1.0, 2.0, Some(0.1)),
            Err("max_cost is 0.00001"),
        ),
        // Answers are free, requests are not.
        (
            dollars(0.000_12),
            unlimited(),
            price(1.0, 0.0, None),
            Err("max_cost is 0.00012"),
        ),
        (dollars(0.000_13), unlimited(), price(1.0, 0.0, None), Ok(None)),
        (dollars(0.000_01), unlimited(), price(0.0, 0.0, None), Ok(None)),
        // What has no price is not limited by cost.
        (dollars(0.000_01), unlimited(), None, Ok(None)),
    ] {
        let case = format!("{own:?} {above:?}");
        let mut setup = Setup::new([says("done")]).with_budget(own).below(above);
        if let Some(price) = price {
            setup = setup.with_price(price);
        }
        let state = setup.run_from(setup.new_state(), &input()).await;
        match expected {
            Ok(most) => {
                assert_eq!(sent(&setup), [most], "{case}");
                assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{case}");
            }
            Err(limit) => {
                assert_eq!(sent(&setup), [], "{case}");
                assert_stopped(&state);
                let words = "too little is left for a request of at least 120 tokens and its answer";
                assert_eq!(state.stop_signal().unwrap().message, format!("{words}: {limit}"));
                assert_eq!(
                    (state.usage(), setup.control().unwrap().spent()),
                    (Usage::NOTHING, Usage::NOTHING)
                );
                assert_eq!(transcript(&state), [format!("user: {}", input())]);
                assert!(!setup.events.names().contains(&"model.requested".to_owned()), "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn neither_a_fallback_nor_an_attempt_is_asked_for_what_does_not_fit() {
    let second = FakeModel::new([]);
    let setup = Setup::new([vec![Beat::Fail(ModelErrorClass::Overload, "no")]])
        .with_budget(dollars(0.001))
        .with_price(price(1.0, 1.0, None).unwrap())
        .with_fallback("other/two", &second, price(10.0, 10.0, None));
    let state = setup.run_from(setup.new_state(), &input()).await;
    assert_stopped(&state);
    assert_eq!((sent(&setup).len(), second.requests().len()), (1, 0));

    let beats = vec![
        Beat::Event(ModelEvent::AttemptFailed {
            usage: usage(40, 0),
            class: ModelErrorClass::Server,
        }),
        text("never read"),
    ];
    let setup = Setup::new([beats]).with_budget(tokens(150));
    let state = setup.run_from(setup.new_state(), &input()).await;
    assert_stopped(&state);
    let reported = vec![format!("user: {}", input())];
    assert_eq!((transcript(&state), state.usage()), (reported, usage(40, 0)));
}

/// Returns the words of what a request says, and none of its other fields.
fn words(said: &Value) -> Vec<&str> {
    let other = [
        "type",
        "role",
        "id",
        "call_id",
        "tool_call_id",
        "data",
        "url",
        "signature",
        "thoughtSignature",
        "encrypted_content",
    ];
    match said {
        Value::Array(parts) => parts.iter().flat_map(words).collect(),
        Value::Object(fields) => {
            let reported = fields.iter().filter(|(name, _)| !other.contains(&name.as_str()));
            reported.flat_map(|(_, value)| words(value)).collect()
        }
        said => said.as_str().into_iter().collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn no_recorded_request_is_refused_that_fits_by_its_provider_s_count() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let read = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap() };
    let expected = read("expected.json");
    let mut asked = 0;
    for (name, rows) in expected.as_object().unwrap() {
        let recording = read(name);
        for row in rows.as_array().unwrap() {
            let number = usize::try_from(row["exchange"].as_u64().unwrap()).unwrap();
            let body = &recording["exchanges"][number]["request"]["body"];
            let said = [
                "system",
                "systemInstruction",
                "instructions",
                "messages",
                "contents",
                "input",
            ];
            let said = said
                .iter()
                .flat_map(|field| words(&body[field]))
                .collect::<Vec<_>>()
                .join("\n");
            let Some(input) = row["usage"]["input_tokens"]
                .as_u64()
                .filter(|input| *input > 0 && !said.is_empty())
            else {
                continue;
            };
            let setup = Setup::new([says("done")]).with_budget(tokens(input + 1));
            setup.run_from(setup.new_state(), &said).await;
            assert_eq!(sent(&setup).len(), 1, "{name} {number}: {input} tokens");
            asked += 1;
        }
    }
    assert!(asked > 50, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn rows_of_one_character_may_be_few_tokens() {
    let rows = format!("{}\n{}\n{}", " ".repeat(2_000), "-".repeat(2_000), "=".repeat(2_000));
    let setup = Setup::new([vec![text(&rows), completed(vec![], FinishReason::Stop, usage(20, 15))]]);
    let setup = setup.with_budget(tokens(40));
    let state = setup.run_from(setup.new_state(), &rows).await;
    assert_eq!(
        (sent(&setup), state.status()),
        (vec![Some(40)], Some(ExecutionStatus::Completed))
    );
}

#[tokio::test(start_paused = true)]
async fn text_reasoning_and_calls_are_cut_near_the_limit() {
    let words: fn(&str) -> Beat = text;
    let reasoning = |words: &str| Beat::Event(ModelEvent::ReasoningDelta { text: words.to_owned() });
    let call = |words: &str| {
        Beat::Event(ModelEvent::ToolCallDelta {
            index: 0,
            arguments: words.to_owned(),
        })
    };
    for beat in [words, reasoning, call] {
        let endless = (0..100).map(|_| beat("lorem ipsum ")).chain([Beat::Hang]).collect();
        let setup = Setup::new([endless]).with_budget(tokens(25));
        let state = setup.run().await;
        assert_stopped(&state);
        // 25 tokens and 8 to spare, at 8 characters each, are 23 pieces of 3 tokens. They are
        // estimated at 4 bytes each.
        assert_eq!(state.usage(), usage(1, 69));
    }
}

#[tokio::test(start_paused = true)]
async fn a_count_that_comes_early_cuts_what_comes_after_it_and_the_last_one_cuts_nothing() {
    let count = |input, output| Beat::Event(ModelEvent::Usage(usage(input, output)));
    // The request alone took the budget.
    let early = vec![count(40, 1), text("never read"), Beat::Hang];
    let setup = Setup::new([early]).with_budget(tokens(40));
    let state = setup.run().await;
    assert_stopped(&state);
    assert_eq!(
        (transcript(&state), state.usage()),
        (vec!["user: go".to_owned()], usage(40, 1))
    );

    // The server that ignores the limit has sent the whole answer.
    let whole = vec![text("a whole answer"), count(11, 60)];
    let end = counted(says("a whole answer").split_off(1), usage(11, 60));
    let setup = Setup::new([[whole, end].concat()]).with_budget(tokens(25));
    let state = setup.run().await;
    assert_eq!(
        (state.status(), state.usage()),
        (Some(ExecutionStatus::Completed), usage(11, 60))
    );
    let response = state.last_step().unwrap().response.clone().unwrap();
    assert_eq!(response.finish_reason, FinishReason::Stop);
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_comes_whole_is_not_cut_and_one_that_comes_in_pieces_is() {
    let long = "documents ".repeat(41);
    let content = vec![ContentPart::text(long.clone())];
    let end = completed(content, FinishReason::Stop, usage(11, 60));
    let pieces = (0..41).map(|_| text("documents ")).chain([end.clone()]).collect();
    for (beats, status, said) in [
        (vec![end], ExecutionStatus::Completed, 41),
        (pieces, ExecutionStatus::Stopped, 28),
    ] {
        let setup = Setup::new([beats]).with_budget(tokens(25));
        let state = setup.run().await;
        assert_eq!(state.status(), Some(status));
        assert_eq!(last_words(&state), "documents ".repeat(said));
    }
}

#[test]
fn the_tokens_of_a_large_request_are_counted_beside_the_async_workers_and_the_time_limit_cuts_it() {
    let budget = ExecutionBudget {
        max_seconds: Some(60.0),
        ..tokens(1_000_000)
    };
    // Work beside the async workers is done by one thread here, which other work holds up.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let setup = Setup::new([says("done")]).with_budget(budget);
        let (release, held) = std::sync::mpsc::channel::<()>();
        setup.events.at(2, move || {
            tokio::task::spawn_blocking(move || held.recv());
            tokio::time::pause();
        });
        let passing = async {
            setup.events.until_emitted("step.started").await;
            // Timers end at whole milliseconds, and the clock stands between two.
            tokio::time::advance(Duration::from_mins(1) + Duration::from_millis(1)).await;
            setup.events.until_emitted("execution.ended").await;
            drop(release);
        };
        let input = input().repeat(100);
        let (state, ()) = tokio::join!(setup.run_from(setup.new_state(), &input), passing);
        assert_ended(&state, ExecutionStatus::Stopped, StopReason::TimeLimitReached);
        assert!(
            !setup
                .events
                .names()
                .iter()
                .any(|reported| reported == "model.requested")
        );
        assert!(setup.model.requests().is_empty());
    });
}
