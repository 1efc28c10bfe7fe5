//! Merges the environment of a session into the environment of another session, over their common
//! ancestor.
//!
//! Files are merged as `workspace/merge.rs` says, variables and resources one by one. A side that
//! left something alone takes over the change of the other side.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ancestor::common_ancestor;
use super::change::with_files;
use super::child::{ChildSession, NewChild, made_before, publish_child, reserve};
use super::open::{load_base, load_states, tree_of};
use crate::run::context::RunContext;
use crate::run::refusal::{ConflictPart, EnvironmentConflict, Refusal};
use crate::run::request::RequestKey;
use store::retention::Ancestor;
use store::sessions::ConflictPolicy;
use values::clock::nanoseconds;
use values::ids::SessionId;
use values::json::Value;
use values::session::{Bundle, EnvironmentState, check_resources, check_variables};
use values::tenant::TenantId;
use workspace::{ConflictKind, MergeConflict, Merged, merge};

/// A request to merge.
#[derive(Debug, Clone)]
pub struct MergeRequest {
    /// The session that the result continues.
    pub session_id: SessionId,
    /// The session whose changes it takes over.
    pub with: SessionId,
    /// The effect of another session that continues the first one.
    pub conflict: ConflictPolicy,
    /// The idempotency key of the request.
    pub idempotency: Option<RequestKey>,
}

/// Publishes a child session of one session, with the changes of the other one.
pub async fn merge_files(ctx: &RunContext, tenant: &TenantId, request: MergeRequest) -> Result<ChildSession, Refusal> {
    let reserved = reserve(ctx, tenant, request.idempotency.as_ref()).await?;
    if let Some(earlier) = made_before(ctx, tenant, &reserved).await? {
        return Ok(earlier);
    }
    let MergeRequest { session_id, with, .. } = request;
    let base = merge_base(ctx, tenant, session_id, with).await?;
    let ours = load_base(ctx, tenant, session_id).await?;
    let theirs = load_states(ctx, tenant, with).await?;
    let environment = merged(ctx, tenant, [&base, &ours, &theirs]).await?;
    let child = NewChild {
        environment: Arc::new(environment),
        merged: Some(with),
        conflict: request.conflict,
        ..NewChild::of(ours)
    };
    publish_child(ctx, tenant, &reserved, child).await
}

/// Reads the common ancestor. It must be retained, since a removed session has no files.
async fn merge_base(ctx: &RunContext, tenant: &TenantId, one: SessionId, other: SessionId) -> Result<Bundle, Refusal> {
    let ancestor = common_ancestor(ctx, tenant, one, other).await?;
    let states = match &ancestor {
        Ancestor::Retained(head) => ctx.store.states_load(tenant, head.session_id).await?,
        Ancestor::Removed(_) => None,
    };
    states.ok_or(Refusal::RemovedAncestor {
        session_id: ancestor.session_id(),
    })
}

/// Merges the base, ours and theirs, or returns everything that can't be merged.
async fn merged(ctx: &RunContext, tenant: &TenantId, bundles: [&Bundle; 3]) -> Result<EnvironmentState, Refusal> {
    let states = bundles.map(|bundle| &*bundle.environment);
    let [base, ours, theirs] = states.map(|state| tree_of(ctx, tenant, state));
    let mut conflicts = Vec::new();
    let variables = merge_values(
        states.map(|state| &state.variables),
        ConflictPart::Variables,
        &mut conflicts,
    );
    let resources = merge_values(
        states.map(|state| &state.resources),
        ConflictPart::Resources,
        &mut conflicts,
    );
    let tree = match merge(&base, &ours, &theirs).await? {
        Merged::Clean(tree) if tree.is_same(&theirs) => Some(tree),
        Merged::Clean(tree) => Some(tree.changed_now(&ours, nanoseconds(ctx.clock.now())).await?),
        Merged::Conflicts(found) => {
            conflicts.splice(..0, found.into_iter().map(file_conflict));
            None
        }
    };
    let Some(tree) = tree.filter(|_| conflicts.is_empty()) else {
        return Err(Refusal::MergeConflicts(conflicts));
    };
    check_variables(&variables).map_err(|words| Refusal::invalid("with", format!("together, {words}")))?;
    check_resources(&resources).map_err(|words| Refusal::invalid("with", format!("together, {words}")))?;
    let [base, ours, theirs] = states;
    let merged = EnvironmentState {
        variables,
        resources,
        workspace: one_of(&base.workspace, &ours.workspace, &theirs.workspace).clone(),
        shell: one_of(&base.shell, &ours.shell, &theirs.shell).clone(),
        other: one_of(&base.other, &ours.other, &theirs.other).clone(),
    };
    Ok(with_files(merged, &tree.save().await?))
}

