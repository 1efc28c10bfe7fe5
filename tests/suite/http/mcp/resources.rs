//! Sessions and their files as resources.

use serde_json::{Value, json};

use super::{Client, McpApp};
use crate::support::members::{assert_members, column};
use crate::support::test_app::session_path;
use crate::support::text::assert_contains;

/// Reads a resource, which has one content.
async fn content(client: &Client<'_>, uri: &str) -> Value {
    let read = client.ok("resources/read", json!({"uri": uri})).await;
    assert_members!(read, {"cacheScope": "private", "ttlMs": 86_400_000});
    let contents = read["contents"].as_array().unwrap();
    assert_eq!((contents.len(), &contents[0]["uri"]), (1, &json!(uri)));
    contents[0].clone()
}

/// Reads a resource of JSON.
async fn document(client: &Client<'_>, uri: &str) -> Value {
    let content = content(client, uri).await;
    assert_eq!(content["mimeType"], "application/json");
    serde_json::from_str(content["text"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn sessions_are_listed_newest_first_in_pages() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    let mut made = Vec::new();
    for index in 0..53 {
        let run = app.run(None, &format!("{index}")).await;
        made.push(format!("session://{}", run["session_id"].as_str().unwrap()));
    }
    made.reverse();
    let first = client.ok("resources/list", json!({})).await;
    let second = client
        .ok("resources/list", json!({"cursor": first["nextCursor"]}))
        .await;
    let rows = [&first, &second].map(|page| page["resources"].as_array().unwrap());
    assert_eq!(
        (rows[0].len(), rows[1].len(), &second["nextCursor"]),
        (50, 3, &Value::Null)
    );
    let listed: Vec<_> = rows
        .into_iter()
        .flatten()
        .map(|row| row["uri"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed, made);
    assert_members!(rows[0][0], {"title": "echo", "mimeType": "application/json"});
    let error = client.error("resources/list", json!({"cursor": "zz"})).await;
    assert_eq!(error["code"], -32602);
    let templates = client.ok("resources/templates/list", json!({})).await;
    let templates: Vec<_> = templates["resourceTemplates"].as_array().unwrap().iter().collect();
    let uris: Vec<_> = templates
        .iter()
        .map(|row| row["uriTemplate"].as_str().unwrap())
        .collect();
    assert_eq!(
        uris,
        [
            "session://{session_id}",
            "session://{session_id}/messages/{from}",
            "session://{session_id}/files/{+directory}/",
            "session://{session_id}/files/{+path}",
        ]
    );
    app.finish().await;
}

#[tokio::test]
async fn a_session_shows_its_messages() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    let mut base = None;
    for index in 0..30 {
        let run = app.run(base.as_deref(), &format!("{index}")).await;
        base = Some(run["session_id"].as_str().unwrap().to_owned());
    }
    let id = base.unwrap();
    let shown = document(&client, &format!("session://{id}")).await;
    assert_members!(shown, {"session_id": id, "message_count": 60});
    let messages = &shown["messages"];
    assert_members!(messages, {"from": 10, "total": 60});
    assert_eq!(messages["data"].as_array().unwrap().len(), 50);
    assert_eq!(messages["data"][49]["content"][0]["text"], "echo: 29");
    let page = document(&client, &format!("session://{id}/messages/2")).await;
    assert_members!(page, {"from": 2, "data/0/content/0/text": "1"});
    let end = document(&client, &format!("session://{id}/messages/60")).await;
    assert_eq!(end["data"], json!([]));
    app.finish().await;
}

#[tokio::test]
async fn files_are_text_or_base64() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    let run = app.run(None, "x").await;
    let path = session_path(&run, "/files");
    let large = "x".repeat(4 << 20) + "x";
    let changes = json!({"changes": [
        {"path": "notes/a b.md", "content": "# é"},
        {"path": "notes/z.bin", "content": {"base64": "/wD+"}},
        {"path": "large.txt", "content": large},
    ]});
    let changed = app.post(&path, &changes).await.ok();
    let id = changed["session_id"].as_str().unwrap();
    let shown = document(&client, &format!("session://{id}")).await;
    let root = shown["files"].as_str().unwrap();
    assert_eq!(root, format!("session://{id}/files/"));
    let listed = document(&client, root).await;
    let paths = column(&listed["entries"], "path");
    assert_eq!(paths, ["large.txt", "notes"]);
    assert_eq!(listed["truncated"], false);
    let notes = document(&client, &format!("{root}notes/")).await;
    assert_eq!(notes["entries"][0]["path"], "notes/a b.md");
    let text = content(&client, &format!("{root}notes/a%20b.md")).await;
    assert_members!(text, {"text": "# é", "mimeType": "text/markdown; charset=utf-8"});
    let binary = content(&client, &format!("{root}notes/z.bin")).await;
    assert_members!(binary, {"blob": "/wD+", "text": null});
    let error = client
        .error("resources/read", json!({"uri": format!("{root}large.txt")}))
        .await;
    assert_contains!(error["message"].as_str().unwrap(), "at most 4194304");
    for absent in ["nothing", "notes", "../x", "notes/a%20b.md/"] {
        let uri = format!("{root}{absent}");
        for (client, code) in [(app.client(), -32602), (app.client().legacy(), -32002)] {
            let error = client.error("resources/read", json!({"uri": uri})).await;
            assert_members!(error, {"code": code, "data/uri": uri});
        }
    }
    app.finish().await;
}
