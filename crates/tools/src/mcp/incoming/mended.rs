//! Mends the result of a response, part by part. A part that can't be mended is left out, or for a
//! call shown as it is.

use rmcp::model::{
    CallToolRequestMethod, ConstString as _, DiscoverRequestMethod, DiscoverResult, GetPromptRequestMethod,
    GetPromptResult, InitializeResult, InitializeResultMethod, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult,
    ListToolsRequestMethod, ListToolsResult, MetaObject, Prompt, ReadResourceRequestMethod, ReadResourceResult,
    Resource, ResourceTemplate, Tool,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::content::{block, contents, message, text_block, with_one_part};
use super::fitted::fit;
use values::json::{Object, Value};

/// The member of `_meta` with the problems, for the code that reads the result.
const LEFT_OUT: &str = "agent-runtime/left-out";
/// The most problems of a result.
const MAX_PROBLEMS: usize = 32;
/// The most characters of a name in a problem.
const MAX_NAME: usize = 128;
/// The members of the result of a call.
const OF_CALL: [&str; 5] = ["_meta", "content", "isError", "resultType", "structuredContent"];

/// The problems of a result.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    pub(super) fn add(&mut self, problem: impl Into<String>) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(problem.into());
        }
    }
}

/// Returns the parts that were left out of a result.
pub(in crate::mcp) fn left_out(meta: Option<&MetaObject>) -> Vec<String> {
    let problems = meta.and_then(|meta| meta.0.get(LEFT_OUT)).and_then(Value::as_array);
    let problems = problems.into_iter().flatten().filter_map(Value::as_str);
    problems.map(str::to_owned).collect()
}

/// Mends a response to a method. Returns its problems, which its result also has.
pub(super) fn mend(response: &mut Value, method: &str) -> Vec<String> {
    let Some(fields) = response.as_object_mut() else {
        return Vec::new();
    };
    fields.insert("jsonrpc".to_owned(), json!("2.0"));
    // JSON-RPC 1 has both, one of which is null.
    for (absent, other) in [("error", "result"), ("result", "error")] {
        if fields.get(absent).is_some_and(Value::is_null) && fields.contains_key(other) {
            fields.remove(absent);
        }
    }
    if let Some(error) = fields.get_mut("error") {
        *error = error_data(error);
        return Vec::new();
    }
    let Some(result) = fields.get_mut("result") else {
        return Vec::new();
    };
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove(LEFT_OUT);
    }
    let mut problems = Problems::default();
    mend_result(result, method, &mut problems);
    let Problems(problems) = problems;
    if let Some(fields) = result.as_object_mut()
        && !problems.is_empty()
    {
        let meta = fields.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(LEFT_OUT.to_owned(), json!(problems));
        }
    }
    problems
}

fn mend_result(result: &mut Value, method: &str, problems: &mut Problems) {
    match method {
        InitializeResultMethod::VALUE => begun::<InitializeResult>(result, problems),
        DiscoverRequestMethod::VALUE => begun::<DiscoverResult>(result, problems),
        ListToolsRequestMethod::VALUE => list::<ListToolsResult>(result, ("tools", "name"), fit::<Tool>, problems),
        ListResourcesRequestMethod::VALUE => {
            let mend = |one: &mut Value| addressed::<Resource>(one, "uri");
            list::<ListResourcesResult>(result, ("resources", "uri"), mend, problems);
        }
        ListResourceTemplatesRequestMethod::VALUE => {
            let (key, address) = ("resourceTemplates", "uriTemplate");
            let mend = |one: &mut Value| addressed::<ResourceTemplate>(one, address);
            list::<ListResourceTemplatesResult>(result, (key, address), mend, problems);
        }
        ListPromptsRequestMethod::VALUE => {
            list::<ListPromptsResult>(result, ("prompts", "name"), fit::<Prompt>, problems);
        }
        CallToolRequestMethod::VALUE => call(result, problems),
        ReadResourceRequestMethod::VALUE => {
            list::<ReadResourceResult>(result, ("contents", "uri"), |one| Ok(contents(one)), problems);
        }
        GetPromptRequestMethod::VALUE => {
            if let Some(messages) = result.get_mut("messages").and_then(Value::as_array_mut) {
                with_one_part(messages);
            }
            list::<GetPromptResult>(result, ("messages", "role"), |one| Ok(message(one)), problems);
        }
        _ => {}
    }
}

