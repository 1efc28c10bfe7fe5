//! The class of the errors of many servers, with a status and inside a stream.

use agent::ports::{ModelErrorClass as Class, ModelRequest, ToolSpec};
use serde_json::{Value, json};
use test_support::error_answers::error_answers;
use test_support::model_server::{ModelServer, Reply};

use super::support::{ask, client, greeting, impatient};

#[tokio::test]
async fn errors_of_many_servers_have_their_class() {
    for answer in error_answers() {
        let server = ModelServer::start(vec![Reply::new(answer.status, "application/json", answer.body.clone())]).await;
        let error = ask(client(&server, &impatient(0)).as_ref(), greeting()).await;
        let error = error.end.unwrap_err();
        assert_eq!(error.class, answer.class, "{answer:?}");
        assert_eq!(error.status, Some(answer.status), "{answer:?}");
    }
}

#[tokio::test]
async fn errors_inside_a_stream_have_the_class_of_those_with_a_status() {
    for answer in error_answers() {
        // A status alone can't tell the class in a stream.
        let by_status = matches!(answer.status, 401..=404 | 413 | 429 | 498..=599);
        let is_error = serde_json::from_str(&answer.body).is_ok_and(|body: Value| body.get("error").is_some());
        if by_status || !is_error {
            continue;
        }
        let server = ModelServer::start(vec![Reply::events(format!("data: {}\n\n", answer.body))]).await;
        let outcome = ask(client(&server, &impatient(0)).as_ref(), greeting()).await;
        let error = outcome.end.unwrap_err();
        assert_eq!(error.class, answer.class, "{answer:?}");
    }
}

#[tokio::test]
async fn only_what_may_pass_is_asked_again() {
    for answer in error_answers() {
        let reply = Reply::new(answer.status, "application/json", answer.body.clone());
        let server = ModelServer::start(vec![reply.clone(), reply]).await;
        ask(client(&server, &impatient(1)).as_ref(), greeting()).await;
        let class = matches!(
            answer.class,
            Class::RateLimit | Class::Overload | Class::Server | Class::Timeout
        );
        let status = matches!(answer.status, 408 | 409 | 429 | 500..=599);
        let expected = if class && status { 2 } else { 1 };
        assert_eq!(server.asked(), expected, "{answer:?}");
    }
}

#[tokio::test]
async fn a_completion_that_the_server_itself_refuses_is_asked_for_again() {
    let tool = ToolSpec {
        name: "calculator".to_owned(),
        parameters: json!({"type": "object"}),
        ..ToolSpec::default()
    };
    for (status, message, code) in [
        (
            400,
            "tool call validation failed: parameters for tool calculator did not match schema: errors: [no]",
            "tool_use_failed",
        ),
        (
            400,
            "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
            "tool_use_failed",
        ),
        (400, "attempted to call tool 'calc' which was not in request.tools", ""),
        (
            400,
            "Generated JSON does not match the expected schema.",
            "json_validate_failed",
        ),
        (500, "error parsing tool call: raw='{' for tool 'calculator'", ""),
        (424, "Model produced invalid sequence as part of ToolUse.", ""),
    ] {
        let body = json!({"error": {"message": message, "type": "invalid_request_error", "code": code}});
        let in_stream = Reply::events(format!("data: {body}\n\n"));
        for reply in [Reply::json(status, &body), in_stream] {
            let server = ModelServer::start(vec![reply.clone(), reply]).await;
            let asked = ModelRequest {
                tools: vec![tool.clone()].into(),
                ..greeting()
            };
            let error = ask(client(&server, &impatient(1)).as_ref(), asked)
                .await
                .end
                .unwrap_err();
            assert_eq!(error.class, Class::Server, "{body}");
            assert_eq!((error.refused, server.asked()), (None, 2), "{body}");
        }
    }
}
