//! Routes of sessions.

mod compacted;
mod compare;
mod delete;
mod files;
mod import;
mod import_files;
mod list;
mod show;
mod sizes;
mod stream;
mod subagents;
mod trees;

use serde_json::{Value, json};

use super::service::Service;

async fn line_of_sessions(service: &Service, length: usize) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for turn in 0..length {
        let run = service
            .run_with(
                json!({"input": format!("turn {turn}"), "base_session_id": ids.last(), "variables": {"turn": turn}}),
            )
            .await;
        ids.push(run["session_id"].as_str().unwrap().to_owned());
    }
    ids
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["session_id"].as_str().unwrap()).collect()
}
