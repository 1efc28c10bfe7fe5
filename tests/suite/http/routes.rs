//! All routes below `/v1`, as the description has them.

use agent_runtime::http::openapi;
use reqwest::Method;
use serde_json::Value;
use store::keys::Scope;

use super::service::NOWHERE;

/// A route of the description.
pub(super) struct Route {
    pub(super) method: Method,
    template: String,
    operation: Value,
}

impl Route {
    /// Returns all routes below `/v1`, without those for the clients of other protocols, whose
    /// errors and parameters have other rules, and without the stream of changes, which never ends.
    pub(super) fn all() -> Vec<Self> {
        let description = serde_json::to_value(openapi()).unwrap();
        let paths = description["paths"].as_object().unwrap().iter();
        let routes = paths
            .filter(|(path, _)| path.starts_with("/v1/"))
            .flat_map(|(path, item)| {
                let operations = item.as_object().unwrap().iter();
                operations.map(move |(method, operation)| Self {
                    method: method.to_uppercase().parse().unwrap(),
                    template: path.clone(),
                    operation: operation.clone(),
                })
            });
        let is_of_others = |route: &Self| {
            ["openai", "ai_sdk", "ag_ui", "langgraph"].contains(&route.operation["tags"][0].as_str().unwrap())
        };
        let routes = routes.filter(|route| !is_of_others(route) && route.template != "/v1/changes");
        let routes: Vec<_> = routes.collect();
        assert!(routes.len() > 30, "{}", routes.len());
        routes
    }

    /// Returns the path with an id that nothing has as each parameter.
    pub(super) fn path(&self) -> String {
        self.path_with("", "")
    }

    /// Returns the same path with another value of one parameter.
    pub(super) fn path_with(&self, name: &str, value: &str) -> String {
        let parameters = self.parameters("path").into_iter();
        parameters.fold(self.template.clone(), |path, parameter| {
            let value = if parameter == name { value } else { NOWHERE };
            path.replace(&format!("{{{parameter}}}"), value)
        })
    }

    /// Returns the names of the parameters in the path, the query or the headers.
    pub(super) fn parameters(&self, position: &str) -> Vec<&str> {
        self.described(|parameter| parameter["in"] == position)
    }

    /// Returns the names of the parameters in the path that are ids.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.described(|parameter| parameter["in"] == "path" && parameter["schema"]["format"] == "uuid")
    }

    fn described(&self, is_wanted: impl Fn(&Value) -> bool) -> Vec<&str> {
        let parameters = self.operation["parameters"].as_array().unwrap().iter();
        let wanted = parameters.filter(|parameter| is_wanted(parameter));
        wanted.map(|parameter| parameter["name"].as_str().unwrap()).collect()
    }

    /// Returns whether the route takes a body.
    pub(super) fn has_body(&self) -> bool {
        self.operation["requestBody"].is_object()
    }

    /// Returns the scope that its callers need; `None` if any key will do.
    pub(super) fn scope(&self) -> Option<Scope> {
        let scope = self.operation["security"][0]["api_key"][0].as_str();
        scope.map(|scope| scope.parse().unwrap())
    }
}
