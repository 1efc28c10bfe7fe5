//! Makes a tool of one operation: its arguments, and the plan of its request.

use std::collections::BTreeSet;

use serde_json::json;

use super::found::Found;
use super::parameters::{Location, Parameter, parameters};
use super::references::Document;
use super::schema::inlined;
use crate::http::operation::Operation;
use crate::http::plan::{BodyPlan, PathPlan, RequestPlan, Slot};
use crate::registry::checked_schema;
use net::outgoing::HeaderName;
use values::causes::with_causes;
use values::json::{Object, Value};

/// The longest description of a tool, in bytes.
const MAX_DESCRIPTION: usize = 4_000;

/// Makes the tool. The error says what is wrong with the operation.
pub(super) fn operation<'d>(
    name: String,
    base_url: &str,
    found: &Found<'d>,
    document: &Document<'d>,
) -> Result<Operation, String> {
    let parameters = parameters(found, document)?;
    let body = json_body(found, document)?;
    let body_property = free_name("body", &parameters);

    let mut properties = Object::new();
    let mut required: Vec<&str> = Vec::new();
    for parameter in &parameters {
        properties.insert(parameter.property.clone(), parameter.schema.clone());
        if parameter.is_required {
            required.push(&parameter.property);
        }
    }
    if let Some(body) = &body {
        properties.insert(body_property.clone(), body.schema.clone());
        if body.is_required {
            required.push(&body_property);
        }
    }
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let plan = RequestPlan {
        method: found.method,
        path: path(base_url, found.path, &parameters)?,
        query: slots(&parameters, Location::Query),
        has_rest_in_query: false,
        headers: headers(&parameters)?,
        body: match body {
            Some(_) => BodyPlan::Argument(body_property.clone()),
            None => BodyPlan::None,
        },
    };
    let compiled = checked_schema(&name, &schema, None).map_err(|error| with_causes(&error))?;
    Ok(Operation {
        name,
        description: description(found),
        parameters: schema,
        schema: Some(compiled),
        plan,
    })
}

/// A body of the type JSON.
struct JsonBody {
    schema: Value,
    is_required: bool,
}

fn json_body<'d>(found: &Found<'d>, document: &Document<'d>) -> Result<Option<JsonBody>, String> {
    let Some(body) = found.operation.get("requestBody") else {
        return Ok(None);
    };
    let body = document.followed(body)?;
    let is_required = body.get("required") == Some(&Value::Bool(true));
    let content = body.get("content").and_then(Value::as_object);
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind == "application/json" || kind.ends_with("+json")
    };
    let json = content.and_then(|content| content.iter().find(|(kind, _)| is_json(kind)));
    match json {
        Some((_, json)) => {
            let schema = json.get("schema").map(|schema| inlined(schema, document)).transpose()?;
            Ok(Some(JsonBody {
                schema: schema.unwrap_or_else(|| json!({})),
                is_required,
            }))
        }
        None if is_required => Err("its body is not JSON".to_owned()),
        None => Ok(None),
    }
}

fn path(base_url: &str, path: &str, parameters: &[Parameter]) -> Result<PathPlan, String> {
    let plan = PathPlan::parse(&format!("{base_url}{path}"))?;
    let in_path = |name: &str| {
        parameters
            .iter()
            .find(|parameter| parameter.location == Location::Path && parameter.name == name)
    };
    let mut used = BTreeSet::new();
    plan.add_parameters(&mut used);
    if let Some(unknown) = used.iter().find(|name| in_path(name).is_none()) {
        return Err(format!("the path has {unknown:?}, and the parameters do not"));
    }
    Ok(plan.renamed(|name| in_path(name).map_or_else(|| name.to_owned(), |parameter| parameter.property.clone())))
}

fn slots(parameters: &[Parameter], location: Location) -> Vec<(String, Slot)> {
    let chosen = parameters.iter().filter(|parameter| parameter.location == location);
    let slots = chosen.map(|parameter| {
        let slot = Slot::Argument {
            property: parameter.property.clone(),
            style: parameter.style,
        };
        (parameter.name.clone(), slot)
    });
    slots.collect()
}

fn headers(parameters: &[Parameter]) -> Result<Vec<(HeaderName, Slot)>, String> {
    let headers = slots(parameters, Location::Header).into_iter().map(|(name, slot)| {
        let parsed = name
            .parse()
            .map_err(|_| format!("{name:?} is not the name of a header"))?;
        Ok((parsed, slot))
    });
    headers.collect()
}

fn free_name(name: &str, parameters: &[Parameter]) -> String {
    let mut name = name.to_owned();
    while parameters.iter().any(|parameter| parameter.property == name) {
        name.push('_');
    }
    name
}

fn description(found: &Found<'_>) -> String {
    let text = |key: &str| found.operation.get(key).and_then(Value::as_str).map(str::trim);
    let texts = [text("summary"), text("description")].into_iter().flatten();
    let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
    let mut description = match texts.as_slice() {
        [] => found.id(),
        texts => texts.join("\n\n"),
    };
    description.truncate(description.floor_char_boundary(MAX_DESCRIPTION));
    description
}