/// Mends each element of a list, and the other fields of the result. Another result stays as it is.
fn list<R: DeserializeOwned>(
    result: &mut Value,
    (key, name): (&str, &str),
    mend: impl Fn(&mut Value) -> Result<Vec<String>, String>,
    problems: &mut Problems,
) {
    let mut elements = match result.get_mut(key).map(Value::take) {
        Some(Value::Array(elements)) => elements,
        Some(element @ Value::Object(_)) => vec![element],
        Some(_) => {
            problems.add(format!("`{key}` is no list"));
            Vec::new()
        }
        None => return,
    };
    let mut index = 0;
    elements.retain_mut(|element| {
        let name = element.get(name).and_then(Value::as_str).unwrap_or_default();
        let name: String = name.chars().take(MAX_NAME).collect();
        let element_name = format!("`{key}[{index}]` {name:?}");
        index += 1;
        match mend(element) {
            Ok(parts) => {
                for part in parts {
                    problems.add(format!("a part of {element_name} is left out: {part}"));
                }
                true
            }
            Err(problem) => {
                problems.add(format!("{element_name} is left out: {problem}"));
                false
            }
        }
    });
    if let Some(list) = result.get_mut(key) {
        *list = json!([]);
    }
    rest::<R>(result, problems);
    if let Some(list) = result.get_mut(key) {
        *list = Value::Array(elements);
    }
}

/// Removes the parts of a result that the library can't read.
fn rest<R: DeserializeOwned>(result: &mut Value, problems: &mut Problems) {
    for problem in fit::<R>(result).unwrap_or_default() {
        problems.add(format!("a part of the result is left out: {problem}"));
    }
}

/// Mends a resource, or a template of resources. The address stands for a name that is missing.
fn addressed<T: DeserializeOwned>(value: &mut Value, address: &str) -> Result<Vec<String>, String> {
    if let Some(fields) = value.as_object_mut()
        && !fields.get("name").is_some_and(Value::is_string)
        && let Some(address) = fields.get(address).cloned()
    {
        fields.insert("name".to_owned(), address);
    }
    fit::<T>(value)
}

/// Mends the response that begins a connection. The name of the server is not needed. A capability
/// that can't be read stands for one without options: PHP writes `[]` for an empty object.
fn begun<R: DeserializeOwned>(result: &mut Value, problems: &mut Problems) {
    let Some(fields) = result.as_object_mut() else { return };
    let capabilities = fields.entry("capabilities").or_insert(Value::Null);
    if !capabilities.is_object() {
        // Nothing says that it has no tools.
        *capabilities = json!({"tools": {}});
    }
    for (name, capability) in capabilities.as_object_mut().into_iter().flat_map(Object::iter_mut) {
        // Some servers write `null` for missing capabilities. The list of tools shows whether it
        // does.
        let is_absent = *capability == json!(false) || capability.is_null() && name != "tools";
        if !capability.is_object() && !is_absent {
            *capability = json!({});
        }
    }
    let server = fields.entry("serverInfo").or_insert(Value::Null);
    if !server.is_object() {
        *server = json!({});
    }
    for name in ["name", "version"] {
        if !server.get(name).is_some_and(Value::is_string) {
            server[name] = json!("");
        }
    }
    rest::<R>(result, problems);
}

/// Mends the result of a call. The call was executed, so that nothing of it may be lost.
fn call(result: &mut Value, problems: &mut Problems) {
    let Some(fields) = result.as_object_mut() else {
        problems.add("the result is no object");
        *result = json!({"content": [text_block(&shown(result))]});
        return;
    };
    if is_unfinished(fields) {
        return;
    }
    fields.remove("resultType");
    if fields.get("structuredContent").is_some_and(Value::is_null) {
        fields.remove("structuredContent");
    }
    if !fields.get("_meta").is_none_or(Value::is_object) {
        fields.remove("_meta");
    }
    let is_error = fields.remove("isError").unwrap_or_default();
    let is_error = is_error.as_bool().or_else(|| is_error.as_str()?.parse().ok());
    let mut parts = match fields.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(parts)) => parts,
        Some(part) => vec![part],
    };
    for (index, part) in parts.iter_mut().enumerate() {
        if let Err(problem) = block(part) {
            problems.add(format!("`content[{index}]`: {problem}"));
        }
    }
    let others = fields.iter().filter(|(name, _)| !OF_CALL.contains(&name.as_str()));
    let others: Object = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    if parts.is_empty() && !fields.contains_key("structuredContent") && !others.is_empty() {
        problems.add("the result has no `content`");
        parts.push(text_block(&Value::Object(others).to_string()));
    }
    fields.retain(|name, _| OF_CALL.contains(&name.as_str()));
    fields.insert("content".to_owned(), Value::Array(parts));
    if let Some(is_error) = is_error {
        fields.insert("isError".to_owned(), json!(is_error));
    }
}

