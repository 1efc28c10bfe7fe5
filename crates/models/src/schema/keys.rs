//! Replaces names of members that providers refuse, and gives calls the original names back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use agent::ports::{ModelEvent, ModelStream};
use values::json::Value;
use values::message::ContentPart;

/// The most characters of a name.
const MAX_NAME: usize = 64;

/// The names on the wire of members whose own names are refused. No two members of a schema share a
/// name, so a name alone identifies its member.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// Finds the members of a schema, however deep, whose names are refused. Anthropic accepts the
    /// fewest: 1 to 64 letters, digits and `_.-`. All protocols get these, since a gateway may pass
    /// a request on to any server.
    pub(super) fn of(schema: &Value) -> Self {
        let mut all = BTreeSet::new();
        collect(schema, &mut all);
        let mut names = BTreeMap::new();
        let refused: Vec<_> = all
            .iter()
            .filter(|name| !is_accepted(name))
            .map(|name| (*name).clone())
            .collect();
        let mut used: BTreeSet<String> = all.into_iter().cloned().collect();
        for name in refused {
            let fitting = |c: char| if is_plain(c) { c } else { '_' };
            let base: String = name.chars().map(fitting).take(MAX_NAME - 4).collect();
            let base = if base.is_empty() { "_".to_owned() } else { base };
            let numbered = (2..=used.len() + 2).map(|number| format!("{base}_{number}"));
            let free = std::iter::once(base.clone())
                .chain(numbered)
                .find(|name| !used.contains(name));
            if let Some(free) = free.filter(|free| is_accepted(free)) {
                used.insert(free.clone());
                names.insert(name, free);
            }
        }
        Self(names)
    }

    /// Returns the name on the wire.
    pub(super) fn of_member<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

fn is_accepted(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

fn collect<'a>(schema: &'a Value, names: &mut BTreeSet<&'a String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(fields) => {
            if let Some(Value::Object(members)) = fields.get("properties") {
                names.extend(members.keys());
            }
            fields.values().for_each(|value| collect(value, names));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The original names of members by the names on the wire, for each tool that has any.
#[derive(Debug, Clone)]
pub(crate) struct CallNames(Arc<BTreeMap<String, BTreeMap<String, String>>>);

impl CallNames {
    /// Collects the names of the tools.
    pub(super) fn new(names: BTreeMap<String, Names>) -> Self {
        let replaced = names.into_iter().filter(|(_, names)| !names.0.is_empty());
        let original = replaced.map(|(tool, names)| {
            let names = names.0.into_iter().map(|(name, sent)| (sent, name));
            (tool, names.collect())
        });
        Self(Arc::new(original.collect()))
    }

    /// Gives the calls of a completion the original names back. Their arguments are passed on at
    /// once, when they are whole.
    pub(crate) fn restored(self, events: ModelStream) -> ModelStream {
        if self.0.is_empty() {
            return events;
        }
        let mut held = BTreeMap::new();
        let restored = events.flat_map(move |event| {
            let passed_on = match event {
                Ok(event) => self.pass_on(event, &mut held).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(passed_on)
        });
        restored.boxed()
    }

    fn pass_on(&self, event: ModelEvent, held: &mut BTreeMap<usize, (String, String)>) -> Vec<ModelEvent> {
        match event {
            ModelEvent::ToolCallStarted { index, ref name, .. } if self.0.contains_key(name) => {
                held.insert(index, (name.clone(), String::new()));
                vec![event]
            }
            ModelEvent::ToolCallDelta { index, ref arguments } => match held.get_mut(&index) {
                Some((_, text)) => {
                    text.push_str(arguments);
                    Vec::new()
                }
                None => vec![event],
            },
            ModelEvent::AttemptFailed { .. } => {
                held.clear();
                vec![event]
            }
            ModelEvent::Completed(mut response) => {
                let whole = std::mem::take(held)
                    .into_iter()
                    .filter(|(_, (_, text))| !text.is_empty());
                let mut events: Vec<_> = whole
                    .map(|(index, (name, text))| ModelEvent::ToolCallDelta {
                        index,
                        arguments: self.with_names(&name, text),
                    })
                    .collect();
                for part in &mut response.content {
                    if let ContentPart::ToolCall(call) = part {
                        call.arguments = self.with_names(&call.name, std::mem::take(&mut call.arguments));
                    }
                }
                events.push(ModelEvent::Completed(response));
                events
            }
            event => vec![event],
        }
    }

    /// Replaces the names of members in the text of a call's arguments. The rest stays as it is.
    fn with_names(&self, tool: &str, text: String) -> String {
        let Some(names) = self.0.get(tool) else {
            return text;
        };
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(start) = rest.find('"') {
            let (before, quoted) = rest.split_at(start);
            let end = end_of_string(quoted);
            let (string, after) = quoted.split_at(end);
            let is_name = after.trim_start().starts_with(':');
            let name: Option<String> = if is_name {
                serde_json::from_str(string).ok()
            } else {
                None
            };
            renamed.push_str(before);
            match name.and_then(|name| names.get(&name)) {
                Some(original) => renamed.push_str(&Value::from(original.as_str()).to_string()),
                None => renamed.push_str(string),
            }
            rest = after;
        }
        renamed.push_str(rest);
        renamed
    }
}

/// Returns the length of the string with which a text begins, quotes included.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
