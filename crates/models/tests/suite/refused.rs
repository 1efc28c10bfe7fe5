//! Which part of a request an error names, in the words of many providers.

use agent::ports::{ModelRequest, RefusedPart, ToolSpec};
use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};
use values::message::{ContentPart, ImagePart, MediaSource, ReasoningPart, Role};
use values::model_ref::ResponseFormat;

use super::support::{ask, client, impatient, message, request, user};

fn full() -> ModelRequest {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        parameters: json!({"type": "object"}),
        ..ToolSpec::default()
    };
    let image = ContentPart::Image(ImagePart {
        source: MediaSource::Url {
            url: "https://a.example/a.png".to_owned(),
        },
        detail: None,
    });
    let reasoning = ContentPart::Reasoning(ReasoningPart {
        text: "Hm.".to_owned(),
        signature: Some("s".to_owned()),
        ..ReasoningPart::default()
    });
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

fn openai(message: &str, param: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "param": param}})
}

fn anthropic(message: &str) -> Value {
    json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
}

fn google(message: &str) -> Value {
    json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
}

fn aws(message: &str) -> Value {
    json!({"__type": "ValidationException", "message": message})
}

#[tokio::test]
async fn errors_name_the_part_that_is_refused() {
    let tool = |name: &str| Some(RefusedPart::Tool(name.to_owned()));
    for (body, expected) in [
        (
            openai("Invalid schema.", "tools[1].function.parameters"),
            tool("find_more"),
        ),
        (
            openai("Invalid schema for function 'find': no properties.", "tools"),
            tool("find"),
        ),
        (
            openai("Invalid schema for response_format 'n'", "response_format"),
            Some(RefusedPart::ResponseFormat),
        ),
        (
            openai("Invalid image.", "messages[0].content[1]"),
            Some(RefusedPart::Pictures),
        ),
        (
            openai("The encrypted content could not be verified.", "input"),
            Some(RefusedPart::Reasoning),
        ),
        (
            openai("unknown variant `image_url`, expected `text`", ""),
            Some(RefusedPart::Pictures),
        ),
        (openai("Unsupported value: 'temperature'", "temperature"), None),
        (
            openai("Unsupported parameter: 'reasoning_effort'", "reasoning_effort"),
            None,
        ),
        (openai("No such thing.", ""), None),
        (
            anthropic("tools.2.custom.input_schema: must not have anyOf at the top level"),
            tool("write"),
        ),
        (anthropic("tools.7.custom.input_schema: no"), None),
        (
            anthropic("messages.1.content.0: Invalid `signature` in `thinking` block"),
            Some(RefusedPart::Reasoning),
        ),
        (
            anthropic("messages.0.content.1.image.source: Could not process"),
            Some(RefusedPart::Pictures),
        ),
        (
            anthropic("output_config.format.schema: no"),
            Some(RefusedPart::ResponseFormat),
        ),
        (anthropic("thinking.budget_tokens: too small"), None),
        (
            google("* GenerateContentRequest.tools[0].function_declarations[2].parameters: not supported"),
            tool("write"),
        ),
        (google("Thought signature is not valid."), Some(RefusedPart::Reasoning)),
        (
            aws("Value at 'toolConfig.tools.2.member.toolSpec.inputSchema' is not valid"),
            tool("find_more"),
        ),
        (
            aws("The value at toolConfig.tools.1.toolSpec.inputSchema.json is not valid"),
            tool("find_more"),
        ),
        (
            aws("The model doesn't support the image content block"),
            Some(RefusedPart::Pictures),
        ),
        (
            json!({"detail": [{"loc": ["body", "tools", 0, "function"], "msg": "not valid", "type": "value_error"}]}),
            tool("find"),
        ),
        (
            json!({"error": {"message": "the image violates our content policy"}}),
            None,
        ),
    ] {
        assert_eq!(refused(&body, full()).await, expected, "{body}");
        // A request without the part is not repeated.
        assert_eq!(refused(&body, request(vec![user("hi")])).await, None, "{body}");
    }
}
