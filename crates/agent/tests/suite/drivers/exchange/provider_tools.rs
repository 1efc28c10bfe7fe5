//! Calls of tools that providers execute themselves are billed apart from tokens, at unknown
//! prices. A cost that includes such calls is not known; its known part still counts.

use std::collections::BTreeMap;

use agent::AgentEvent;
use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::{ExecutionStatus, StopReason};
use test_support::fake_model::{Beat, FakeModel, asks_for, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::usage::{Cost, Price, Usage};

use crate::setup::{Setup, assert_ended, budget};

/// The answer, for which the provider has executed a tool of its own.
fn searched(beats: Vec<Beat>) -> Vec<Beat> {
    let search = |beat| match beat {
        Beat::Event(ModelEvent::Completed(mut response)) => {
            response.provider_tool_calls = BTreeMap::from([("web_search".to_owned(), 1)]);
            Beat::Event(ModelEvent::Completed(response))
        }
        other => other,
    };
    beats.into_iter().map(search).collect()
}

/// A dollar a token.
fn price() -> Price {
    Price::per_million(1e6, 1e6, None, None).unwrap()
}

/// The cost, and its known part where the whole is not known.
fn shown(usage: Usage) -> (Option<f64>, Option<f64>) {
    (usage.cost.map(Cost::dollars), usage.cost_known_part.map(Cost::dollars))
}

fn reported(setup: &Setup) -> Vec<(Option<f64>, Option<f64>)> {
    let responded = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::ModelResponded { usage, .. } => Some(shown(*usage)),
        _ => None,
    });
    responded.collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_provider_executes_leaves_the_step_and_the_run_without_a_cost() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let answers = [
        asks_for(&[("c1", "echo", "{}")]),
        searched(asks_for(&[("c2", "echo", "{}")])),
        says("done"),
    ];
    let setup = Setup::new(answers)
        .with_tool(&echo)
        .with_price(price())
        .with_provider_tool("fake");
    let state = setup.run().await;
    let (known, unknown) = ((Some(15.0), None), (None, Some(15.0)));
    let steps = state.steps().map(|step| shown(step.usage()));
    assert_eq!(steps.collect::<Vec<_>>(), [known, unknown, known]);
    assert_eq!(reported(&setup), [known, unknown, known]);
    assert_eq!(shown(state.usage()), (None, Some(45.0)));
    assert_eq!(shown(setup.control().unwrap().spent()), (None, Some(45.0)));
}

#[tokio::test(start_paused = true)]
async fn a_budget_counts_the_known_part() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let answers = (0..4).map(|call| searched(asks_for(&[(&format!("c{call}"), "echo", "{}")])));
    let budget = budget(|budget| budget.max_cost = Cost::from_dollars(40.0));
    let setup = Setup::new(answers)
        .with_tool(&echo)
        .with_price(price())
        .with_budget(budget);
    let state = setup.run().await;
    assert_ended(&state, ExecutionStatus::Stopped, StopReason::TokenLimitReached);
    assert_eq!(shown(state.usage()), (None, Some(45.0)));
    let limits = setup
        .model
        .requests()
        .into_iter()
        .map(|request| request.max_output_tokens);
    assert_eq!(limits.collect::<Vec<_>>(), [Some(39), Some(23), Some(7)]);
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_bills_as_a_whole_has_all_of_it() {
    let billed = Usage {
        cost: Cost::from_dollars(7.0),
        cost_known_part: None,
        ..usage(10, 5)
    };
    let answer = searched(says("done")).into_iter().map(|beat| match beat {
        Beat::Event(ModelEvent::Completed(mut response)) => {
            response.usage = billed;
            Beat::Event(ModelEvent::Completed(response))
        }
        other => other,
    });
    let state = Setup::new([answer.collect()]).run().await;
    assert_eq!(state.usage(), billed);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_completion_that_was_cut_or_failed_are_not_counted() {
    let counted = Beat::Event(ModelEvent::Usage(usage(10, 5)));
    let failed = Beat::Event(ModelEvent::AttemptFailed {
        usage: usage(10, 5),
        class: ModelErrorClass::Server,
    });
    let refused = Beat::Fail(ModelErrorClass::Invalid, "no");
    let (known, unknown) = ((Some(15.0), None), (None, Some(15.0)));
    for (beats, fallback, offered, expected) in [
        (vec![text("a"), counted.clone(), Beat::Hang], None, "fake", unknown),
        (vec![text("a"), counted.clone(), Beat::Hang], None, "other", known),
        (vec![counted.clone(), refused.clone()], None, "fake", unknown),
        (vec![counted.clone(), refused.clone()], None, "other", known),
        // Nothing was used.
        (vec![refused.clone()], None, "fake", (Some(0.0), None)),
        (vec![refused], Some(says("done")), "fake", known),
        (
            [vec![failed.clone()], says("done")].concat(),
            None,
            "fake",
            (None, Some(30.0)),
        ),
        ([vec![failed], says("done")].concat(), None, "other", (Some(30.0), None)),
    ] {
        let budget = budget(|budget| budget.max_seconds = Some(1.0));
        let shape = format!("{beats:?} {offered}");
        let mut setup = Setup::new([beats])
            .with_price(price())
            .with_provider_tool(offered)
            .with_budget(budget);
        if let Some(answer) = fallback {
            setup = setup.with_fallback("other/two", &FakeModel::new([answer]), Some(price()));
        }
        let state = setup.run().await;
        assert_eq!(shown(state.usage()), expected, "{shape}");
        assert_eq!(shown(setup.control().unwrap().spent()), expected, "{shape}");
    }
}
