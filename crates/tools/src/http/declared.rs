//! Makes the tool of a request that a definition describes. No IO.

use std::collections::BTreeSet;

use serde_json::json;
use url::form_urlencoded;

use super::definition::DeclaredRequest;
use super::operation::Operation;
use super::plan::{BodyPlan, Node, PathPlan, RequestPlan, Slot};
use super::template::Template;
use crate::fault::DefinitionFault;
use net::outgoing::HttpMethod;
use values::json::{Object, Value};

/// Makes the description of a request.
pub(super) fn declared(name: &str, request: DeclaredRequest) -> Result<Operation, DefinitionFault> {
    let DeclaredRequest {
        description,
        method,
        url,
        parameters,
        body,
    } = request;
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    let path = PathPlan::parse(path).map_err(|problem| DefinitionFault::new("url", problem))?;
    let body = body_plan(method, body.as_ref())?;
    let plan = RequestPlan {
        method,
        path,
        query: query_slots(query)?,
        has_rest_in_query: matches!(body, BodyPlan::None),
        headers: Vec::new(),
        body,
    };
    Ok(Operation {
        name: name.to_owned(),
        description,
        parameters: parameters.unwrap_or_default(),
        schema: None,
        plan,
    })
}

/// Checks that the arguments have all parameters of the plan. Without a schema, all of them are
/// required texts.
pub(super) fn checked_parameters(parameters: Value, plan: &RequestPlan) -> Result<Value, DefinitionFault> {
    let fault = |problem: String| Err(DefinitionFault::new("parameters", problem));
    let mut used = plan.used();
    if let BodyPlan::Template(node) = &plan.body {
        node.add_parameters(&mut used);
    }
    if parameters.is_null() {
        let properties: Object = used
            .iter()
            .map(|name| (name.clone(), json!({"type": "string"})))
            .collect();
        return Ok(json!({
            "type": "object",
            "properties": properties,
            "required": used,
            "additionalProperties": false,
        }));
    }
    let properties = parameters.get("properties").and_then(Value::as_object);
    if let Some(unknown) = used
        .iter()
        .find(|name| !properties.is_some_and(|known| known.contains_key(*name)))
    {
        return fault(format!("the schema has no property {unknown:?}, which a template uses"));
    }
    let required = parameters.get("required").and_then(Value::as_array);
    let is_required = |name: &&String| required.is_some_and(|names| names.iter().any(|other| other == *name));
    let mut in_path = BTreeSet::new();
    plan.path.add_parameters(&mut in_path);
    if let Some(optional) = in_path.iter().find(|name| !is_required(name)) {
        return fault(format!("{optional:?} is part of the path, so it must be required"));
    }
    Ok(parameters)
}

/// Parses the query of a URL. Values may have parameters.
fn query_slots(query: &str) -> Result<Vec<(String, Slot)>, DefinitionFault> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let slots = pairs.map(|(name, value)| {
        let fault = |problem| DefinitionFault::new("url", problem);
        if name.contains(['{', '}']) {
            return Err(fault("the names of its query have no parameters".to_owned()));
        }
        let template = Template::parse(&value).map_err(fault)?;
        Ok((name.into_owned(), Slot::Text(template)))
    });
    slots.collect()
}

fn body_plan(method: HttpMethod, body: Option<&Value>) -> Result<BodyPlan, DefinitionFault> {
    let Some(body) = body else {
        let has_none = method.is_safe() || method == HttpMethod::Delete;
        return Ok(if has_none { BodyPlan::None } else { BodyPlan::Rest });
    };
    if method.is_safe() {
        let problem = format!("a request with the method {} has no body", method.name());
        return Err(DefinitionFault::new("body", problem));
    }
    let node = Node::parse(body).map_err(|problem| DefinitionFault::new("body", problem))?;
    Ok(BodyPlan::Template(node))
}
