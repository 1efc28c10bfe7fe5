//! The description of the interface, and the page that shows it.

use std::collections::BTreeSet;

use agent_runtime::http::{ProblemCode, openapi};
use serde_json::{Value, json};

use super::service::Service;
use crate::support::members::assert_members;
use crate::support::test_app::run_path;

fn references<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").and_then(Value::as_str));
            object.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => (),
    }
}

#[test]
fn all_references_of_the_description_resolve() {
    let description = serde_json::to_value(openapi()).unwrap();
    assert_eq!(description["openapi"], "3.1.0");
    assert_eq!(description["externalDocs"]["url"], "/docs/guides");
    let mut found = BTreeSet::new();
    references(&description, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let pointer = reference
            .strip_prefix('#')
            .unwrap_or_else(|| panic!("{reference} leads outside"));
        assert!(description.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn every_route_of_the_description_lists_its_problems_and_itself() {
    let description = serde_json::to_value(openapi()).unwrap();
    let mut reported = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let position = format!("{method} {path}");
            assert!(operation["summary"].is_string(), "{position} has no summary");
            let responses = operation["responses"].as_object().unwrap();
            assert!(
                responses.contains_key("500") && !responses.contains_key("default"),
                "{position}"
            );
            // Only probes and the console's login need no key, and the login refuses wrong ones.
            let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
            let needs_key = path.starts_with("/v1/") || path == "/metrics";
            assert_eq!(is_open, !needs_key, "{position}");
            let takes_key = !is_open || operation["operationId"] == "log_in";
            assert_eq!(takes_key, responses.contains_key("401"), "{position}");
            for (status, response) in responses {
                let Some(schema) = response["content"]["application/problem+json"].get("schema") else {
                    continue;
                };
                let codes = schema["allOf"][1]["properties"]["code"]["enum"].as_array().unwrap();
                assert!(!codes.is_empty(), "{position} {status}");
                for code in codes {
                    let code = code.as_str().unwrap();
                    assert_eq!(ProblemCode::find(code).unwrap().status().as_str(), status, "{position}");
                    reported.insert(code.to_owned());
                }
                let may_help_later = ["429", "503"].contains(&status.as_str());
                assert_eq!(
                    !response["headers"]["Retry-After"].is_null(),
                    may_help_later,
                    "{position} {status}"
                );
            }
        }
    }
    // This one is answered where a route has no such method.
    assert!(reported.insert("method_not_allowed".to_owned()));
    // Errors of the routes for OpenAI's clients have another form.
    for code in ["invalid_type", "unsupported_parameter", "previous_response_not_found"] {
        assert!(reported.insert(code.to_owned()), "{code}");
    }
    let known: BTreeSet<String> = ProblemCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(reported, known);
}

#[test]
fn the_description_names_the_headers_of_answers_and_the_events_of_streams() {
    let description = serde_json::to_value(openapi()).unwrap();
    let responses = |path: &str, method: &str| description["paths"][path][method]["responses"].clone();
    let runs = responses("/v1/runs", "post");
    for (status, headers) in [
        ("200", &["Idempotency-Replayed"][..]),
        ("202", &["Idempotency-Replayed", "Location", "Preference-Applied"]),
    ] {
        let named: Vec<&String> = runs[status]["headers"].as_object().unwrap().keys().collect();
        assert_eq!(named, headers, "{status}");
    }
    assert!(responses("/v1/sessions", "post")["201"]["headers"]["Idempotency-Replayed"].is_object());
    for response in [&runs["200"], &responses("/v1/runs/{run_id}/events", "get")["200"]] {
        let event = &response["content"]["text/event-stream"]["schema"]["$ref"];
        assert_eq!(event, "#/components/schemas/Event", "{response}");
    }
}

/// Calls `check` with every schema and its place.
fn each_schema(position: &str, value: &Value, check: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(object) => {
            check(position, value);
            for (key, value) in object {
                each_schema(&format!("{position}/{key}"), value, check);
            }
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, item)| each_schema(&format!("{position}/{index}"), item, check)),
        _ => (),
    }
}

