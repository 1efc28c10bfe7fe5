//! Finds the part of a request that a provider refuses, by the words of its error: a position in
//! the request, a name, or the only schema of the request.

use super::classes::{has_any, is_bad_completion};
use super::details::Details;
use super::words::WORDS;
use agent::ports::{ModelError, ModelErrorClass, ModelRequest, RefusedPart, ToolSpec};
use values::model_ref::ResponseFormat;

/// Fields with the functions of a request. Gemini has a list of functions within a list of tools.
const LISTS: [&str; 3] = ["function_declarations", "functiondeclarations", "tools"];

/// Returns the part of the request that the provider refuses, if the request has it.
pub(crate) fn refused_part(error: &ModelError, request: &ModelRequest) -> Option<RefusedPart> {
    let may_refuse = match error.class {
        ModelErrorClass::Invalid => true,
        // Some servers fail at parts that they can't read.
        ModelErrorClass::Server => matches!(error.status, Some(500..=502)),
        _ => false,
    };
    let details = Details::parse(error.body.as_deref().unwrap_or_default());
    if !may_refuse || is_bad_completion(&details) {
        return None;
    }
    let field = details.field.unwrap_or_default();
    let words = format!("{field}\n{}\n{}", error.message, details.words).to_lowercase();
    if let Some(tool) = tool_at_position(&words, &request.tools).or_else(|| tool_by_name(&words, &request.tools)) {
        return Some(RefusedPart::Tool(tool.name.clone()));
    }
    if has_any(&words, &WORDS.parameters) {
        return None;
    }
    if matches!(request.response_format, ResponseFormat::JsonSchema { .. }) && has_any(&words, &WORDS.response_format) {
        return Some(RefusedPart::ResponseFormat);
    }
    let contents = [
        (RefusedPart::Pictures, &WORDS.pictures),
        (RefusedPart::Documents, &WORDS.documents),
        (RefusedPart::Reasoning, &WORDS.reasoning),
    ];
    let is_in = |part: &RefusedPart| request.messages.iter().any(|message| part.is_in(message));
    let named = contents.into_iter().filter(|(part, _)| is_in(part));
    let named = named.filter_map(|(part, names)| Some((position(&words, names)?, part)));
    let first = named.min_by_key(|(at, _)| *at).map(|(_, part)| part);
    let is_schema = has_any(&words, &WORDS.schemas);
    first.or_else(|| only_schema(request).filter(|_| is_schema && !names_function(&words)))
}

/// Returns where the first of these names begins. The word `revision` does not name `vision`.
fn position(words: &str, names: &[String]) -> Option<usize> {
    let found = names.iter().flat_map(|name| words.match_indices(name.as_str()));
    let starts = found.map(|(at, _)| at);
    starts
        .filter(|at| !words[..*at].ends_with(|c: char| c.is_ascii_alphanumeric()))
        .min()
}

/// Returns whether the words name a function in quotes. Such a name is no field of the request.
fn names_function(words: &str) -> bool {
    ["function", "tool"].iter().any(|head| {
        let mut after = words.match_indices(head).map(|(at, _)| &words[at + head.len()..]);
        after.any(|rest| rest.trim_start_matches([':', ' ']).starts_with(['\'', '"', '`']))
    })
}

/// Returns the part with the only schema of a request.
fn only_schema(request: &ModelRequest) -> Option<RefusedPart> {
    let is_format = matches!(request.response_format, ResponseFormat::JsonSchema { .. });
    let tools = request.tools.iter().map(|tool| RefusedPart::Tool(tool.name.clone()));
    let mut parts = tools.chain(is_format.then_some(RefusedPart::ResponseFormat));
    parts.next().filter(|_| parts.next().is_none())
}

/// Finds `tools[3]`, `tools.3`, `tools/3` and `tools.4.member`: lists of AWS count from 1.
fn tool_at_position<'a>(words: &str, tools: &'a [ToolSpec]) -> Option<&'a ToolSpec> {
    LISTS.iter().find_map(|list| {
        words.match_indices(list).find_map(|(at, _)| {
            let rest = words[at + list.len()..].strip_prefix(['[', '.', '/'])?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let position: usize = rest[..end].parse().ok()?;
            let position = if rest[end..].starts_with(".member") {
                position.checked_sub(1)?
            } else {
                position
            };
            // The list of Gemini has one entry for all functions.
            let is_list_of_lists = LISTS[..2].iter().any(|list| words.contains(list)) && *list == "tools";
            tools.get(position).filter(|_| !is_list_of_lists)
        })
    })
}

/// Finds the name of a tool in quotes or after the word `function` or `tool`. The longest name
/// counts.
fn tool_by_name<'a>(words: &str, tools: &'a [ToolSpec]) -> Option<&'a ToolSpec> {
    if !["schema", "function", "tool", "parameter"]
        .iter()
        .any(|word| words.contains(word))
    {
        return None;
    }
    let is_named = |tool: &&ToolSpec| {
        let name = tool.name.to_lowercase();
        words.match_indices(&name).any(|(at, _)| {
            let (before, after) = (&words[..at], &words[at + name.len()..]);
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
            let is_quoted = before.ends_with(['\'', '"', '`']) && after.starts_with(['\'', '"', '`']);
            let heads = ["function ", "function: ", "tool ", "tool: "];
            is_whole && (is_quoted || heads.iter().any(|head| before.ends_with(head)))
        })
    };
    tools.iter().filter(is_named).max_by_key(|tool| tool.name.len())
}
