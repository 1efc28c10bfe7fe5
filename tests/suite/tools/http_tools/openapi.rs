//! Tools made of an OpenAPI document, also of a hostile one.

use serde_json::json;
use test_support::raw_server::{RawReply, RawServer};
use values::json::{JsonSchema, Value};

use super::super::setup::{KEY, call};
use super::tools;
use crate::support::table::rows;
use crate::support::text::assert_contains;

const ALL: &str = r#"
    openapi = "shop.json"
    base_url = "SERVER/api/"
    prefix = "shop_"
    operations = ["listPets", "GET /pets/{pet-id}", "makePet"]
    [headers]
    X-Api-Key = { secret = "main" }
"#;

fn document() -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://evil.example/"}],
        "paths": {
            "/pets": {
                "parameters": [{"$ref": "#/components/parameters/Trace"}],
                "get": {
                    "operationId": "listPets",
                    "summary": "Lists pets.",
                    "description": "Newest first.",
                    "parameters": [
                        {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "ids", "in": "query", "explode": false, "schema": {"type": "array"}},
                        {"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
                        {"name": "raw", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
                        {"name": "page[size]", "in": "query", "description": "How many.",
                         "schema": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "example": 5}},
                        {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                        {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                    ],
                },
                "post": {
                    "operationId": "makePet",
                    "requestBody": {
                        "required": true,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                    },
                },
            },
            "/pets/{pet-id}": {
                "get": {"parameters": [{"name": "pet-id", "in": "path", "required": true, "schema": {"type": "string"}}]},
            },
        },
        "components": {
            "parameters": {"Trace": {"name": "X-Trace", "in": "header", "schema": {"type": "string"}}},
            "schemas": {
                "Pet": {
                    "type": "object",
                    "required": ["id", "name"],
                    "properties": {
                        "id": {"type": "integer", "readOnly": true},
                        "name": {"type": "string", "nullable": true},
                        "example": {"type": "string", "example": "x"},
                        "parent": {"$ref": "#/components/schemas/Pet"},
                    },
                },
            },
        },
    })
}

