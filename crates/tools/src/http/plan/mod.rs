//! How arguments become a request. Arguments change neither the origin nor the number of path
//! segments. No IO.

mod body;
mod path;

use std::collections::BTreeSet;

use bytes::Bytes;
use url::Url;

pub(super) use self::body::{BodyPlan, Node};
pub(super) use self::path::PathPlan;
use super::secrets::SecretValue;
use super::template::{Template, add_parameters, text_of};
use net::outgoing::{HeaderMap, HeaderName, HeaderValue, HttpMethod};
use values::json::{Object, Value};

/// The description of a request.
#[derive(Debug)]
pub(super) struct RequestPlan {
    pub(super) method: HttpMethod,
    pub(super) path: PathPlan,
    pub(super) query: Vec<(String, Slot)>,
    /// Puts the arguments that nothing else uses into the query.
    pub(super) has_rest_in_query: bool,
    pub(super) headers: Vec<(HeaderName, Slot)>,
    pub(super) body: BodyPlan,
}

/// The content of a header or of a part of the query.
#[derive(Debug)]
pub(super) enum Slot {
    /// A text. It is left out if one of its parameters is absent.
    Text(Template),
    Secret(SecretValue),
    /// An argument. It is left out if it is absent.
    Argument {
        /// The name of the property of the arguments.
        property: String,
        /// How arrays and objects are written.
        style: Style,
    },
}

/// How an argument that is an array or an object is written into the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The elements of an array are joined by commas.
    Joined,
    /// An array repeats the name.
    Repeated,
    /// An object repeats the name with each key: `filter[a]=1`.
    Deep,
    /// Everything is written as JSON.
    Json,
}

/// The parts of a request, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

impl RequestPlan {
    /// Fills in the arguments. The error is for the model.
    pub(super) fn prepare(&self, arguments: &Object) -> Result<Prepared, String> {
        let mut url = self.path.url(arguments)?;
        self.write_query(&mut url, arguments);
        let mut headers = HeaderMap::new();
        for (name, slot) in &self.headers {
            let Some(value) = slot.text(arguments) else { continue };
            let value = Some(value).filter(|value| value.is_ascii());
            let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
            let mut value = value.ok_or_else(|| {
                format!("the header {name} can't contain this value: use printable ASCII in one line")
            })?;
            value.set_sensitive(matches!(slot, Slot::Secret(_)));
            headers.insert(name.clone(), value);
        }
        let body = self.body.bytes(arguments, || self.used());
        if body.is_some() && !headers.contains_key("content-type") {
            headers.insert("content-type", HeaderValue::from_static("application/json"));
        }
        Ok(Prepared {
            url: url.into(),
            headers,
            body,
        })
    }

    /// Returns the arguments that the path, the query and the headers use.
    pub(super) fn used(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        self.path.add_parameters(&mut used);
        let slots = self.query.iter().map(|(_, slot)| slot);
        for slot in slots.chain(self.headers.iter().map(|(_, slot)| slot)) {
            match slot {
                Slot::Text(template) => add_parameters(template, &mut used),
                Slot::Argument { property, .. } => drop(used.insert(property.clone())),
                Slot::Secret(_) => (),
            }
        }
        used
    }

    /// Returns the secrets.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &SecretValue> {
        let slots = self.query.iter().map(|(_, slot)| slot);
        let slots = slots.chain(self.headers.iter().map(|(_, slot)| slot));
        slots.filter_map(|slot| match slot {
            Slot::Secret(secret) => Some(secret),
            Slot::Text(_) | Slot::Argument { .. } => None,
        })
    }

    fn write_query(&self, url: &mut Url, arguments: &Object) {
        let mut pairs = Vec::new();
        for (name, slot) in &self.query {
            match slot {
                Slot::Argument { property, style } => write_pairs(name, arguments.get(property), *style, &mut pairs),
                Slot::Text(_) | Slot::Secret(_) => pairs.extend(slot.text(arguments).map(|text| (name.clone(), text))),
            }
        }
        if self.has_rest_in_query {
            let used = self.used();
            let rest = arguments.iter().filter(|(name, _)| !used.contains(*name));
            for (name, value) in rest {
                write_pairs(name, Some(value), Style::Repeated, &mut pairs);
            }
        }
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
    }
}

impl Slot {
    fn text(&self, arguments: &Object) -> Option<String> {
        match self {
            Self::Text(template) => template.filled(arguments),
            Self::Secret(secret) => Some(secret.exposed()),
            Self::Argument { property, .. } => Some(text_of(arguments.get(property)?)?.into_owned()),
        }
    }
}

fn write_pairs(name: &str, value: Option<&Value>, style: Style, pairs: &mut Vec<(String, String)>) {
    let Some(value) = value else { return };
    match (style, value) {
        (_, Value::Null) => (),
        (Style::Json, value) => pairs.push((name.to_owned(), value.to_string())),
        (Style::Repeated, Value::Array(elements)) => {
            let texts = elements.iter().filter_map(text_of);
            pairs.extend(texts.map(|text| (name.to_owned(), text.into_owned())));
        }
        (Style::Deep, Value::Object(members)) => {
            for (key, value) in members {
                let name = format!("{name}[{key}]");
                pairs.extend(text_of(value).map(|text| (name, text.into_owned())));
            }
        }
        (_, value) => pairs.extend(text_of(value).map(|text| (name.to_owned(), text.into_owned()))),
    }
}
