//! Items of earlier responses that a request names by their ids.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;

use super::body::{no_response, opener};
use super::finished::stored_response;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::ids::{parse_item_id, response_id};
use crate::http::faces::openai::request::{Item, read_input, shortened};
use crate::http::problem::Problem;
use values::ids::RunId;
use values::json::{Value, weight};
use values::session::OpenCallKind;

/// How many responses are read at the same time.
const AT_ONCE: usize = 8;

/// Replaces references by the items that they name. An item that a known response does not have is
/// left out: a takeover of its run may have discarded it after a client had read it.
pub(super) async fn resolve(call: &Call, items: Vec<(usize, Item)>) -> Result<Vec<(usize, Item)>, Problem> {
    let mut runs = BTreeMap::new();
    let mut named = BTreeSet::new();
    for (index, item) in &items {
        if let Item::Reference { id } = item {
            let known = parse_item_id(id).ok_or_else(|| no_item(*index, id))?;
            // The index of its first reference.
            runs.entry(known.run_id).or_insert(*index);
            named.insert(id.clone());
        }
    }
    if runs.is_empty() {
        return Ok(items);
    }
    let runs: Vec<_> = runs.into_iter().collect();
    let mut found = BTreeMap::new();
    for runs in runs.chunks(AT_ONCE) {
        let reads = runs
            .iter()
            .map(|(run_id, index)| items_of(call, *run_id, *index, &named));
        found.extend(try_join_all(reads).await?.into_iter().flatten());
    }
    let mut left = call.api.limits.max_body_bytes;
    let mut resolved = Vec::with_capacity(items.len());
    for (index, item) in items {
        let Item::Reference { id } = &item else {
            resolved.push((index, item));
            continue;
        };
        if let Some(named) = found.get(id) {
            // As if the client had sent the item itself.
            left = left.checked_sub(weight(named)).ok_or_else(|| too_large(index))?;
            let read = read_input(Value::Array(vec![named.clone()]), opener(call), 1)?;
            resolved.extend(read.into_iter().map(|(_, item)| (index, item)));
        }
    }
    Ok(resolved)
}

/// Returns the calls of a run that wait for approvals, by the ids of the items that ask for them.
pub(super) async fn approvals_of(call: &Call, run_id: Option<RunId>) -> Result<BTreeMap<String, String>, Problem> {
    let Some(run_id) = run_id else {
        return Ok(BTreeMap::new());
    };
    let response = stored_response(call, run_id).await?;
    let response = response.ok_or_else(|| no_response(&response_id(run_id)))?;
    let open = response.record.open_calls.iter();
    let calls = open.filter(|open| open.kind == OpenCallKind::Approval);
    let requests = response
        .output()
        .iter()
        .filter(|item| item["type"] == "mcp_approval_request");
    let ids = requests.filter_map(|item| item["id"].as_str().map(str::to_owned));
    // Both are in the order of the calls.
    Ok(ids.zip(calls.map(|open| open.call_id.clone())).collect())
}

/// Returns the named items of a response by their ids.
async fn items_of(
    call: &Call,
    run_id: RunId,
    index: usize,
    named: &BTreeSet<String>,
) -> Result<Vec<(String, Value)>, Problem> {
    let response = stored_response(call, run_id).await?;
    let response = response.ok_or_else(|| no_item(index, &response_id(run_id)))?;
    let items = response.output().iter();
    let wanted = items.filter_map(|item| Some((named.get(item["id"].as_str()?)?.clone(), item.clone())));
    Ok(wanted.collect())
}

fn too_large(index: usize) -> Problem {
    let words = "the items that the input names are larger than a request may be";
    Problem::of_field(ProblemCode::BodyTooLarge, format!("/input/{index}/id"), words)
}

fn no_item(index: usize, id: &str) -> Problem {
    let words = format!("Item with id '{}' not found.", shortened(id));
    Problem::of_field(ProblemCode::RunNotFound, format!("/input/{index}/id"), words)
}
