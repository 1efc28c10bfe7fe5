//! `GET /v1/approvals`: the runs that wait for answers.

use axum::http::HeaderValue;
use axum::response::{IntoResponse as _, Response};

use super::auth::Call;
use super::in_flight::{reading, respond_with};
use super::paging::{ListPage, PAGE_BYTES, Paging};
use super::parameters::{QueryParameters, invalid};
use super::problem::Problem;
use agent::record::{ApprovalView, ThreadName};
use store::runs::{Answerer, WaitingFilter};
use tasks::off_thread::by_size;
use values::ids::RunId;

/// The header with the number of runs that match the filter.
const TOTAL: &str = "X-Total";
/// The most runs that are counted.
const MAX_TOTAL: u32 = 1_000;

/// A page of waiting runs.
type Approvals = ListPage<ApprovalView>;

/// Lists the waiting runs whose open calls a person answers and that have not expired, newest
/// first. A page may have fewer runs than its limit: it ends where it has many bytes, and leaves
/// out runs that are answered while it is read.
#[utoipa::path(get, path = "/v1/approvals", tag = "runs", params(
    ("agent" = Option<String>, Query, description = "Only of this agent"),
    ("thread" = Option<ThreadName>, Query, description = "Only runs that moved this thread to their sessions"),
    ("kind" = Option<String>, Query, pattern = "^client$", description = "`client`: the runs with open calls that the caller's program executes, in place of those that a person answers"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of waiting runs", body = Approvals, headers(("X-Total" = u64))),
))]
pub(super) async fn list_approvals(call: Call, mut query: QueryParameters) -> Result<Response, Problem> {
    let filter = WaitingFilter {
        answerer: take_answerer(&mut query)?,
        now: call.api.runs.clock.now(),
        agent: query.text("agent")?,
        thread: query.parsed("thread")?,
    };
    let paging = Paging::take(query)?;
    let counting = call.api.runs.store.waiting_count(&call.tenant, &filter, MAX_TOTAL);
    let total = [(TOTAL, HeaderValue::from(counting.await?))];
    let page = read_page(&call, &filter, &paging).await?;
    Ok((total, page).into_response())
}

/// Reads a page and responds with it. Takes room for the outputs of its runs before it reads these
/// outputs and no others.
async fn read_page(call: &Call, filter: &WaitingFilter, paging: &Paging<RunId>) -> Result<Response, Problem> {
    let (store, tenant, now) = (&call.api.runs.store, &call.tenant, filter.now);
    let sizes = store.waiting_sizes(tenant, filter, paging.one_more()).await?;
    let part = Part::new(sizes, paging.limit);
    let cost = reading(part.bytes).max(PAGE_BYTES);
    let room = call.api.in_flight.take_soon(tenant, cost).await?;
    let runs = store.waiting_list(tenant, &part.run_ids).await?;
    let show = move || {
        let shown = runs.into_iter();
        let shown = shown.filter_map(|run| ApprovalView::new(run, PAGE_BYTES, now));
        shown.collect::<Vec<_>>()
    };
    let shown = by_size(tenant, part.bytes, show).await;
    respond_with(room, Approvals::with_cursor(shown, part.next().as_ref())).await
}

/// The part of a list that one page shows.
#[derive(Debug)]
struct Part {
    /// Its runs, newest first.
    run_ids: Vec<RunId>,
    /// Whether older runs follow.
    has_next: bool,
    /// The bytes of the outputs of its runs as JSON.
    bytes: u64,
}

impl Part {
    /// Takes as many runs as a page has, up to the one that reaches its bytes.
    fn new(sizes: Vec<(RunId, u64)>, limit: u32) -> Self {
        let (mut run_ids, mut bytes) = (Vec::new(), 0);
        let mut sizes = sizes.into_iter();
        while run_ids.len() < limit as usize
            && bytes < PAGE_BYTES as u64
            && let Some((run_id, size)) = sizes.next()
        {
            run_ids.push(run_id);
            bytes += size;
        }
        Self {
            run_ids,
            has_next: sizes.next().is_some(),
            bytes,
        }
    }

    /// Returns the key after which the next page begins.
    fn next(&self) -> Option<RunId> {
        self.run_ids.last().copied().filter(|_| self.has_next)
    }
}

/// Takes the parameter `kind`.
fn take_answerer(query: &mut QueryParameters) -> Result<Answerer, Problem> {
    match query.text("kind")?.as_deref() {
        None => Ok(Answerer::Person),
        Some("client") => Ok(Answerer::Client),
        Some(_) => {
            let words = "not `client`; without `kind`, the list has all runs that a person answers";
            Err(invalid("kind", words))
        }
    }
}