#[test]
fn the_description_is_what_makers_of_clients_need() {
    let description = serde_json::to_value(openapi()).unwrap();
    let mut ids = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} names two operations");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let words = response["description"].as_str().unwrap_or_default();
                assert!(!words.is_empty(), "{method} {path} {status} has no description");
            }
        }
    }
    let schemas = &description["components"]["schemas"];
    for name in schemas.as_object().unwrap().keys() {
        // No name of a type in the code, of a module or with parameters.
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        assert!(!name.contains("View") && !name.contains("Arc"), "{name}");
    }
    each_schema("", &description, &mut |position, schema| {
        // One without a sign has more values than the format of 32 bits.
        let bounds = ["minimum", "maximum"].map(|bound| schema[bound].is_number());
        assert!(
            schema["format"] != "int32" || bounds != [true, false],
            "{position} may be larger"
        );
    });
    each_schema("", schemas, &mut |position, schema| {
        let is_integer = schema["type"] == "integer";
        assert!(!is_integer || schema["format"].is_string(), "{position} has no size");
        // Each part of an `allOf` holds for the whole object, so none may forbid what another has.
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let part = part["$ref"]
                .as_str()
                .map_or(part, |to| description.pointer(&to[1..]).unwrap());
            assert!(part["additionalProperties"] != false, "{position} can't be satisfied");
        }
    });
}

#[test]
fn each_form_of_a_tagged_union_has_a_name() {
    let description = serde_json::to_value(openapi()).unwrap();
    let union = |name: &str| &description["components"]["schemas"][name];
    for (name, tag, value, form) in [
        ("Event", "type", "message.delta", "MessageDeltaEvent"),
        ("Event", "type", "run.completed", "RunCompletedEvent"),
        ("Event", "type", "stream.dropped", "StreamDroppedEvent"),
        ("AgentEvent", "type", "message.delta", "MessageDeltaAgentEvent"),
        ("ContentPart", "type", "tool_result", "ToolResultContentPart"),
        ("InputSource", "kind", "base64", "Base64InputSource"),
    ] {
        let discriminator = &union(name)["discriminator"];
        let reference = format!("#/components/schemas/{form}");
        assert_eq!(discriminator["propertyName"], tag, "{name}");
        assert_eq!(discriminator["mapping"][value], reference, "{name}");
        let forms = union(name)["oneOf"].as_array().unwrap();
        assert!(forms.contains(&json!({"$ref": reference})), "{name}");
        assert_eq!(
            forms.len(),
            discriminator["mapping"].as_object().unwrap().len(),
            "{name}"
        );
    }
}

/// Returns what checks values against a schema of the description.
pub(super) fn validator(description: &Value, name: &str) -> jsonschema::Validator {
    let schema = json!({"$ref": format!("#/components/schemas/{name}"), "components": description["components"]});
    jsonschema::validator_for(&schema).unwrap()
}

#[tokio::test]
async fn responses_fit_the_description() {
    let service = Service::start().await;
    let description = serde_json::to_value(openapi()).unwrap();
    let fits = |name: &str, value: &Value| {
        let errors: Vec<String> = validator(&description, name)
            .iter_errors(value)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}: {value:#}");
    };
    service.put_agent("echo", json!({"model": "mock/echo"})).await;
    fits("Agent", &service.get("/v1/agents/echo").await);
    let run = service.run_with(json!({"agent": "echo", "input": "hello"})).await;
    fits("Run", &run);
    let events = service.try_get(&run_path(&run, "/events")).await.text();
    let data: Vec<_> = events.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(data.len() > 5, "{events}");
    for event in data {
        fits("Event", &serde_json::from_str(event).unwrap());
    }
    service.finish().await;
}

#[test]
fn the_description_cites_nothing_that_its_readers_do_not_have() {
    let description = serde_json::to_string(&openapi()).unwrap();
    for words in ["document 0", "documents 0", "ARCHITECTURE", "src/"] {
        assert!(!description.contains(words), "{words}");
    }
}

#[tokio::test]
async fn the_page_works_offline_and_may_not_be_framed() {
    let service = Service::start().await;
    let index = service.get("/").await;
    assert_members!(index, {"docs": "/docs", "guides": "/docs/guides"});
    let redirect = service.try_get("/docs").await;
    assert_eq!((redirect.status.as_u16(), redirect.header("location")), (308, "/docs/"));
    assert!(redirect.text().contains("/docs/guides"), "{}", redirect.text());
    let page = service.try_get("/docs/").await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-security-policy")
            .contains("frame-ancestors 'none'")
    );
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let html = page.text();
    let files: Vec<_> = html
        .split(['"', '\''])
        .filter(|text| {
            text.rsplit_once('.')
                .is_some_and(|(_, kind)| kind == "js" || kind == "css")
        })
        .collect();
    assert!(files.len() >= 3, "{html}");
    for file in files {
        assert!(!file.contains("//"), "{file} is loaded from elsewhere");
        let answer = service
            .try_get(&format!("/docs/{}", file.trim_start_matches("./")))
            .await;
        assert_eq!(answer.status, 200, "{file}");
    }
    assert!(
        service
            .try_get("/docs/swagger-initializer.js")
            .await
            .text()
            .contains("/openapi.json")
    );
    assert_eq!(service.get("/openapi.json").await["info"]["title"], "agent-runtime");
    service.finish().await;
}
