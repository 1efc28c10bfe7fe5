//! Calls of completions that are not whole: none is executed, none waits for the caller, and the
//! model reads why.

use agent::state::{ExecutionStatus, FinishReason};
use test_support::fake_model::{Beat, completed, says, tool_call, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::message::ContentPart;

use crate::setup::{Setup, transcript};

fn asks_and_ends(calls: &[(&str, &str)], reason: FinishReason) -> Vec<Beat> {
    let call = |(id, arguments): &(&str, &str)| ContentPart::ToolCall(tool_call(id, "purge", arguments));
    vec![completed(calls.iter().map(call).collect(), reason, usage(10, 5))]
}

#[tokio::test(start_paused = true)]
async fn no_call_of_a_completion_that_is_not_whole_is_executed() {
    for (reason, words) in [
        (FinishReason::Length, "the limit of output tokens cut it"),
        (FinishReason::ContentFilter, "the provider's filter cut it"),
        (FinishReason::Refusal, "it ended with a refusal"),
        (FinishReason::Other("novel".to_owned()), "it ended with \"novel\""),
    ] {
        for arguments in ["", "{}", r#"{"path": "a"}"#, r#"{"path": "#] {
            let calls = [("c1", r#"{"path": "b"}"#), ("c2", arguments)];
            let tool = FakeTool::new("purge", Behaviour::EchoArguments);
            let setup = Setup::new([asks_and_ends(&calls, reason.clone()), says("then not")]).with_tool(&tool);
            let state = setup.run().await;
            assert_eq!(tool.begun(), 0, "{reason:?} {arguments}");
            assert_eq!(state.status(), Some(ExecutionStatus::Completed));
            assert_eq!(
                transcript(&state),
                [
                    "user: go",
                    "assistant: call c1 call c2",
                    "tool: error c1 error c2",
                    "assistant: then not"
                ]
            );
            let requests = setup.model.requests();
            let results: Vec<_> = requests[1].messages[2].tool_results().collect();
            assert_eq!(results.len(), 2);
            for result in results {
                let text = result.content[0].as_text().unwrap();
                assert!(
                    result.is_error && text.contains("was not made") && text.contains(words),
                    "{text}"
                );
            }
        }
    }
}
