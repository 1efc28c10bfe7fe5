//! Servers of which a part can't be read: a tool, a resource, a part of a result. The rest is used.

use serde_json::json;
use test_support::raw_server::RawReply;
use values::json::Value;

use super::McpApp;
use super::raw::{RawMcp, begin, response};
use crate::support::table::rows;

/// Starts a server that responds to a method with a result, and else as usual. It has tools,
/// resources and prompts.
async fn server_with(method: &'static str, result: impl Fn(&Value) -> Value + Send + Sync + 'static) -> RawMcp {
    server_replying(method, move |request| raw_result(&request["id"], &result(request))).await
}

/// Starts the same server, which replies to a method in any way.
async fn server_replying(method: &'static str, reply: impl Fn(&Value) -> RawReply + Send + Sync + 'static) -> RawMcp {
    RawMcp::start_all(move |request| {
        let id = &request["id"];
        match request["method"].as_str().unwrap_or_default() {
            asked if asked == method => reply(request),
            "server/discover" => {
                let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
                let versions = json!(["2026-07-28"]);
                response(
                    id,
                    json!({"supportedVersions": versions, "capabilities": capabilities, "ttlMs": 0}),
                )
            }
            "resources/list" => response(id, json!({"resources": [{"uri": "a:1", "name": "one"}]})),
            "resources/templates/list" => response(id, json!({"resourceTemplates": [{"uriTemplate": "b:{x}"}]})),
            _ => begin(request),
        }
    })
    .await
}

/// Returns a response with a result as it is.
fn raw_result(id: &Value, result: &Value) -> RawReply {
    let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
    RawReply::new(200, &[("content-type", "application/json")], message.to_string())
}

fn refused(id: &Value, code: i32) -> RawReply {
    let message = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "Method not found"}});
    RawReply::new(200, &[("content-type", "application/json")], message.to_string())
}

async fn app_with(server: &RawMcp) -> McpApp {
    McpApp::alone(&[("box", &server.url(), "connect_timeout = '1m'")]).await
}

/// Returns what the run says about tools that are left out.
async fn problems(app: &McpApp) -> Vec<String> {
    let events = app.stream(json!({"agent": "user", "input": "nothing"})).await;
    let event = events.iter().find(|event| event["type"] == "server.warned");
    let event = event.unwrap_or_else(|| panic!("{events:#?}"));
    assert_eq!(event["data"]["server"], "box");
    serde_json::from_value(event["data"]["problems"].clone()).unwrap()
}