/// Merges values by their names. Values that both sides set differently are conflicts.
fn merge_values(
    [base, ours, theirs]: [&BTreeMap<String, Value>; 3],
    part: ConflictPart,
    conflicts: &mut Vec<EnvironmentConflict>,
) -> BTreeMap<String, Value> {
    let mut merged = ours.clone();
    let only_base = base.keys().filter(|name| !theirs.contains_key(*name));
    for name in theirs.keys().chain(only_base) {
        let [before, ours, theirs] = [base, ours, theirs].map(|values| values.get(name));
        if theirs == before || theirs == ours {
            continue;
        }
        if ours == before {
            match theirs {
                Some(value) => merged.insert(name.clone(), value.clone()),
                None => merged.remove(name),
            };
            continue;
        }
        let kind = match (before, ours, theirs) {
            (None, ..) => ConflictKind::BothAdded,
            (Some(_), Some(_), Some(_)) => ConflictKind::BothChanged,
            _ => ConflictKind::ChangedAndDeleted,
        };
        let name = name.clone();
        conflicts.push(EnvironmentConflict { part, name, kind });
    }
    merged
}

/// Returns theirs if only that has changed, and otherwise ours.
fn one_of<'a, T: PartialEq>(base: &T, ours: &'a T, theirs: &'a T) -> &'a T {
    if ours == base { theirs } else { ours }
}

fn file_conflict(MergeConflict { path, kind }: MergeConflict) -> EnvironmentConflict {
    EnvironmentConflict {
        part: ConflictPart::Files,
        name: path.as_str().to_owned(),
        kind,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(pairs: &[(&str, i64)]) -> BTreeMap<String, Value> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect()
    }

    #[test]
    fn values_are_merged_one_by_one() {
        let base = values(&[
            ("same", 1),
            ("ours", 1),
            ("theirs", 1),
            ("both", 1),
            ("gone", 1),
            ("lost", 1),
        ]);
        let ours = values(&[
            ("same", 1),
            ("ours", 2),
            ("theirs", 1),
            ("both", 3),
            ("gone", 1),
            ("new", 7),
        ]);
        let theirs = values(&[
            ("same", 1),
            ("ours", 1),
            ("theirs", 2),
            ("both", 3),
            ("lost", 1),
            ("newer", 8),
        ]);
        let mut conflicts = Vec::new();
        let merged = merge_values([&base, &ours, &theirs], ConflictPart::Variables, &mut conflicts);
        let expected = values(&[
            ("same", 1),
            ("ours", 2),
            ("theirs", 2),
            ("both", 3),
            ("new", 7),
            ("newer", 8),
        ]);
        assert_eq!((merged, conflicts), (expected, Vec::new()));
    }

    #[test]
    fn values_that_both_sides_changed_are_conflicts() {
        let base = values(&[("changed", 1), ("deleted", 1), ("kept", 1)]);
        let ours = values(&[("changed", 2), ("kept", 2), ("added", 1)]);
        let theirs = values(&[("changed", 3), ("deleted", 2), ("added", 2)]);
        let mut conflicts = Vec::new();
        merge_values([&base, &ours, &theirs], ConflictPart::Resources, &mut conflicts);
        let found: Vec<_> = conflicts
            .iter()
            .map(|found| (found.name.as_str(), found.kind))
            .collect();
        assert_eq!(
            found,
            [
                ("added", ConflictKind::BothAdded),
                ("changed", ConflictKind::BothChanged),
                ("deleted", ConflictKind::ChangedAndDeleted),
                ("kept", ConflictKind::ChangedAndDeleted),
            ]
        );
    }
}
