//! Sessions and their files as resources.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Client, McpApp};

/// Reads a resource, which has one content.
async fn content(client: &Client<'_>, uri: &str) -> Value {
    let read = client.ok("resources/read", json!({"uri": uri})).await;
    assert_eq!(
        (&read["cacheScope"], &read["ttlMs"]),
        (&json!("private"), &json!(86_400_000))
    );
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
    assert_eq!(
        (&rows[0][0]["title"], &rows[0][0]["mimeType"]),
        (&json!("echo"), &json!("application/json"))
    );
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
    assert_eq!(
        (&shown["session_id"], &shown["message_count"]),
        (&json!(id), &json!(60))
    );
    let messages = &shown["messages"];
    assert_eq!((&messages["from"], &messages["total"]), (&json!(10), &json!(60)));
    assert_eq!(messages["data"].as_array().unwrap().len(), 50);
    assert_eq!(messages["data"][49]["content"][0]["text"], "echo: 29");
    let page = document(&client, &format!("session://{id}/messages/2")).await;
    assert_eq!(
        (&page["from"], &page["data"][0]["content"][0]["text"]),
        (&json!(2), &json!("1"))
    );
    let end = document(&client, &format!("session://{id}/messages/60")).await;
    assert_eq!(end["data"], json!([]));
    app.finish().await;
}

#[tokio::test]
async fn files_are_text_or_base64() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    let run = app.run(None, "x").await;
    let path = format!("/v1/sessions/{}/files", run["session_id"].as_str().unwrap());
    let large = "x".repeat(4 << 20) + "x";
    let changes = json!({"changes": [
        {"path": "notes/a b.md", "content": "# é"},
        {"path": "notes/z.bin", "content": {"base64": "/wD+"}},
        {"path": "large.txt", "content": large},
    ]});
    let (status, changed) = app.call(Method::POST, &path, Some(changes)).await;
    assert!(status.is_success(), "{changed:#}");
    let id = changed["session_id"].as_str().unwrap();
    let shown = document(&client, &format!("session://{id}")).await;
    let root = shown["files"].as_str().unwrap();
    assert_eq!(root, format!("session://{id}/files/"));
    let listed = document(&client, root).await;
    let paths: Vec<_> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["path"].clone())
        .collect();
    assert_eq!(
        (paths, &listed["truncated"]),
        (vec![json!("large.txt"), json!("notes")], &json!(false))
    );
    let notes = document(&client, &format!("{root}notes/")).await;
    assert_eq!(notes["entries"][0]["path"], "notes/a b.md");
    let text = content(&client, &format!("{root}notes/a%20b.md")).await;
    assert_eq!(
        (&text["text"], &text["mimeType"]),
        (&json!("# é"), &json!("text/markdown; charset=utf-8"))
    );
    let binary = content(&client, &format!("{root}notes/z.bin")).await;
    assert_eq!((&binary["blob"], &binary["text"]), (&json!("/wD+"), &Value::Null));
    let error = client
        .error("resources/read", json!({"uri": format!("{root}large.txt")}))
        .await;
    assert!(
        error["message"].as_str().unwrap().contains("at most 4194304"),
        "{error:#}"
    );
    for absent in ["nothing", "notes", "../x", "notes/a%20b.md/"] {
        let uri = format!("{root}{absent}");
        for (client, code) in [(app.client(), -32602), (app.client().legacy(), -32002)] {
            let error = client.error("resources/read", json!({"uri": uri})).await;
            assert_eq!(
                (&error["code"], &error["data"]["uri"]),
                (&json!(code), &json!(uri)),
                "{error:#}"
            );
        }
    }
    app.finish().await;
}