fn own_tools(app: &McpApp) -> Vec<String> {
    let extra = [
        "box_list_resources",
        "box_read_resource",
        "box_list_prompts",
        "box_get_prompt",
    ];
    let offered = app.offered().into_iter();
    offered.filter(|name| !extra.contains(&name.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_can_not_be_read_is_left_out_alone() {
    let schema = json!({"type": "object"});
    for (bad, expected) in [
        (json!({"name": "bad", "inputSchema": null}), "inputSchema"),
        (json!({"name": "bad"}), "inputSchema"),
        (json!({"name": "bad", "inputSchema": [schema]}), "inputSchema"),
        (json!({"name": null, "inputSchema": schema}), "name"),
        (json!("bad"), "expected struct Tool"),
        (json!(null), "expected struct Tool"),
    ] {
        let tools = json!([{"name": "a", "inputSchema": schema}, bad, {"name": "b", "inputSchema": schema}]);
        let server = server_with("tools/list", move |_| json!({"tools": tools})).await;
        let app = app_with(&server).await;
        let problems = problems(&app).await;
        assert_eq!(own_tools(&app), ["box_a", "box_b"], "{problems:?}");
        assert!(
            problems.len() == 1 && problems[0].starts_with("`tools[1]`"),
            "{problems:?}"
        );
        assert!(problems[0].contains(expected), "{problems:?}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_loses_only_the_part_that_can_not_be_read() {
    let result = json!({
        "tools": [{
            "name": "t", "inputSchema": {"type": "object"}, "description": "Works.", "title": 7, "_meta": "x",
            "annotations": {"readOnlyHint": "true", "idempotentHint": true}, "icons": {"src": "a"},
            "outputSchema": [], "execution": 5,
        }],
        "ttlMs": "soon", "nextCursor": 5, "_meta": [],
    });
    let server = server_with("tools/list", move |_| result.clone()).await;
    let app = app_with(&server).await;
    let problems = problems(&app).await;
    assert_eq!(own_tools(&app), ["box_t"], "{problems:?}");
    for part in [
        "annotations.readOnlyHint",
        "title",
        "icons",
        "outputSchema",
        "nextCursor",
    ] {
        assert!(
            problems.iter().any(|problem| problem.contains(part)),
            "{part}: {problems:?}"
        );
    }
    let request = app.mock.requests().pop().unwrap();
    assert_eq!(request["tools"].as_array().unwrap().len(), 5);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_tools_without_an_end_is_used_up_to_there() {
    type Page = fn(&Value) -> Value;
    let cases: [(&str, Page, usize, &str); 6] = [
        (
            "has one cursor again and again",
            |_| json!({"tools": [named("t0")], "nextCursor": "a"}),
            1,
            "its cursor comes again",
        ),
        (
            // Only in older revisions does it end the list.
            "has an empty cursor again and again",
            |_| json!({"tools": [named("t0")], "nextCursor": ""}),
            1,
            "its cursor comes again",
        ),
        (
            "has two cursors in turn",
            |request| match request["params"]["cursor"].as_str() {
                None | Some("b") => json!({"tools": [named("t0")], "nextCursor": "a"}),
                _ => json!({"tools": [named("t1")], "nextCursor": "b"}),
            },
            2,
            "its cursor comes again",
        ),
        (
            "has ever new cursors",
            |request| {
                let page = request["params"]["cursor"]
                    .as_str()
                    .unwrap_or("0")
                    .parse::<u32>()
                    .unwrap();
                json!({"tools": [named(&format!("t{}", page % 3))], "nextCursor": (page + 1).to_string()})
            },
            3,
            "it has more than 64 pages",
        ),
        (
            "is long",
            |_| {
                let tools: Vec<_> = (0..300).map(|n| named(&format!("t{n}"))).collect();
                json!({"tools": tools})
            },
            256,
            "it has more than 256 tools",
        ),
        (
            "has a page that is no list",
            |request| match request["params"]["cursor"].as_str() {
                None => json!({"tools": [named("t0")], "nextCursor": "a"}),
                _ => json!({"prompts": []}),
            },
            1,
            "page 2 can't be read",
        ),
    ];
    for (name, page, count, expected) in cases {
        let server = server_with("tools/list", page).await;
        let app = app_with(&server).await;
        let problems = problems(&app).await;
        assert_eq!(own_tools(&app).len(), count, "{name}: {problems:?}");
        assert!(
            problems.iter().any(|problem| problem.contains(expected)),
            "{name}: {problems:?}"
        );
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_page_that_fails_ends_the_list_of_tools() {
    type Page = fn() -> RawReply;
    let cases: [(Page, &str); 5] = [
        (|| RawReply::new(500, &[], "down"), "HTTP 500"),
        (
            || RawReply::new(200, &[("content-type", "application/json")], "{garbage"),
            "",
        ),
        (|| RawReply::new(202, &[], ""), "HTTP 202"),
        (|| RawReply::bytes(""), ""),
        (|| RawReply::bytes("").then_hang(), "it did not respond within 5s"),
    ];
    for (page, expected) in cases {
        let server = server_replying("tools/list", move |request| {
            let first = json!({"tools": [named("t0")], "nextCursor": "2", "ttlMs": 3_600_000});
            match request["params"]["cursor"].as_str() {
                None => raw_result(&request["id"], &first),
                _ => page(),
            }
        });
        let server = server.await;
        let app = McpApp::alone(&[("box", &server.url(), "connect_timeout = '5s'")]).await;
        let problems = problems(&app).await;
        assert_eq!(own_tools(&app), ["box_t0"], "{problems:?}");
        assert!(
            problems.len() == 1 && problems[0].contains("page 2 can't be read") && problems[0].contains(expected),
            "{expected}: {problems:?}"
        );
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capabilities_that_can_not_be_read_are_tried() {
    let tools = vec!["box_t"];
    for (capabilities, expected) in [
        (
            json!({"tools": [], "resources": []}),
            vec!["box_t", "box_list_resources", "box_read_resource"],
        ),
        (json!({"tools": null, "resources": null}), tools.clone()),
        (json!({"tools": "yes"}), tools.clone()),
        (json!({"tools": true, "resources": false}), tools.clone()),
        (json!(null), tools.clone()),
        (json!([]), tools),
        (json!({"tools": false}), vec![]),
        (json!({}), vec![]),
    ] {
        let sent = capabilities.to_string();
        let server = server_replying("server/discover", move |request| {
            let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0});
            response(&request["id"], result)
        });
        let server = server.await;
        let app = app_with(&server).await;
        app.run_with(json!({"agent": "user", "input": "nothing"})).await;
        assert_eq!(app.offered(), expected, "{sent}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_knows_no_list_of_tools_has_none() {
    let server = server_replying("tools/list", |request| refused(&request["id"], -32_601)).await;
    let app = app_with(&server).await;
    let problems = problems(&app).await;
    assert!(problems[0].contains("Method not found"), "{problems:?}");
    assert!(own_tools(&app).is_empty(), "{problems:?}");
    let listed = app.use_tool("box_list_resources", json!({})).await;
    assert!(listed.contains("a:1"), "{listed}");
    app.finish().await;
}

fn named(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// Parts that the model reads, and the result of a call that has them.
const RESULTS: &str = r##"
kept; hologram; beam    | {"content": [TEXT, {"type": "hologram", "beam": 1}]}
kept; no valid content  | {"content": [TEXT, null, 5]}
kept; no valid content  | {"content": [TEXT, {"type": "text"}]}
kept; # Head            | {"content": [TEXT, {"type": "markdown", "text": "# Head"}]}
kept; an image; 3 bytes | {"content": [TEXT, {"type": "image", "data": "AAAA"}]}
untyped; bare           | {"content": [{"text": "untyped"}, "bare"]}
{"a":1}                 | {"content": [{"type": "text", "text": {"a": 1}}]}
kept                    | {"content": [{"type": "text", "text": "kept", "annotations": {"priority": "high"}}]}
inside                  | {"content": [{"type": "resource", "resource": {"text": "inside"}}]}
file:///a               | {"content": [{"type": "resource_link", "uri": "file:///a"}]}
{"sum":3}               | {"content": null, "structuredContent": {"sum": 3}}
[1,2]                   | {"structuredContent": [1, 2]}
three                   | {"structuredContent": "three", "content": []}
bare                    | {"content": "bare"}
kept                    | {"content": TEXT}
kept                    | {"content": [TEXT], "isError": "false", "_meta": 5}
{"sum":3}               | {"toolResult": {"sum": 3}}
tools                   | {"tools": []}
kept                    | {"resultType": "text", "content": [TEXT]}
kept                    | {"resultType": "task", "content": [TEXT]}
kept                    | {"resultType": "input_required", "content": [TEXT]}
bare                    | "bare"
kept                    | [TEXT]
null                    | null
without a result        | {}
"##;

/// The part for which `TEXT` stands in a result.
const TEXT: &str = r#"{"type": "text", "text": "kept"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_result_of_a_call_reaches_the_model() {
    for [expected, result] in rows(RESULTS) {
        let result: Value = serde_json::from_str(&result.replace("TEXT", TEXT)).unwrap();
        let sent = result.to_string();
        let server = server_with("tools/call", move |_| result.clone()).await;
        let app = app_with(&server).await;
        let words = app.use_tool("box_t", json!({})).await;
        for part in expected.split("; ") {
            assert!(words.contains(part), "{sent}: {words}");
        }
        assert!(!words.contains("gave no result"), "{sent}: {words}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_and_prompts_are_listed_without_those_that_can_not_be_read() {
    let resources = json!({"resources": [{"uri": "a:1", "name": "one"}, {"name": "none"}, {"uri": "a:2"}]});
    let templates = json!({"resourceTemplates": [{"uriTemplate": "b:{x}", "name": "t"}, 5]});
    let prompts = json!({"prompts": [{"name": "p", "arguments": [{"name": "x"}, {"description": "y"}]}, {}]});
    for (method, result, tool, good, bad) in [
        (
            "resources/list",
            resources,
            "box_list_resources",
            vec!["a:1", "a:2"],
            "`resources[1]`",
        ),
        (
            "resources/templates/list",
            templates,
            "box_list_resources",
            vec!["b:{x}"],
            "`resourceTemplates[1]`",
        ),
        (
            "prompts/list",
            prompts,
            "box_list_prompts",
            vec!["\"p\"", "\"x\""],
            "`prompts[1]`",
        ),
    ] {
        let server = server_with(method, move |_| result.clone()).await;
        let app = app_with(&server).await;
        let words = app.use_tool(tool, json!({})).await;
        let listed: Value = serde_json::from_str(&words).unwrap_or_else(|_| panic!("{words}"));
        let left_out = listed["left_out"].to_string();
        assert!(left_out.contains(bad), "{words}");
        for part in good {
            assert!(words.contains(part), "{words}");
        }
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_and_templates_are_listed_without_each_other() {
    type Page = fn(&Value) -> RawReply;
    let cases: [(&str, Page, &[&str]); 3] = [
        (
            "resources/list",
            |request| refused(&request["id"], -32_601),
            &["b:{x}", "the resources can't be listed", "Method not found"],
        ),
        (
            "resources/templates/list",
            |_| RawReply::new(500, &[], "down"),
            &["a:1", "page 1 of the templates can't be read", "HTTP 500"],
        ),
        (
            "resources/templates/list",
            |request| match request["params"]["cursor"].as_str() {
                None => raw_result(
                    &request["id"],
                    &json!({"resourceTemplates": [{"uriTemplate": "b:1"}], "nextCursor": "2"}),
                ),
                Some("2") => raw_result(
                    &request["id"],
                    &json!({"resourceTemplates": [{"uriTemplate": "b:2"}], "nextCursor": "3"}),
                ),
                _ => RawReply::new(202, &[], ""),
            },
            &["a:1", "b:1", "b:2", "page 3 of the templates can't be read"],
        ),
    ];
    for (method, page, expected) in cases {
        let server = server_replying(method, page).await;
        let app = app_with(&server).await;
        let words = app.use_tool("box_list_resources", json!({})).await;
        for part in expected {
            assert!(words.contains(part), "{part}: {words}");
        }
        app.finish().await;
    }
    // A server need not know templates.
    let server = server_replying("resources/templates/list", |request| refused(&request["id"], -32_601)).await;
    let app = app_with(&server).await;
    let words = app.use_tool("box_list_resources", json!({})).await;
    assert!(words.contains("a:1") && !words.contains("left_out"), "{words}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_cursor_of_a_list_is_a_cursor() {
    let page = |_: &Value| json!({"resources": [], "nextCursor": ""});
    let server = server_with("resources/list", page).await;
    let app = app_with(&server).await;
    let words = app.use_tool("box_list_resources", json!({})).await;
    let listed: Value = serde_json::from_str(&words).unwrap_or_else(|_| panic!("{words}"));
    assert_eq!(listed["next_cursor"], "", "{words}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contents_and_messages_are_read_part_by_part() {
    let contents = json!({"contents": [{"uri": "a:1", "text": "first"}, {"uri": "a:2"}, {"text": "third"}]});
    let messages = json!({"messages": [
        {"role": "user", "content": {"type": "text", "text": "first"}},
        {"role": "system", "content": [{"type": "text", "text": "second"}, {"type": "odd", "x": 1}]},
        {"role": "user", "content": "third"},
    ]});
    let (uri, name) = (json!({"uri": "a:1"}), json!({"name": "p"}));
    for (method, result, tool, arguments, expected) in [
        (
            "resources/read",
            contents,
            "box_read_resource",
            uri,
            ["first", "a:2", "third"],
        ),
        (
            "prompts/get",
            messages,
            "box_get_prompt",
            name,
            ["first", "second", "third"],
        ),
    ] {
        let server = server_with(method, move |_| result.clone()).await;
        let app = app_with(&server).await;
        let words = app.use_tool(tool, arguments).await;
        for part in expected {
            assert!(words.contains(part), "{words}");
        }
        app.finish().await;
    }
}
