//! Subagents whose last completion is not whole or refuses the task: what the model that called
//! them reads.

use serde_json::json;
use test_support::databases::TestDatabase;

use super::{leading, requests_of, session, session_count, steps_of, subagents};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text, new_results};
use crate::support::test_app::TestApp;

on_every_store!(the_model_reads_that_the_answer_of_a_subagent_is_not_complete);

async fn the_model_reads_that_the_answer_of_a_subagent_is_not_complete(database: TestDatabase) {
    let tasks = ["stop", "length", "content_filter", "length at once", "refusal"];
    let mock = MockModel::start(move |request| {
        let task = last_user_text(request);
        let (delta, reason) = match task.as_str() {
            _ if request["model"] == "lead" => return leading(request, &tasks.map(|task| ("worker", task))),
            "length at once" => (json!({"reasoning_content": "Hm."}), "length"),
            "refusal" => (json!({"refusal": "I won't."}), "stop"),
            reason => (json!({"content": "So far"}), reason),
        };
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        Reply::Events(vec![json!({"choices": [choice]})])
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("worker", json!({"model": "mock/worker"})).await;
    let lead = json!({"model": "mock/lead", "subagents": [{"agent": "worker"}]});
    app.put_agent("lead", lead).await;
    let result = app.run_with(json!({"agent": "lead", "input": "go"})).await;
    assert_members!(result, {"status": "completed", "finish_reason": "stop"});

    let requests = mock.requests();
    let [_, next] = requests_of(&requests, "lead")[..] else {
        panic!("{requests:#?}")
    };
    assert_eq!(
        new_results(next),
        [
            "So far",
            "So far\n\n[This answer of the agent worker is not complete: the limit of output tokens cut it.]",
            "So far\n\n[This answer of the agent worker is not complete: the provider's filter cut it.]",
            "[The answer of the agent worker is empty: the limit of output tokens cut it.]",
            "I won't.\n\n[This answer of the agent worker is not complete: it ended with a refusal.]",
        ]
    );

    // The answer is a result, not an error, and the session of the subagent is published.
    let steps = steps_of(&app, &result).await;
    let executions = steps[0]["tool_executions"].as_array().unwrap();
    assert!(
        executions.iter().all(|execution| execution["is_error"] == false),
        "{steps:#}"
    );
    let subagents = subagents(&steps);
    assert_eq!((subagents.len(), session_count(&app).await), (5, 6));
    let reasons = ["stop", "length", "content_filter", "length", "refusal"];
    for (subagent, reason) in subagents.into_iter().zip(reasons) {
        assert_members!(subagent, {"status": "completed", "steps/0/finish_reason": reason});
        let child = session(&app, &subagent["session_id"]).await;
        assert_eq!(child["subagent_of"], result["session_id"]);
    }
    app.finish().await;
}
