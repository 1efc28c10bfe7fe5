//! The JSON body of a request.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::super::template::{Template, add_parameters};
use values::json::{Object, Value};

/// The content of a body.
#[derive(Debug)]
pub(in crate::http) enum BodyPlan {
    /// There is no body.
    None,
    /// An object of the arguments that nothing else uses.
    Rest,
    /// A JSON value with parameters.
    Template(Node),
    /// One argument; no body if it is absent.
    Argument(String),
}

/// A JSON value with parameters.
#[derive(Debug)]
pub(in crate::http) enum Node {
    Literal(Value),
    Text(Template),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl BodyPlan {
    /// Returns the bytes of the body. `used` returns the arguments that the rest of the request
    /// uses.
    pub(super) fn bytes(&self, arguments: &Object, used: impl FnOnce() -> BTreeSet<String>) -> Option<Bytes> {
        let value = match self {
            Self::None => return None,
            Self::Rest => {
                let used = used();
                let rest = arguments.iter().filter(|(name, _)| !used.contains(*name));
                Value::Object(rest.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            Self::Template(node) => node.filled(arguments).unwrap_or_default(),
            Self::Argument(name) => arguments.get(name)?.clone(),
        };
        Some(value.to_string().into())
    }
}

impl Node {
    /// Parses a value. The error says what is wrong.
    pub(in crate::http) fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse(text)?),
            Value::Array(elements) => Self::Array(elements.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), Self::parse(value)?)));
                Self::Object(members.collect::<Result<_, String>>()?)
            }
            other => Self::Literal(other.clone()),
        })
    }

    /// Adds the parameters to the used ones.
    pub(in crate::http) fn add_parameters(&self, used: &mut BTreeSet<String>) {
        match self {
            Self::Literal(_) => (),
            Self::Text(template) => add_parameters(template, used),
            Self::Array(elements) => elements.iter().for_each(|element| element.add_parameters(used)),
            Self::Object(members) => members.iter().for_each(|(_, member)| member.add_parameters(used)),
        }
    }

    /// Fills in the arguments. A text that is one parameter becomes its value, of any type. A part
    /// with an absent argument is left out.
    fn filled(&self, arguments: &Object) -> Option<Value> {
        Some(match self {
            Self::Literal(value) => value.clone(),
            Self::Text(template) => match template.only_parameter() {
                Some(name) => arguments.get(name)?.clone(),
                None => Value::String(template.filled(arguments)?),
            },
            Self::Array(elements) => elements
                .iter()
                .filter_map(|element| element.filled(arguments))
                .collect(),
            Self::Object(members) => {
                let filled = members.iter();
                let filled = filled.filter_map(|(name, member)| Some((name.clone(), member.filled(arguments)?)));
                Value::Object(filled.collect())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_filled_with_values_and_can_t_be_broken_by_them() {
        let node = Node::parse(&json!({
            "who": {"name": "{name}", "tags": ["fixed", "{tag}", "{missing}"]},
            "text": "Hello {name}!",
            "left_out": "{missing}",
            "also": "a {missing}",
            "count": "{count}",
            "fixed": [1, true, null],
        }));
        let arguments = json!({"name": "\", \"admin\": true, \"x\": \"", "tag": {"deep": 1}, "count": 3});
        assert_eq!(
            node.unwrap().filled(arguments.as_object().unwrap()).unwrap(),
            json!({
                "who": {"name": "\", \"admin\": true, \"x\": \"", "tags": ["fixed", {"deep": 1}]},
                "text": "Hello \", \"admin\": true, \"x\": \"!",
                "count": 3,
                "fixed": [1, true, null],
            })
        );
        assert!(Node::parse(&json!({"a": ["{"]})).is_err());
    }
}