#[tokio::test]
async fn chosen_operations_become_tools() {
    let server = RawServer::start(|_| RawReply::text("ok")).await;
    let tools = tools(ALL, &server.url(""), Some(&document())).unwrap();
    let [list, get, make] = &tools[..] else {
        panic!("{tools:?}")
    };
    let names: Vec<_> = tools
        .iter()
        .map(|tool| (tool.spec().name.as_str(), tool.spec().idempotent))
        .collect();
    assert_eq!(
        names,
        [
            ("shop_listPets", true),
            ("shop_get_pets_pet-id", true),
            ("shop_makePet", false)
        ]
    );
    assert_eq!(list.spec().description, "Lists pets.\n\nNewest first.");
    assert_eq!(
        make.spec().parameters,
        json!({
            "type": "object",
            "properties": {
                "X-Trace": {"type": "string"},
                "body": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": ["string", "null"]},
                        "example": {"type": "string"},
                        "parent": {},
                    },
                },
            },
            "required": ["body"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        list.spec().parameters["properties"]["page_size_"],
        json!({"type": "integer", "exclusiveMinimum": 0, "description": "How many."})
    );
    for tool in &tools {
        JsonSchema::compile_object(&tool.spec().parameters).unwrap();
    }

    let arguments = json!({
        "tag": ["a", "b&c"], "ids": [1, 2], "filter": {"kind": "cat"}, "raw": {"x": 1}, "page_size_": 9, "X-Trace": "t",
    });
    call(list, &arguments).await.unwrap();
    call(get, &json!({"pet-id": "a/b"})).await.unwrap();
    call(make, &json!({"body": {"name": "Tom"}})).await.unwrap();
    assert!(call(make, &json!({"body": {"name": 7}})).await.is_err());
    let mut lines = server.lines();
    let list_line = lines.remove(0);
    let mut pairs: Vec<_> = list_line.strip_prefix("GET /api/pets?").unwrap().split('&').collect();
    pairs.sort_unstable();
    assert_eq!(
        pairs,
        [
            "filter%5Bkind%5D=cat",
            "ids=1%2C2",
            "page%5Bsize%5D=9",
            "raw=%7B%22x%22%3A1%7D",
            "tag=a",
            "tag=b%26c"
        ]
    );
    assert_eq!(lines, ["GET /api/pets/a%2Fb", "POST /api/pets"]);
    let requests = server.requests();
    assert_eq!(
        (requests[0].header("x-trace"), requests[0].header("x-api-key")),
        (Some("t"), Some(super::SECRET))
    );
    assert_eq!(requests[2].body, r#"{"name":"Tom"}"#);
    assert_eq!(requests[2].header("idempotency-key"), Some(KEY));
}

/// Returns the mistake in a document with one operation `op`.
fn mistake(operation: &Value, components: &Value) -> String {
    let document = json!({
        "openapi": "3.1.0",
        "paths": {"/x": {"post": operation, "parameters": components.get("shared").cloned().unwrap_or(json!([]))}},
        "components": components,
    });
    let definition = "openapi = 'x.json'\nbase_url = 'SERVER'\noperations = ['op']";
    match tools(definition, "http://127.0.0.1:1234", Some(&document)) {
        Ok(tools) => format!("{}", tools[0].spec().parameters),
        Err(mistake) => mistake,
    }
}

fn with_body(schema: &Value) -> Value {
    json!({"operationId": "op", "requestBody": {"content": {"application/json": {"schema": schema}}}})
}

#[test]
fn references_lead_nowhere_but_into_the_document() {
    for reference in [
        "https://evil.example/schema.json",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "other.json#/a",
        "#a",
        "#",
        "",
    ] {
        let found = mistake(&with_body(&json!({"$ref": reference})), &json!({}));
        assert!(found.contains("leads out of the document"), "{reference}: {found}");
    }
    let found = mistake(&with_body(&json!({"$ref": "#/components/none"})), &json!({}));
    assert!(found.contains("leads nowhere"), "{found}");
}

#[test]
fn references_in_circles_and_to_many_schemas_end() {
    let loops = json!({
        "schemas": {
            "Self": {"$ref": "#/components/schemas/Self"},
            "A": {"properties": {"b": {"$ref": "#/components/schemas/B"}}},
            "B": {"properties": {"a": {"$ref": "#/components/schemas/A"}}},
        },
    });
    let found = mistake(&with_body(&json!({"$ref": "#/components/schemas/A"})), &loops);
    assert!(found.contains(r#""b":{"properties":{"a":{}}}"#), "{found}");
    let found = mistake(&with_body(&json!({"$ref": "#/components/schemas/Self"})), &loops);
    assert!(found.contains(r#""body":{}"#), "{found}");
    let chain = json!({"operationId": "op", "requestBody": {"$ref": "#/components/bodies/a"}});
    let circle = json!({"bodies": {"a": {"$ref": "#/components/bodies/b"}, "b": {"$ref": "#/components/bodies/a"}}});
    assert!(mistake(&chain, &circle).contains("a chain of references has more than 8"));

    // Each level has the one below twice, so the last one has it a billion times.
    let mut schemas = json!({"L0": {"type": "string"}});
    for level in 1..=30 {
        let below = json!({"$ref": format!("#/components/schemas/L{}", level - 1)});
        schemas[format!("L{level}")] = json!({"properties": {"a": below, "b": below}});
    }
    let begun = std::time::Instant::now();
    for (level, expected) in [(12, "more than 5000 values"), (30, "more than 40 levels")] {
        let top = json!({"$ref": format!("#/components/schemas/L{level}")});
        let found = mistake(&with_body(&top), &json!({"schemas": schemas}));
        assert!(found.contains(expected), "{found}");
    }
    // To follow all of them would take hours.
    assert!(begun.elapsed() < std::time::Duration::from_mins(1));
    let wide: Vec<_> = (0..6_000).map(|number| number.to_string()).collect();
    let found = mistake(&with_body(&json!({"enum": wide})), &json!({}));
    assert!(found.contains("more than 5000 values"), "{found}");
}

#[test]
fn parameters_and_schemas_that_are_not_valid_are_a_mistake() {
    let parameters = |parameters: Value| json!({"operationId": "op", "parameters": parameters});
    let of_schema = |schema: Value| parameters(json!([{"name": "a", "in": "query", "schema": schema}]));
    let not_valid = "`openapi`: op: the schema of the tool \"op\" can't be used: the schema is not valid: ";
    for (operation, expected) in [
        (parameters(json!([{"in": "query"}])), "a parameter has no name"),
        (
            parameters(json!([{"in": "query", "name": 5}])),
            "a parameter has no name",
        ),
        (
            parameters(json!({"name": "a", "in": "query"})),
            "its `parameters` are no list",
        ),
        (of_schema(json!({"type": "int"})), not_valid),
        (of_schema(json!(null)), not_valid),
        (of_schema(json!("string")), not_valid),
        (
            parameters(json!([{"name": "a", "in": "query", "description": 5, "schema": {}}])),
            not_valid,
        ),
        (with_body(&json!({"properties": {"a": null}})), not_valid),
    ] {
        let found = mistake(&operation, &json!({}));
        assert!(found.contains(expected), "{found}");
    }
}

/// The words about an operation that can't be offered, and the operation.
const NOT_SUPPORTED: &str = r#"
the style "pipeDelimited" is not supported        | {"operationId": "op", "parameters": [{"name": "a", "in": "query", "style": "pipeDelimited"}]}
the style "matrix" is not supported               | {"operationId": "op", "parameters": [{"name": "a", "in": "path", "style": "matrix"}]}
a parameter in "cookie" is not supported          | {"operationId": "op", "parameters": [{"name": "a", "in": "cookie", "required": true}]}
"a b" is not the name of a header                 | {"operationId": "op", "parameters": [{"name": "a b", "in": "header"}]}
a parameter is no object                          | {"operationId": "op", "parameters": [7]}
its body is not JSON                              | {"operationId": "op", "requestBody": {"required": true, "content": {"text/plain": {}}}}
the document has no operation "op"; it has other  | {"operationId": "other"}
"#;

#[test]
fn what_is_not_supported_is_a_mistake() {
    for [expected, operation] in rows(NOT_SUPPORTED) {
        let found = mistake(&serde_json::from_str(operation).unwrap(), &json!({}));
        assert!(found.contains(expected), "{found}");
    }
    let definition = "openapi = 'x.json'\nbase_url = 'SERVER'\noperations = ['op']";
    for document in [
        json!({}),
        json!({"swagger": "2.0"}),
        json!({"openapi": "4.0.0"}),
        json!([]),
    ] {
        let found = tools(definition, "http://127.0.0.1:1", Some(&document)).unwrap_err();
        assert!(found.contains("no OpenAPI document of version 3.0 or 3.1"), "{found}");
    }
    let dots = json!({"openapi": "3.1.0", "paths": {"/../../admin": {"get": {"operationId": "op"}}}});
    let found = tools(definition, "http://127.0.0.1:1/api", Some(&dots)).unwrap_err();
    assert!(found.starts_with("`openapi`: op: "), "{found}");
    let unknown = json!({"openapi": "3.1.0", "paths": {"/{a}": {"get": {"operationId": "op"}}}});
    let found = tools(definition, "http://127.0.0.1:1", Some(&unknown)).unwrap_err();
    assert_contains!(found, "the path has \"a\", and the parameters do not");
    for (base_url, expected) in [
        ("http://127.0.0.2", "not public"),
        ("http://{a}", "parameter"),
        ("http://127.0.0.1/?a", "query"),
    ] {
        let definition = definition.replace("SERVER", base_url);
        let found = tools(
            &definition,
            "",
            Some(&json!({"openapi": "3.1.0", "paths": {"/": {"get": {"operationId": "op"}}}})),
        );
        assert!(found.unwrap_err().contains(expected), "{base_url}");
    }
}
