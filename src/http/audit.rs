//! `GET /v1/audit`: who did what to the tenant.

use std::borrow::Cow;

use axum::Json;
use serde::Serialize;
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::auth::Call;
use super::paging::{EntryNumber, ListPage, Paging};
use super::parameters::QueryParameters;
use super::problem::Problem;
use store::audit::{AuditChain, AuditEntry, AuditRecord};
use values::session::Hash;

/// An administrative act with its hashes.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct ShownRecord(AuditRecord);

/// A page of administrative acts.
type Acts = ListPage<ShownRecord>;

/// Lists administrative acts that concern the tenant, newest first.
///
/// Each act has the hash of the one before. Acts that concern the whole service are shown by
/// `agent-runtime audit list`.
#[utoipa::path(get, path = "/v1/audit", tag = "service", params(
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of acts", body = Acts),
))]
pub(super) async fn list_acts(call: Call, query: QueryParameters) -> Result<Json<Acts>, Problem> {
    let paging = Paging::<EntryNumber>::take(query)?;
    let (store, chain) = (&call.api.runs.store, AuditChain::Tenant(call.tenant.clone()));
    let last = match paging.after {
        Some(EntryNumber(after)) => after.saturating_sub(1),
        None => store.audit_head(&chain).await?.number,
    };
    // One more shows that another page follows.
    let first = last.saturating_sub(paging.limit.into()).max(1);
    let mut records = if last > 0 {
        store.audit_read(&chain, first, paging.limit + 1).await?
    } else {
        Vec::new()
    };
    records.retain(|record| record.number <= last);
    records.reverse();
    let records = records.into_iter().map(ShownRecord);
    Ok(paging.page(records.collect(), |record| EntryNumber(record.0.number)))
}

impl PartialSchema for ShownRecord {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("An administrative act with its hashes."))
            .property("entry", Ref::from_schema_name(AuditEntry::name()))
            .property("previous_hash", Hash::schema())
            .property("hash", Hash::schema())
            .required("entry")
            .required("previous_hash")
            .required("hash")
            .into()
    }
}

impl ToSchema for ShownRecord {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("AuditRecord")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((AuditEntry::name().into_owned(), AuditEntry::schema()));
        AuditEntry::schemas(schemas);
    }
}
