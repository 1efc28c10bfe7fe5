//! Which request a call sends.

use serde_json::json;
use test_support::raw_server::{RawReply, RawServer};

use super::super::setup::{KEY, call};
use super::tool;

async fn echo() -> RawServer {
    RawServer::start(|_| RawReply::text("ok")).await
}

#[tokio::test]
async fn arguments_fill_path_query_headers_and_body() {
    let server = echo().await;
    let definition = r#"
        name = "order"
        description = "Orders."
        method = "PUT"
        url = "SERVER/v1/shops/{shop}/orders/{id}?fixed=a%20b&when={when}"
        [query]
        lang = "{lang}"
        [headers]
        X-Shop = "shop {shop}"
        X-Note = "{note}"
        [parameters]
        type = "object"
        required = ["shop", "id"]
        [parameters.properties]
        shop = { type = "string" }
        id = { type = "integer" }
        when = { type = "string" }
        lang = { type = "string" }
        note = { type = "string" }
        items = { type = "array" }
        total = { type = "number" }
    "#;
    let tool = tool(definition, &server.url(""));
    let arguments = json!({
        "shop": "a/b c", "id": 7, "when": "1&2=3#4", "items": [{"n": 1}], "total": 1.5,
    });
    assert_eq!(call(&tool, &arguments).await, Ok("ok".to_owned()));
    let request = &server.requests()[0];
    assert_eq!(
        request.line(),
        "PUT /v1/shops/a%2Fb%20c/orders/7?fixed=a+b&when=1%262%3D3%234"
    );
    assert_eq!(request.header("x-shop"), Some("shop a/b c"));
    assert_eq!(request.header("x-note"), None);
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.body, r#"{"items":[{"n":1}],"total":1.5}"#);
}

#[tokio::test]
async fn no_argument_leaves_its_position() {
    let server = echo().await;
    let definition = r#"
        name = "read"
        description = "Reads."
        url = "SERVER/v1/{id}/end?q={q}"
        [headers]
        X-Id = "{header}"
        [parameters]
        type = "object"
        required = ["id"]
        [parameters.properties]
        id = { type = "string" }
        q = { type = "string" }
        header = { type = "string" }
    "#;
    let tool = tool(definition, &server.url(""));
    for (id, expected) in [
        ("a?b", "GET /v1/a%3Fb/end"),
        ("a#b", "GET /v1/a%23b/end"),
        ("@127.0.0.2", "GET /v1/%40127.0.0.2/end"),
        ("//127.0.0.2/", "GET /v1/%2F%2F127.0.0.2%2F/end"),
        ("%2f", "GET /v1/%252f/end"),
        ("a b", "GET /v1/a%20b/end"),
        ("a\\b", "GET /v1/a%5Cb/end"),
    ] {
        let before = server.requests().len();
        call(&tool, &json!({"id": id})).await.unwrap();
        assert_eq!(server.lines()[before..], [expected]);
    }
    let before = server.requests().len();
    for id in [
        "",
        ".",
        "..",
        "../admin",
        "a/../b",
        "%2e%2e",
        "%2e%2e%2fadmin",
        "..\\x",
        "a\nb",
        "a%00",
    ] {
        let error = call(&tool, &json!({"id": id})).await.unwrap_err();
        assert!(error.starts_with("id is part of a path"), "{id}: {error}");
    }
    for header in ["a\r\nX-Admin: 1", "a\nb", "é"] {
        let error = call(&tool, &json!({"id": "x", "header": header})).await.unwrap_err();
        assert!(error.starts_with("the header x-id can't contain this value"), "{error}");
        assert!(!error.contains("Admin"), "{error}");
    }
    assert_eq!(server.requests().len(), before);
    call(&tool, &json!({"id": "x", "q": "../..?a=b&c#d\r\n"}))
        .await
        .unwrap();
    assert_eq!(
        server.lines()[before..],
        ["GET /v1/x/end?q=..%2F..%3Fa%3Db%26c%23d%0D%0A"]
    );
}

