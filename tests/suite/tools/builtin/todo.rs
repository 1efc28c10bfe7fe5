//! `todo`: the list and the resource that has it.

use std::collections::BTreeMap;

use serde_json::json;

use super::Desk;

#[tokio::test]
async fn the_list_is_replaced_and_read() {
    let desk = Desk::new();
    let todo = async |arguments| desk.call("todo", arguments).await.unwrap();
    assert_eq!(todo(json!({})).await, "The list is empty.");
    let items = json!([
        {"text": "Read", "status": "done"}, {"text": "Write", "status": "in_progress"}, {"text": "Rest", "status": "pending"},
    ]);
    let shown = "1 of 3 done:\n[x] Read\n[>] Write\n[ ] Rest";
    assert_eq!(todo(json!({"items": items})).await, shown);
    assert_eq!(todo(json!({})).await, shown);
    assert_eq!(desk.environment.values().resources["todo"], items);
    assert_eq!(todo(json!({"items": []})).await, "The list is empty.");
    assert!(desk.environment.values().resources.is_empty());
}

#[tokio::test]
async fn the_list_has_limits() {
    let desk = Desk::new();
    let item = |text: &str, status: &str| json!({"text": text, "status": status});
    for items in [
        json!(vec![item("a", "pending"); 101]),
        json!([item("", "pending")]),
        json!([item(&"x".repeat(501), "pending")]),
        json!([item("a", "waiting")]),
    ] {
        let execution = desk.execution("todo", &json!({"items": items})).await;
        assert_eq!(execution.error.unwrap().code, "tool_arguments_invalid");
    }
    let items = json!({"items": vec![item(&"x".repeat(500), "pending"); 100]});
    assert!(desk.call("todo", items).await.is_ok());
}

#[tokio::test]
async fn a_resource_of_another_form_is_no_list() {
    let desk = Desk::new();
    let other = BTreeMap::from([("todo".to_owned(), json!({"other": 1}))]);
    desk.environment.change_resources(other).unwrap();
    assert_eq!(desk.call("todo", json!({})).await.unwrap(), "The list is empty.");
}
