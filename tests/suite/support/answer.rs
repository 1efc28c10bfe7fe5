//! Responses of the service, read to their end.

use std::sync::LazyLock;

use agent_runtime::http::{ProblemCode, openapi};
use reqwest::{RequestBuilder, StatusCode, header};
use serde_json::Value;
use test_support::internals::INTERNALS;

/// The variable that would hold the key of a provider without one. Only the problem of that
/// provider names it.
pub(crate) const SECRET_VARIABLE: &str = "SECRET_VARIABLE";

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the code of the problem.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or("no problem").to_owned()
    }

    /// Returns the JSON of a success.
    pub(crate) fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text());
        self.json()
    }

    /// Checks a problem with a value of the request, and where that stands. An empty pointer stands
    /// for none.
    pub(crate) fn assert_problem_at(&self, code: &str, pointer: &str) {
        self.assert_problem(code);
        let error = &self.json()["errors"][0];
        assert_eq!(
            error["pointer"].as_str().unwrap_or_default(),
            pointer,
            "{}",
            self.text()
        );
    }

    /// Checks everything that all problems have in common.
    pub(crate) fn assert_problem(&self, code: &str) {
        assert_eq!(self.code(), code, "{}", self.text());
        let problem = self.json();
        let known = ProblemCode::find(code).unwrap();
        assert_eq!(self.status, known.status().as_u16());
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(problem["status"], self.status.as_u16());
        assert_eq!(problem["title"], known.title());
        assert_eq!(problem["type"], format!("/docs/problems#{code}"));
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        assert!(problem["instance"].as_str().unwrap().starts_with('/'));
        assert_ne!(problem["detail"], "");
        assert!(!self.text().contains(INTERNALS), "{}", self.text());
        let names_variable = self.text().contains(SECRET_VARIABLE);
        assert_eq!(names_variable, code == "model_not_configured", "{}", self.text());
    }
}

/// Adds a JSON body.
pub(crate) fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_string())
}

/// Sends a request and reads its response. A problem must be one that the description names for the
/// route.
pub(crate) async fn read(request: RequestBuilder) -> Answer {
    let (client, request) = request.build_split();
    let request = request.unwrap();
    let (method, path) = (
        request.method().as_str().to_lowercase(),
        request.url().path().to_owned(),
    );
    let response = client.execute(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let answer = Answer {
        status,
        headers,
        body: response.bytes().await.unwrap().to_vec(),
    };
    // A response to HEAD has no body.
    if answer.header("content-type") == "application/problem+json" && !answer.body.is_empty() {
        assert_described(&method, &path, &answer.code());
    }
    answer
}

/// Fails unless the description has the code among those of the route. Other addresses are not
/// described.
fn assert_described(method: &str, path: &str, code: &str) {
    static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(openapi()).unwrap());
    let is_here = |template: &str| {
        let (shown, asked): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        let mut parts = shown.iter().zip(&asked);
        let fits = |shown: &str, asked: &str| shown == asked || (shown.starts_with('{') && !asked.is_empty());
        shown.len() == asked.len() && parts.all(|(shown, asked)| fits(shown, asked))
    };
    let mut routes = DESCRIPTION["paths"].as_object().unwrap().iter();
    let Some((template, item)) = routes.find(|(template, _)| is_here(template)) else {
        return;
    };
    let Some(operation) = item.get(method) else { return };
    let named = operation["responses"].to_string().contains(&format!("\"{code}\""));
    assert!(
        named,
        "{method} {template} answers {code}, and the description says nothing of it"
    );
}
