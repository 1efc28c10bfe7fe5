//! Reduces the schemas of a request to the forms that its protocol accepts: the schemas of all
//! tools and of the response format.
//!
//! A reduced schema accepts more than the original one, and describes the lost rules in words.
//! Arguments and responses are checked against the original. Names of members that a protocol
//! refuses are replaced, and the arguments of calls get the original names back.

mod flat;
mod keys;
mod reduce;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

pub(super) use self::keys::CallNames;
use self::keys::Names;
use self::reduce::Reducer;
pub(super) use self::rules::Schemas;
use self::rules::{Otherwise, Rules};
use agent::ports::{ModelRequest, ToolSpec};
use values::json::Value;
use values::model_ref::ResponseFormat;

/// The tools of the last request, as they were and reduced. Most requests offer them again.
#[derive(Debug, Default)]
pub(super) struct LastTools(Mutex<Option<(Arc<[ToolSpec]>, Reduction)>>);

/// Reduced tools, and the names of members that their calls get back.
#[derive(Debug, Clone)]
struct Reduction {
    tools: Arc<[ToolSpec]>,
    names: CallNames,
}

/// Returns the request with reduced schemas, and the names of members that its calls get back.
pub(super) fn reduced(request: ModelRequest, schemas: Schemas, last: &LastTools) -> (ModelRequest, CallNames) {
    let Reduction { tools, names } = last.reduced(&request.tools, schemas.tools);
    (with_format(ModelRequest { tools, ..request }, schemas), names)
}

/// Returns the prompt that describes a response format; `None` for plain text.
pub(super) fn format_prompt(format: &ResponseFormat) -> Option<String> {
    const ANSWER: &str = "Give the final answer as one JSON object, with nothing before or after it.";
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some(ANSWER.to_owned()),
        ResponseFormat::JsonSchema { schema, .. } => Some(format!("{ANSWER} It fits this JSON Schema:\n{schema}")),
    }
}

impl LastTools {
    fn reduced(&self, tools: &Arc<[ToolSpec]>, rules: &Rules) -> Reduction {
        let known = self.0.lock().clone().filter(|(known, _)| Arc::ptr_eq(known, tools));
        if let Some((_, reduction)) = known {
            return reduction;
        }
        let mut names = BTreeMap::new();
        let reduced = tools.iter().map(|tool| {
            let (reduced, tool_names) = reduced_tool(tool, rules);
            names.insert(tool.name.clone(), tool_names);
            reduced
        });
        let reduction = Reduction {
            tools: reduced.collect(),
            names: CallNames::new(names),
        };
        *self.0.lock() = Some((Arc::clone(tools), reduction.clone()));
        reduction
    }
}

fn reduced_tool(tool: &ToolSpec, rules: &Rules) -> (ToolSpec, Names) {
    let names = Names::of(&tool.parameters);
    let reduced = Reducer::new(rules, &tool.parameters, &names).reduce();
    let description = described(&tool.description, reduced.note.as_deref(), rules.description);
    let tool = ToolSpec {
        description,
        parameters: reduced.schema,
        ..tool.clone()
    };
    (tool, names)
}

fn with_format(mut request: ModelRequest, schemas: Schemas) -> ModelRequest {
    let ResponseFormat::JsonSchema { schema, strict, .. } = &mut request.response_format else {
        return request;
    };
    let names = Names::default();
    let otherwise = schemas.format.otherwise;
    let mut reduced = Reducer::new(schemas.format, schema, &names).reduce();
    if otherwise == Otherwise::NotStrict && (reduced.is_loose || !*strict) {
        *strict = false;
        reduced = Reducer::new(schemas.tools, schema, &names).reduce();
    }
    if otherwise == Otherwise::Prompt && reduced.is_loose {
        let system = request.system.trim_end();
        let gap = if system.is_empty() { "" } else { "\n\n" };
        let prompt = format_prompt(&request.response_format).unwrap_or_default();
        request.system = format!("{system}{gap}{prompt}").into();
        request.response_format = ResponseFormat::Text;
        return request;
    }
    if let (Some(note), Value::Object(schema)) = (&reduced.note, &mut reduced.schema) {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = described(description, Some(note), None);
        schema.insert("description".to_owned(), Value::from(description));
    }
    *schema = reduced.schema;
    request
}

/// Joins a description and a note, within a limit of characters. The description is cut first.
fn described(description: &str, note: Option<&str>, limit: Option<usize>) -> String {
    let limit = limit.unwrap_or(usize::MAX);
    let cut = |text: &str, limit: usize| match text.char_indices().nth(limit) {
        Some(_) => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    };
    let Some(note) = note else {
        return cut(description, limit);
    };
    let note = cut(note, limit);
    let room = limit.saturating_sub(note.chars().count() + 1);
    [cut(description, room), note]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