#[tokio::test]
async fn the_rest_of_the_arguments_goes_into_the_query_or_the_body() {
    let server = echo().await;
    let parameters = r#"
        [parameters]
        type = "object"
        required = ["id"]
        [parameters.properties]
        id = { type = "string" }
    "#;
    let arguments = json!({"id": "7", "tags": ["a", "b"], "n": 1, "none": null, "deep": {"x": 1}});
    for (method, line, body) in [
        ("GET", "GET /7?deep=%7B%22x%22%3A1%7D&n=1&tags=a&tags=b", ""),
        ("DELETE", "DELETE /7?deep=%7B%22x%22%3A1%7D&n=1&tags=a&tags=b", ""),
        (
            "POST",
            "POST /7",
            r#"{"deep":{"x":1},"n":1,"none":null,"tags":["a","b"]}"#,
        ),
        (
            "PATCH",
            "PATCH /7",
            r#"{"deep":{"x":1},"n":1,"none":null,"tags":["a","b"]}"#,
        ),
    ] {
        let definition =
            format!("name = 't'\ndescription = 'd'\nmethod = '{method}'\nurl = 'SERVER/{{id}}'\n{parameters}");
        let tool = tool(&definition, &server.url(""));
        let before = server.requests().len();
        call(&tool, &arguments).await.unwrap();
        let request = &server.requests()[before];
        assert_eq!((request.line(), request.body.as_str()), (line, body));
    }
}

#[tokio::test]
async fn a_body_can_have_a_form_of_its_own() {
    let server = echo().await;
    let definition = r#"
        name = "search"
        description = "Searches."
        method = "POST"
        url = "SERVER/search"
        idempotent = true
        [body]
        kind = "search"
        limit = 10
        [body.query]
        text = "{text}"
        title = "Search for {text}"
        filter = "{filter}"
        [parameters]
        type = "object"
        [parameters.properties]
        text = { type = "string" }
        filter = { type = "object" }
    "#;
    let tool = tool(definition, &server.url(""));
    assert!(tool.spec().idempotent);
    call(&tool, &json!({"text": "\"}, \"admin\": true"})).await.unwrap();
    let expected = json!({
        "kind": "search", "limit": 10,
        "query": {"text": "\"}, \"admin\": true", "title": "Search for \"}, \"admin\": true"},
    });
    let body: serde_json::Value = serde_json::from_str(&server.requests()[0].body).unwrap();
    assert_eq!(body, expected);
}

#[tokio::test]
async fn without_a_schema_each_parameter_is_a_required_text() {
    let server = echo().await;
    let tool = tool(
        "name = 't'\ndescription = 'd'\nurl = 'SERVER/{a}?b={b}'",
        &server.url(""),
    );
    assert_eq!(
        tool.spec().parameters,
        json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["a", "b"],
            "additionalProperties": false,
        })
    );
    assert!(
        call(&tool, &json!({"a": "x"}))
            .await
            .unwrap_err()
            .contains("\"b\" is a required property")
    );
    call(&tool, &json!({"a": "x", "b": "y"})).await.unwrap();
    assert_eq!(server.lines(), ["GET /x?b=y"]);
}

#[tokio::test]
async fn a_request_with_an_effect_has_the_idempotency_key_of_its_call() {
    let server = echo().await;
    for (method, extra, name, expected) in [
        ("GET", "", "idempotency-key", None),
        ("POST", "", "idempotency-key", Some(KEY)),
        ("POST", "idempotent = true", "idempotency-key", Some(KEY)),
        (
            "POST",
            "idempotency_header = 'X-Request-Token'",
            "x-request-token",
            Some(KEY),
        ),
        ("POST", "idempotency_header = ''", "idempotency-key", None),
        ("DELETE", "", "idempotency-key", Some(KEY)),
    ] {
        let definition = format!("name = 't'\ndescription = 'd'\nmethod = '{method}'\nurl = 'SERVER/'\n{extra}");
        let tool = tool(&definition, &server.url(""));
        let before = server.requests().len();
        call(&tool, &json!({})).await.unwrap();
        assert_eq!(server.requests()[before].header(name), expected, "{method} {extra}");
    }
}
