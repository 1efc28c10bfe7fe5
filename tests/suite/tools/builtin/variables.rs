//! `variables_get` and `variables_set`.

use serde_json::json;

use super::Desk;
use crate::support::text::assert_contains;

#[tokio::test]
async fn variables_are_set_read_and_removed() {
    let desk = Desk::new();
    let get = async |arguments| desk.call("variables_get", arguments).await;
    assert_eq!(get(json!({})).await.unwrap(), "{}");
    assert_contains!(
        get(json!({"names": ["a"]})).await.unwrap_err(),
        "no variable is named \"a\"; there are no"
    );
    let values = json!({"city": "Bergen", "count": 3, "list": [1, {"a": null}]});
    let set = desk.call("variables_set", json!({"variables": values})).await.unwrap();
    assert_eq!(set, "Set: city, count, list.");
    assert_eq!(get(json!({})).await.unwrap(), values.to_string());
    assert_eq!(get(json!({"names": ["count"]})).await.unwrap(), r#"{"count":3}"#);
    let changed = desk
        .call("variables_set", json!({"variables": {"city": null, "count": 4}}))
        .await
        .unwrap();
    assert_eq!(changed, "Set: count. Removed: city.");
    assert_eq!(
        desk.environment.variables().keys().collect::<Vec<_>>(),
        ["count", "list"]
    );
    let error = get(json!({"names": ["list", "cuont"]})).await.unwrap_err();
    assert_eq!(error, "no variable is named \"cuont\"; did you mean \"count\"?");
    assert_contains!(
        get(json!({"names": ["zzz"]})).await.unwrap_err(),
        "the variables are count, list"
    );
}

#[tokio::test]
async fn limits_are_errors_and_change_nothing() {
    let desk = Desk::new();
    let large = json!({"variables": {"a": "x".repeat(300 << 10)}});
    let error = desk.call("variables_set", large).await.unwrap_err();
    assert_eq!(
        error,
        "the variables could not be set: at most 262144 bytes of JSON are allowed"
    );
    for variables in [json!({}), json!({"": 1}), json!({"x".repeat(129): 1}), json!([1])] {
        let execution = desk.execution("variables_set", &json!({"variables": variables})).await;
        assert_eq!(execution.error.unwrap().code, "tool_arguments_invalid", "{variables}");
    }
    assert_eq!(desk.environment.revision(), 0);
}