/// Returns whether a call needs input, or goes on as a task. A server of an older revision may give
/// these words another meaning, and has content then.
fn is_unfinished(result: &Object) -> bool {
    let is_empty = |name: &str| match result.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::Array(parts)) => parts.is_empty(),
        Some(_) => false,
    };
    let has_content = !is_empty("content") || !is_empty("structuredContent");
    match result.get("resultType").and_then(Value::as_str) {
        Some("input_required") => {
            !has_content || result.contains_key("inputRequests") || result.contains_key("requestState")
        }
        Some("task") => !has_content,
        _ => false,
    }
}

/// Returns an error as the library reads it.
fn error_data(error: &Value) -> Value {
    let code = error.get("code").and_then(Value::as_i64);
    let code = code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-32_603);
    let message = error.get("message").and_then(Value::as_str).map(str::to_owned);
    let mut data = json!({"code": code, "message": message.unwrap_or_else(|| shown(error))});
    if let Some(more) = error.get("data") {
        data["data"] = more.clone();
    }
    data
}

/// Returns a text as it is, and other values as JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mcp::incoming::message as parsed;

    /// A kind of result: the key of its list, and a good element with a name.
    type Kind = (&'static str, &'static str, fn(&str) -> Value);

    const KINDS: [Kind; 7] = [
        (
            "tools/list",
            "tools",
            |name| json!({"name": name, "inputSchema": {"type": "object"}}),
        ),
        ("resources/list", "resources", |name| json!({"uri": name, "name": name})),
        (
            "resources/templates/list",
            "resourceTemplates",
            |name| json!({"uriTemplate": name, "name": name}),
        ),
        ("prompts/list", "prompts", |name| json!({"name": name})),
        ("resources/read", "contents", |name| json!({"uri": name, "text": name})),
        (
            "prompts/get",
            "messages",
            |name| json!({"role": "user", "content": {"type": "text", "text": name}}),
        ),
        ("tools/call", "content", |name| json!({"type": "text", "text": name})),
    ];

    /// Any JSON, often with names that parts of results have.
    fn any_json() -> impl Strategy<Value = Value> {
        let names = "name type text uri inputSchema annotations icons _meta content role resource mimeType blob \
                     arguments title size";
        let names: Vec<_> = names.split(' ').collect();
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z]{0,6}".prop_map(Value::from),
            prop::sample::select(vec!["text", "image", "resource", "resource_link", "user"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, move |inner| {
            let key = prop::sample::select(names.clone()).prop_map(str::to_owned);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..6).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_list_with_one_bad_element_yields_the_others(
            kind in prop::sample::select(KINDS.to_vec()),
            bad in any_json(),
            at in 0_usize..4,
            rest in any_json(),
        ) {
            let (method, key, good) = kind;
            let mut elements: Vec<_> = ["good-1", "good-2", "good-3"].map(good).into();
            elements.insert(at, bad);
            let mut result = rest.as_object().cloned().unwrap_or_default();
            result.insert(key.to_owned(), json!(elements));
            let mut response = json!({"jsonrpc": "2.0", "id": 1, "result": result});
            mend(&mut response, method);
            let read = parsed(response.clone());
            prop_assert!(read.is_ok(), "{response:#}");
            let read = serde_json::to_value(read.unwrap()).unwrap();
            let list = read["result"][key].as_array();
            prop_assert!(list.is_some(), "{response:#}");
            let positions = ["good-1", "good-2", "good-3"].map(|name| {
                list.unwrap().iter().position(|element| element.to_string().contains(name))
            });
            prop_assert!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{response:#}");
        }
    }
}
