//! Which part of a request an error names, in the words of many providers.

use agent::ports::{ModelRequest, RefusedPart, ToolSpec};
use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};
use values::message::{ContentPart, Role};
use values::model_ref::ResponseFormat;

use super::support::{ask, at_url, client, greeting, image, impatient, message, request, thought, user};

fn full() -> ModelRequest {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        parameters: json!({"type": "object"}),
        ..ToolSpec::default()
    };
    let image = image(at_url("https://a.example/a.png"));
    let reasoning = thought("Hm.", Some("s"));
    ModelRequest {
        tools: ["find", "find_more", "write"].map(tool).into(),
        response_format: ResponseFormat::JsonSchema {
            name: "n".to_owned(),
            schema: json!({"type": "object"}),
            strict: false,
        },
        ..request(vec![
            message(Role::User, vec![ContentPart::text("hi"), image]),
            message(Role::Assistant, vec![reasoning, ContentPart::text("ok")]),
            user("go on"),
        ])
    }
}

async fn refused(body: &Value, asked: ModelRequest) -> Option<RefusedPart> {
    let server = ModelServer::start(vec![Reply::json(400, body)]).await;
    let outcome = ask(client(&server, &impatient(0)).as_ref(), asked).await;
    outcome.end.unwrap_err().refused.map(|part| *part)
}

#[tokio::test]
async fn errors_name_the_part_that_is_refused() {
    let rows: Vec<(Value, Value)> = serde_json::from_str(include_str!("refused.json")).unwrap();
    for (body, part) in rows {
        let expected = match part.as_str() {
            Some("response_format") => Some(RefusedPart::ResponseFormat),
            Some("pictures") => Some(RefusedPart::Pictures),
            Some("reasoning") => Some(RefusedPart::Reasoning),
            Some(other) => panic!("{other}"),
            None => part["tool"].as_str().map(|name| RefusedPart::Tool(name.to_owned())),
        };
        assert_eq!(refused(&body, full()).await, expected, "{body}");
        // A request without the part is not repeated.
        assert_eq!(refused(&body, greeting()).await, None, "{body}");
    }
}
