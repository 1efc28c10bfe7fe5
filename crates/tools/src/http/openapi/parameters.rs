//! The parameters of an operation: their names as properties, and how they are written.

use std::collections::{BTreeMap, BTreeSet};

use super::found::Found;
use super::references::Document;
use super::schema::inlined;
use crate::http::headers::is_connection_header;
use crate::http::plan::Style;
use net::outgoing::HeaderName;
use values::json::{Object, Value};

/// Headers that OpenAPI describes elsewhere, so that parameters of these names are ignored.
const IGNORED_HEADERS: [&str; 3] = ["accept", "authorization", "content-type"];
/// The longest property name that every provider takes.
const MAX_NAME: usize = 64;

/// A parameter.
pub(super) struct Parameter {
    /// The name in the path, the query or the headers.
    pub(super) name: String,
    /// The name in the arguments.
    pub(super) property: String,
    pub(super) location: Location,
    pub(super) is_required: bool,
    pub(super) schema: Value,
    pub(super) style: Style,
}

/// Where a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    Path,
    Query,
    Header,
}

/// Reads the parameters of an operation. They replace parameters of its path with the same name.
/// Cookies are ignored.
pub(super) fn parameters<'d>(found: &Found<'d>, document: &Document<'d>) -> Result<Vec<Parameter>, String> {
    let mut written: BTreeMap<(Location, String), &'d Object> = BTreeMap::new();
    for source in [found.item, found.operation] {
        let Some(list) = source.get("parameters") else {
            continue;
        };
        for parameter in list.as_array().ok_or("its `parameters` are no list")? {
            let parameter = document.followed(parameter)?.as_object();
            let parameter = parameter.ok_or("a parameter is no object")?;
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let location = match text("in") {
                "path" => Location::Path,
                "query" => Location::Query,
                "header" => Location::Header,
                "cookie" if !is_required(parameter) => continue,
                other => return Err(format!("a parameter in {other:?} is not supported")),
            };
            let name = text("name");
            if name.is_empty() {
                return Err("a parameter has no name".to_owned());
            }
            written.insert((location, name.to_owned()), parameter);
        }
    }
    let mut taken = BTreeSet::new();
    let mut parameters = Vec::new();
    for ((location, name), parameter) in written {
        if location == Location::Header && is_ignored(&name)? {
            continue;
        }
        let mut property = property_name(&name);
        while !taken.insert(property.clone()) {
            property.push('_');
        }
        let (schema, style) =
            described(parameter, location, document).map_err(|problem| format!("{name}: {problem}"))?;
        parameters.push(Parameter {
            is_required: is_required(parameter) || location == Location::Path,
            name,
            property,
            location,
            schema,
            style,
        });
    }
    Ok(parameters)
}

/// Returns the schema of a parameter, with its description, and how its value is written.
fn described<'d>(parameter: &'d Object, location: Location, document: &Document<'d>) -> Result<(Value, Style), String> {
    let content = parameter.get("content").and_then(Value::as_object);
    let (schema, style) = match content.and_then(|content| content.values().next()) {
        Some(content) => (content.get("schema"), Style::Json),
        None => (parameter.get("schema"), style(parameter, location)?),
    };
    let mut schema = schema.map_or_else(|| Ok(Value::Object(Object::new())), |schema| inlined(schema, document))?;
    if let (Some(members), Some(description)) = (schema.as_object_mut(), parameter.get("description")) {
        members.entry("description").or_insert_with(|| description.clone());
    }
    Ok((schema, style))
}

fn style(parameter: &Object, location: Location) -> Result<Style, String> {
    let style = parameter.get("style").and_then(Value::as_str);
    let explodes = parameter.get("explode").and_then(Value::as_bool);
    match (location, style) {
        (Location::Path | Location::Header, None | Some("simple")) => Ok(Style::Joined),
        (Location::Query, None | Some("form")) if explodes == Some(false) => Ok(Style::Joined),
        (Location::Query, None | Some("form")) => Ok(Style::Repeated),
        (Location::Query, Some("deepObject")) => Ok(Style::Deep),
        (_, style) => Err(format!("the style {:?} is not supported", style.unwrap_or_default())),
    }
}

fn is_required(parameter: &Object) -> bool {
    parameter.get("required") == Some(&Value::Bool(true))
}

fn is_ignored(name: &str) -> Result<bool, String> {
    let parsed: HeaderName = name
        .parse()
        .map_err(|_| format!("{name:?} is not the name of a header"))?;
    Ok(IGNORED_HEADERS.contains(&parsed.as_str()) || is_connection_header(parsed.as_str()))
}

/// Makes a name that every provider takes: `filter[name]` becomes `filter_name_`.
fn property_name(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let allowed = name.chars().map(|c| if is_allowed(c) { c } else { '_' });
    allowed.take(MAX_NAME).collect()
}
