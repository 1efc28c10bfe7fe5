//! The request prefix is byte-stable: what a provider has cached of one request begins the next.

use serde_json::json;

use super::on_every_store;
use crate::support::databases::TestDatabase;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(each_request_begins_with_the_bytes_of_the_one_before);

async fn each_request_begins_with_the_bytes_of_the_one_before(database: TestDatabase) {
    let mock = MockModel::start(|request| Reply::text(&format!("noted: {}", last_user_text(request)))).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let agent = json!({"model": "mock/m", "system_prompt": "Answer in {{ variables.language }}.", "tools": ["calculator", "current_time"]});
    app.put_agent("steady", agent).await;
    let mut base = None;
    for turn in 0..4 {
        let mut body = json!({"agent": "steady", "input": format!("turn {turn} \u{1F980}"), "budget": {"max_tokens": 100_000 - turn}});
        match &base {
            Some(base) => body["base_session_id"] = json!(base),
            None => body["variables"] = json!({"language": "French"}),
        }
        let result = app.run_with(body).await;
        assert_eq!(result["status"], "completed", "{result:#}");
        base = result["session_id"].as_str().map(ToOwned::to_owned);
    }
    let requests = mock.raw_requests();
    assert_eq!(requests.len(), 4);
    assert!(String::from_utf8_lossy(&requests[0]).contains("Answer in French."));
    for pair in requests.windows(2) {
        let stable = through_messages(&pair[0]);
        assert!(
            pair[1].starts_with(stable),
            "{}\nis not the beginning of\n{}",
            String::from_utf8_lossy(stable),
            String::from_utf8_lossy(&pair[1])
        );
    }
    app.finish().await;
}

/// The body up to the end of its last message: the bracket that closes the list is where the next request goes on.
fn through_messages(body: &[u8]) -> &[u8] {
    let parsed: serde_json::Value = serde_json::from_slice(body).unwrap();
    let last = serde_json::to_string(&last_user_text(&parsed)).unwrap();
    let text = std::str::from_utf8(body).unwrap();
    let at = text.rfind(&last).unwrap() + last.len();
    let end = at + text[at..].find('}').unwrap() + 1;
    &body[..end]
}
