//! Any execution ends in time, with a history that providers accept: with any models and tools, cut
//! at any moment.

use std::time::Duration;

use agent::definition::ErrorPolicyPreset;
use agent::ports::ModelErrorClass;
use agent::state::AgentState;
use proptest::prelude::*;
use test_support::fake_model::{Beat, asks_for, says, text};
use test_support::fake_tool::{Behaviour, FakeTool};

use crate::comparison::summary;
use crate::setup::{Setup, budget};

/// Tools of every behaviour, and one name that no tool has.
const TOOLS: [&str; 6] = ["echo", "waits", "fails", "panics", "hangs", "unknown"];
const ARGUMENTS: [&str; 5] = ["", "{}", r#"{"ms": 5}"#, r#"{"ms": "x"}"#, "{"];

#[derive(Debug, Clone)]
enum Answer {
    Says,
    AsksFor(Vec<(usize, usize)>),
    Slow(u64),
    Fails,
    EndsSilently,
    Hangs,
}

#[derive(Debug, Clone)]
struct Plan {
    executions: Vec<Vec<Answer>>,
    max_steps: u32,
    max_tokens: Option<u64>,
    max_seconds: f64,
    cancel_after: u64,
    policy: ErrorPolicyPreset,
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let calls = prop::collection::vec((0..TOOLS.len(), 0..ARGUMENTS.len()), 1..5).prop_map(Answer::AsksFor);
    let answer = prop_oneof![
        2 => Just(Answer::Says),
        8 => calls,
        1 => (0..3_000_u64).prop_map(Answer::Slow),
        1 => Just(Answer::Fails),
        1 => Just(Answer::EndsSilently),
        1 => Just(Answer::Hangs),
    ];
    prop::collection::vec(answer, 0..4)
}

fn plans() -> impl Strategy<Value = Plan> {
    let policies = [
        ErrorPolicyPreset::IgnoreToolErrors,
        ErrorPolicyPreset::RetryToolErrors,
        ErrorPolicyPreset::StopOnAnyError,
        ErrorPolicyPreset::RetryAll,
    ];
    let limits = (1..6_u32, prop::option::of(1..60_u64), 0.1..4.0_f64);
    let executions = prop::collection::vec(answers(), 1..4);
    (
        executions,
        limits,
        0..5_000_u64,
        prop::sample::select(policies.to_vec()),
    )
        .prop_map(
            |(executions, (max_steps, max_tokens, max_seconds), cancel_after, policy)| Plan {
                executions,
                max_steps,
                max_tokens,
                max_seconds,
                cancel_after,
                policy,
            },
        )
}

fn beats(answer: &Answer) -> Vec<Beat> {
    match answer {
        Answer::Says => says("done"),
        Answer::AsksFor(calls) => {
            let ids: Vec<_> = (0..calls.len()).map(|position| format!("c{position}")).collect();
            let calls = calls.iter().zip(&ids);
            let calls: Vec<_> = calls
                .map(|((tool, arguments), id)| (id.as_str(), TOOLS[*tool], ARGUMENTS[*arguments]))
                .collect();
            asks_for(&calls)
        }
        Answer::Slow(millis) => {
            let wait = Beat::Wait(Duration::from_millis(*millis));
            [text("slow"), wait].into_iter().chain(says("done")).collect()
        }
        Answer::Fails => vec![text("so far"), Beat::Fail(ModelErrorClass::Server, "broken")],
        Answer::EndsSilently => vec![text("so far")],
        Answer::Hangs => vec![Beat::Hang],
    }
}

async fn execute(plan: &Plan, answers: &[Answer], state: Option<AgentState>) -> AgentState {
    // A final answer follows the script, in case the loop goes on.
    let script = answers.iter().map(beats).chain([says("done")]);
    let tools = [
        FakeTool::new("echo", Behaviour::EchoArguments),
        FakeTool::new("waits", Behaviour::Wait(Duration::from_millis(400))),
        FakeTool::new("fails", Behaviour::Fail("no luck".to_owned())),
        FakeTool::new("panics", Behaviour::PanicLater),
        FakeTool::with_timeout("hangs", Behaviour::Hang, Some(Duration::from_secs(2))),
    ];
    let setup = Setup::new(script)
        .with_policy(plan.policy)
        .with_budget(budget(|budget| {
            budget.max_steps = Some(plan.max_steps);
            budget.max_tokens = plan.max_tokens;
            budget.max_seconds = Some(plan.max_seconds);
        }));
    let setup = tools.iter().fold(setup, Setup::with_tool);
    let state = state.unwrap_or_else(|| setup.new_state());
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(plan.cancel_after)).await;
        setup.cancellation.cancel();
        std::future::pending::<()>().await;
    };
    // The requests and the history are checked by the model and the setup.
    let state = tokio::select! {
        state = setup.run_from(state, "go") => state,
        () = cancel => unreachable!("cancelling never ends"),
    };

    assert!(state.status().unwrap().is_terminal());
    let time = setup.elapsed(&state).as_seconds_f64();
    let allowed = plan
        .max_seconds
        .min(Duration::from_millis(plan.cancel_after).as_secs_f64());
    // Timers have a resolution of a millisecond.
    assert!(time <= allowed + 0.002, "{time} of {allowed} seconds");
    assert!(state.step_count() <= plan.max_steps as usize);
    for step in state.steps() {
        let asked: Vec<_> = step.tool_calls().collect();
        let executed: Vec<_> = step.tool_executions.iter().map(|execution| &execution.call).collect();
        assert_eq!(asked, executed);
    }
    let restored: AgentState = serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap();
    assert_eq!(summary(&restored), summary(&state));
    assert!(tools.iter().all(|tool| tool.working() == 0), "a call is left over");
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_execution_ends_well(plan in plans()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut state = None;
            for answers in &plan.executions {
                state = Some(execute(&plan, answers, state).await);
            }
        });
    }
}
