//! Sessions of subagents: shown with the session of their starter, found by it, and continued like
//! any other.

use serde_json::{Value, json};
use store::open;
use store::sessions::{Commit, ConflictPolicy};
use test_support::databases::TestDatabase;
use test_support::drafts::{draft, run_of, session_id, user};
use values::session::BundleDraft;
use values::tenant::TenantId;

use crate::http::service::Service;
use crate::support::members::assert_members;

on_every_store! {
    sessions_of_subagents_are_shown_and_found,
    the_filter_takes_ids_only,
}

/// Publishes a run with three subagents, without the service. Returns the ids of the run's session
/// and of theirs, newest first.
async fn publish(service: &Service) -> (String, Vec<String>) {
    let store = open(service.database.url(), TestDatabase::settings()).await.unwrap();
    let own = draft(None, vec![user("run")]);
    let child = |text: &str| BundleDraft {
        run_id: own.run_id,
        subagent_of: Some(own.session_id),
        ..draft(None, vec![user(text)])
    };
    let commit = Commit {
        tenant: TenantId::anonymous(),
        run: Some(run_of(&own)),
        thread: None,
        conflict: ConflictPolicy::Fork,
        children: ["a", "b", "c"].map(child).into(),
        draft: own,
        environment_from: None,
    };
    store.session_commit(&commit).await.unwrap();
    store.close().await;
    let children = commit.children.iter().rev().map(|child| child.session_id.to_string());
    (commit.draft.session_id.to_string(), children.collect())
}

fn ids(page: &Value) -> Vec<&str> {
    let rows = page["data"].as_array().unwrap().iter();
    rows.map(|row| row["session_id"].as_str().unwrap()).collect()
}

async fn sessions_of_subagents_are_shown_and_found(service: &Service) {
    let (own, children) = publish(service).await;
    assert_eq!(
        service.get(&format!("/v1/sessions/{own}")).await["subagent_of"],
        Value::Null
    );
    for path in ["", "?include="] {
        let shown = service.get(&format!("/v1/sessions/{}{path}", children[0])).await;
        assert_members!(shown, {"subagent_of": own, "parent_session_id": null});
    }
    let path = format!("/v1/sessions?subagent_of={own}&limit=2");
    let page = service.get(&path).await;
    assert_eq!(ids(&page), children[..2]);
    assert_eq!(page["data"][0]["subagent_of"], json!(own));
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = service.get(&format!("{path}&cursor={cursor}")).await;
    assert_eq!(
        (ids(&page), &page["next_cursor"]),
        (vec![children[2].as_str()], &Value::Null)
    );
    for other in [&children[0], &session_id().to_string()] {
        assert_eq!(
            ids(&service.get(&format!("/v1/sessions?subagent_of={other}")).await),
            [""; 0]
        );
    }
}

async fn the_filter_takes_ids_only(service: &Service) {
    let answer = service.try_get("/v1/sessions?subagent_of=someone").await;
    answer.assert_problem("malformed_id");
}
