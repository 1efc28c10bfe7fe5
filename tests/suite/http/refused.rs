//! Helpers of the tables of bad requests.

use reqwest::RequestBuilder;
use serde_json::Value;

use crate::support::answer::read;

/// Sends a request that is shown as `shown`, and asserts that it is refused with the code, and with
/// the pointer of its first error; an empty one stands for none. Returns the problem.
pub(super) async fn assert_refused(request: RequestBuilder, code: &str, pointer: &str, shown: &str) -> Value {
    let answer = read(request).await;
    assert_eq!(answer.code(), code, "{shown}: {}", answer.text());
    answer.assert_problem(code);
    let problem = answer.json();
    let given = problem["errors"][0]["pointer"].as_str().unwrap_or_default();
    assert_eq!(given, pointer, "{shown}: {problem}");
    problem
}
