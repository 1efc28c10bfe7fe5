//! The tool choice: a call is forced until the model has made its first completion, and forbidden
//! throughout.

use agent::definition::{DriverKind, ErrorPolicyPreset};
use agent::ports::{ModelErrorClass, StructuredOutput};
use agent::state::ExecutionStatus;
use test_support::fake_model::{Beat, FakeModel, asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::model_parameters::ToolChoice;
use values::model_ref::ResponseFormat;

use crate::setup::Setup;

/// Returns the choice in each request.
fn choices(setup: &Setup) -> Vec<ToolChoice> {
    let requests = setup.model.requests().into_iter();
    requests.map(|request| request.tool_choice).collect()
}

fn tool(name: &str) -> ToolChoice {
    ToolChoice::Tool(name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_call_is_forced_for_the_first_completion_alone() {
    for choice in [ToolChoice::Required, tool("echo")] {
        let calls = || asks_for(&[("c1", "echo", "{}")]);
        let setup = Setup::new([calls(), calls(), says("done")])
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_tool_choice(choice.clone());
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Completed));
        assert_eq!(choices(&setup), [choice, ToolChoice::Auto, ToolChoice::Auto]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_completion_does_not_force_another_choice() {
    let fails = || vec![Beat::Fail(ModelErrorClass::Server, "no")];
    let setup = Setup::new([fails(), fails(), asks_for(&[("c1", "echo", "{}")]), says("done")])
        .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
        .with_policy(ErrorPolicyPreset::RetryAll)
        .with_tool_choice(ToolChoice::Required);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    let required = ToolChoice::Required;
    assert_eq!(
        choices(&setup),
        [required.clone(), required.clone(), required, ToolChoice::Auto]
    );
}

#[tokio::test(start_paused = true)]
async fn the_next_execution_begins_anew_and_no_calls_are_none_throughout() {
    for (choice, sent) in [
        (ToolChoice::None, [ToolChoice::None, ToolChoice::None]),
        (ToolChoice::Required, [ToolChoice::Required, ToolChoice::Required]),
    ] {
        let setup = Setup::new([says("one"), says("two")])
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_tool_choice(choice);
        let state = setup.run().await;
        setup.run_from(state, "again").await;
        assert_eq!(choices(&setup), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_may_call_no_tool_still_responds_through_one() {
    let answer = asks_for(&[("c1", "answer", "{}")]);
    let model = FakeModel::structured_by(StructuredOutput::Tool, [answer]);
    let setup = Setup::of_model(model)
        .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
        .with_format(ResponseFormat::JsonObject)
        .with_tool_choice(ToolChoice::None);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_eq!(choices(&setup), [tool("answer")]);
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_no_request_can_make_is_an_error() {
    for (driver, choice, code) in [
        (DriverKind::ToolCalling, tool("other"), "unknown_tool_choice"),
        (DriverKind::React, ToolChoice::Required, "unsupported_tool_choice"),
    ] {
        let setup = Setup::new([])
            .with_driver(driver)
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_policy(ErrorPolicyPreset::StopOnAnyError)
            .with_tool_choice(choice);
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Failed));
        assert_eq!(state.errors().last().unwrap().code, code);
    }
}
