//! Fallback chains: a later model is called when those before it fail, and only before any delta
//! was emitted.

use agent::hooks::{HookError, HookSubject};
use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::{ExecutionStatus, StopReason};
use agent::{AgentEvent, HookPoint};
use test_support::fake_model::{Beat, FakeModel, asks_for, completed, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::usage::{Cost, Price, Usage};

use crate::hooks::probe::Probe;
use crate::setup::{Setup, assert_ended, budget, last_words, transcript};

fn fails(class: ModelErrorClass) -> Vec<Beat> {
    vec![Beat::Fail(class, "no")]
}

/// The model of each request, and the code of its error.
fn asked(setup: &Setup) -> Vec<(String, Option<String>)> {
    let responded = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::ModelResponded { model, error, .. } => Some((model.to_string(), error.map(|error| error.code))),
        _ => None,
    });
    responded.collect()
}

#[tokio::test(start_paused = true)]
async fn any_failure_before_the_first_piece_leads_to_the_next_model() {
    use ModelErrorClass as C;
    for class in [
        C::Auth,
        C::RateLimit,
        C::Overload,
        C::Context,
        C::Invalid,
        C::Server,
        C::Network,
        C::Timeout,
        C::Truncated,
        C::Protocol,
    ] {
        let second = FakeModel::new([says("from the second")]);
        let setup = Setup::new([fails(class)]).with_fallback("other/two", &second, None);
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{class:?}");
        assert_eq!(transcript(&state), ["user: go", "assistant: from the second"]);
        assert_eq!(
            state.errors().len(),
            0,
            "an error that a fallback mended is no error of the step"
        );
        let code = class.code().to_owned();
        assert_eq!(
            asked(&setup),
            [("fake/one".to_owned(), Some(code)), ("other/two".to_owned(), None)]
        );
        assert_eq!(second.requests()[0].model, "two");
        let answered_by = state.last_step().and_then(|step| step.answered_by.clone());
        assert_eq!(answered_by, Some("other/two".parse().unwrap()));
        assert_eq!(second.requests()[0].messages, setup.model.requests()[0].messages);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_switches_after_the_first_piece() {
    let second = FakeModel::new([]);
    for piece in [
        text("half"),
        Beat::Event(ModelEvent::ReasoningDelta { text: "hm".to_owned() }),
        Beat::Event(ModelEvent::ToolCallStarted {
            index: 0,
            id: "c1".to_owned(),
            name: "echo".to_owned(),
        }),
    ] {
        let beats = vec![piece, Beat::Fail(ModelErrorClass::Server, "broke")];
        let setup = Setup::new([beats]).with_fallback("other/two", &second, None);
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Failed));
        assert_eq!(state.errors().last().unwrap().code, "model_server_error");
        assert_eq!(
            state.answered_by(),
            Some(&"fake/one".parse().unwrap()),
            "the words are its"
        );
        assert_eq!(second.requests().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_count_of_tokens_without_output_stays_counted() {
    let second = FakeModel::new([says("done")]);
    let beats = vec![
        Beat::Event(ModelEvent::Usage(usage(100, 0))),
        Beat::Fail(ModelErrorClass::Overload, "busy"),
    ];
    let dear = Price::per_million(1.0, 1.0, None, None).unwrap();
    let cheap = Price::per_million(0.1, 0.1, None, None).unwrap();
    let setup = Setup::new([beats])
        .with_price(dear)
        .with_fallback("other/two", &second, Some(cheap));
    let state = setup.run().await;
    let mut expected = usage(110, 5);
    // Each request costs what its own model does.
    expected.cost = Cost::from_dollars(100e-6 + 15e-7);
    expected.cost_known_part = None;
    assert_eq!(state.usage(), expected);
    assert_eq!(setup.control().unwrap().spent(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_leaves_a_step_without_a_cost() {
    let beats = || {
        vec![
            Beat::Event(ModelEvent::Usage(usage(100, 0))),
            Beat::Fail(ModelErrorClass::Overload, "busy"),
        ]
    };
    let price = Price::per_million(1.0, 1.0, None, None).unwrap();
    for (first, second, known) in [
        (Some(price), None, 100e-6),
        (None, Some(price), 15e-6),
        (None, None, 0.0),
    ] {
        let fallback = FakeModel::new([says("done")]);
        let setup = Setup::new([beats()]).with_fallback("other/two", &fallback, second);
        let setup = match first {
            Some(price) => setup.with_price(price),
            None => setup,
        };
        let state = setup.run().await;
        let expected = (None, Cost::from_dollars(known));
        assert_eq!((state.usage().cost, state.usage().cost_known_part), expected);
        let spent = setup.control().unwrap().spent();
        assert_eq!((spent.cost, spent.cost_known_part), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_models_fail_the_last_error_stands() {
    let second = FakeModel::new([fails(ModelErrorClass::RateLimit)]);
    let third = FakeModel::new([fails(ModelErrorClass::Auth)]);
    let setup = Setup::new([fails(ModelErrorClass::Server)])
        .with_fallback("other/two", &second, None)
        .with_fallback("other/three", &third, None);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Failed));
    let error = state.errors().last().cloned().unwrap();
    assert_eq!(
        (error.code.as_str(), error.source_name.as_deref()),
        ("model_auth", Some("other/three"))
    );
    assert_eq!(asked(&setup).len(), 3);
    assert_eq!(state.answered_by(), None);
}

#[tokio::test(start_paused = true)]
async fn each_step_asks_the_preferred_model_first() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let second = FakeModel::new([asks_for(&[("c1", "echo", "{}")])]);
    let setup = Setup::new([fails(ModelErrorClass::Overload), says("done")])
        .with_tool(&echo)
        .with_fallback("other/two", &second, None);
    let state = setup.run().await;
    assert_eq!(state.final_text(), "done");
    let models: Vec<_> = asked(&setup).into_iter().map(|(model, _)| model).collect();
    assert_eq!(models, ["fake/one", "other/two", "fake/one"]);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_bounded_by_what_is_left_at_its_own_price() {
    let second = FakeModel::new([vec![completed(
        vec![],
        agent::state::FinishReason::Length,
        usage(0, 500),
    )]]);
    let budget = budget(|budget| budget.max_cost = Cost::from_dollars(0.001));
    let dear = Price::per_million(0.0, 10.0, None, None).unwrap();
    let cheap = Price::per_million(0.0, 2.0, None, None).unwrap();
    let setup = Setup::new([fails(ModelErrorClass::Server)])
        .with_budget(budget)
        .with_price(dear)
        .with_fallback("other/two", &second, Some(cheap));
    let state = setup.run().await;
    assert_eq!(setup.model.requests()[0].max_output_tokens, Some(100));
    assert_eq!(second.requests()[0].max_output_tokens, Some(500));
    assert_eq!(state.stop_reason(), Some(StopReason::TokenLimitReached));
}

#[tokio::test(start_paused = true)]
async fn the_cost_of_a_failed_attempt_stays_counted_when_a_hook_blocks_the_next_one() {
    let second = FakeModel::new([]);
    let beats = vec![
        Beat::Event(ModelEvent::Usage(usage(100, 0))),
        Beat::Fail(ModelErrorClass::Overload, "busy"),
    ];
    let setup = Setup::new([beats])
        .with_fallback("other/two", &second, None)
        .with_hook(Probe::at(HookPoint::BeforeModelRequest, |context| {
            match &context.subject {
                HookSubject::Request(request) if request.model == "two" => Err(HookError::new("no")),
                _ => Ok(context),
            }
        }));
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Failed));
    assert_eq!(transcript(&state), ["user: go"]);
    assert_eq!(state.usage(), usage(100, 0));
    assert_eq!(setup.control().unwrap().spent(), usage(100, 0));
}

#[tokio::test(start_paused = true)]
async fn what_failed_attempts_have_used_is_spent_and_no_part_of_the_context() {
    let failed = |input, output| {
        Beat::Event(ModelEvent::AttemptFailed {
            usage: usage(input, output),
            class: ModelErrorClass::Server,
        })
    };
    let first = vec![
        Beat::Event(ModelEvent::Usage(usage(10, 4_000))),
        failed(10, 4_000),
        Beat::Event(ModelEvent::Usage(usage(10, 0))),
        Beat::Fail(ModelErrorClass::Overload, "busy"),
    ];
    let answer = [vec![failed(20, 2_000)], says("done")].concat();
    let second = FakeModel::new([answer]);
    let setup = Setup::new([first]).with_fallback("other/two", &second, None);
    let state = setup.run().await;
    let all = usage(10 + 10 + 20 + 10, 4_000 + 2_000 + 5);
    assert_eq!((state.usage(), setup.control().unwrap().spent()), (all, all));
    let reported = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::ModelResponded { usage, .. } => Some(usage.total_tokens),
        _ => None,
    });
    assert_eq!(reported.collect::<Vec<_>>(), [4_020, 2_035]);
    let context = state.stored_messages().next_back().unwrap().tags.context_tokens;
    assert_eq!(context, Some(15), "the request that was answered, and the answer");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_again_once_failed_attempts_have_spent_the_budget() {
    let beats = vec![
        Beat::Event(ModelEvent::Usage(usage(10, 20))),
        Beat::Event(ModelEvent::AttemptFailed {
            usage: usage(10, 20),
            class: ModelErrorClass::Server,
        }),
        text("never read"),
    ];
    let budget = budget(|budget| budget.max_tokens = Some(30));
    let setup = Setup::new([beats]).with_budget(budget);
    let state = setup.run().await;
    assert_eq!(state.stop_reason(), Some(StopReason::TokenLimitReached));
    assert_eq!(
        (transcript(&state), state.usage()),
        (vec!["user: go".to_owned()], usage(10, 20))
    );
}

#[tokio::test(start_paused = true)]
async fn no_fallback_is_asked_once_failed_attempts_have_spent_the_budget() {
    // A dollar a million tokens.
    let price = Price::per_million(1.0, 1.0, None, None).unwrap();
    let money = budget(|budget| budget.max_cost = Cost::from_dollars(1.0));
    let tokens = budget(|budget| budget.max_tokens = Some(1_000_000));
    for (budget, used, asks_fallback) in [
        (money.clone(), 600_000_u32, false),
        (tokens, 500_000, false),
        (money, 400_000, true),
    ] {
        let attempt = usage(u64::from(used), 0);
        let beats = vec![
            Beat::Event(ModelEvent::Usage(attempt)),
            Beat::Event(ModelEvent::AttemptFailed {
                usage: attempt,
                class: ModelErrorClass::Server,
            }),
            Beat::Event(ModelEvent::Usage(attempt)),
            Beat::Fail(ModelErrorClass::Invalid, "no"),
        ];
        let second = FakeModel::new([says("from the second")]);
        let setup =
            Setup::new([beats])
                .with_budget(budget)
                .with_price(price)
                .with_fallback("other/two", &second, Some(price));
        let state = setup.run().await;
        assert_eq!(second.requests().len(), usize::from(asks_fallback), "{used}");
        if asks_fallback {
            assert_eq!(state.status(), Some(ExecutionStatus::Completed));
            continue;
        }
        assert_ended(&state, ExecutionStatus::Stopped, StopReason::TokenLimitReached);
        assert_eq!(state.errors().len(), 0, "the budget ended the run, and no error");
        let failed = asked(&setup);
        assert_eq!(
            failed,
            [("fake/one".to_owned(), Some("model_request_refused".to_owned()))]
        );
        let spent = Usage {
            cost: Cost::from_dollars(2.0 * f64::from(used) / 1e6),
            cost_known_part: None,
            ..usage(2 * u64::from(used), 0)
        };
        assert_eq!((state.usage(), setup.control().unwrap().spent()), (spent, spent));
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_bounded_by_what_those_before_it_have_left() {
    // A dollar a token.
    let price = Price::per_million(1e6, 1e6, None, None).unwrap();
    let tokens = budget(|budget| budget.max_tokens = Some(100));
    let dollars = budget(|budget| budget.max_cost = Cost::from_dollars(100.0));
    let reported = |output| Beat::Event(ModelEvent::Usage(usage(0, output)));
    let endless = || (0..100).map(|_| text("lorem ipsum "));
    for budget in [tokens, dollars] {
        // 90 are spent and 10 left: 8 characters for each of them, and 8 tokens to spare.
        let failed = Beat::Event(ModelEvent::AttemptFailed {
            usage: usage(60, 30),
            class: ModelErrorClass::Server,
        });
        let untold: Vec<_> = std::iter::once(failed.clone()).chain(endless()).collect();
        let counted = vec![
            failed,
            text("a"),
            reported(10),
            text("b"),
            reported(11),
            text("never read"),
        ];
        for (beats, words) in [(untold, "lorem ipsum ".repeat(13)), (counted, "ab".to_owned())] {
            let setup = Setup::new([beats]).with_price(price).with_budget(budget.clone());
            let state = setup.run().await;
            assert_eq!(state.stop_reason(), Some(StopReason::TokenLimitReached));
            assert_eq!(last_words(&state), words);
            assert!(state.errors().is_empty());
        }
    }
}
