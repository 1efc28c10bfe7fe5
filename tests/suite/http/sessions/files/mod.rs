//! Files of sessions over HTTP.

mod archive;
mod blobs;
mod change;
mod differences;
mod environment_from;
mod list;
mod merge;
mod read;

use reqwest::header;
use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::answer::{Answer, read};

/// Makes a session without files.
async fn session(service: &Service) -> String {
    id_of(&service.post("/v1/sessions", &json!({})).await.ok())
}

/// Makes a session whose files are texts.
async fn session_with(service: &Service, files: &[(&str, &str)]) -> String {
    let base = session(service).await;
    changed(service, &base, files).await
}

/// Makes a child session in which files have these texts.
async fn changed(service: &Service, session_id: &str, files: &[(&str, &str)]) -> String {
    let changes: Vec<Value> = files
        .iter()
        .map(|(path, text)| json!({"path": path, "content": text}))
        .collect();
    id_of(&change(service, session_id, &json!(changes)).await.ok())
}

/// Makes a child session in which paths are gone.
async fn deleted(service: &Service, session_id: &str, paths: &[&str]) -> String {
    let changes: Vec<Value> = paths.iter().map(|path| json!({"path": path, "delete": true})).collect();
    id_of(&change(service, session_id, &json!(changes)).await.ok())
}

async fn change(service: &Service, session_id: &str, changes: &Value) -> Answer {
    let path = format!("/v1/sessions/{session_id}/files");
    service.post(&path, &json!({"changes": changes})).await
}

fn id_of(session: &Value) -> String {
    session["session_id"].as_str().unwrap().to_owned()
}

/// Returns the texts of all files by path.
async fn texts(service: &Service, session_id: &str) -> Vec<(String, String)> {
    let list = format!("/v1/sessions/{session_id}/files?recursive=true&limit=200");
    let mut texts = Vec::new();
    for entry in service.get(&list).await["data"].as_array().unwrap() {
        if entry["kind"] == "file" {
            let path = entry["path"].as_str().unwrap();
            let text = get_file(service, session_id, path, &[]).await.text();
            texts.push((path.to_owned(), text));
        }
    }
    texts
}

async fn get_file(service: &Service, session_id: &str, path: &str, headers: &[(header::HeaderName, &str)]) -> Answer {
    let path = format!("/v1/sessions/{session_id}/files/{path}");
    let request = service.request(reqwest::Method::GET, &path);
    let request = headers
        .iter()
        .fold(request, |request, (name, value)| request.header(name, *value));
    read(request).await
}

async fn put_blob(service: &Service, hash: &str, bytes: &[u8]) -> Answer {
    let request = service.request(reqwest::Method::PUT, &format!("/v1/blobs/{hash}"));
    read(request.body(bytes.to_vec())).await
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_string()
}
