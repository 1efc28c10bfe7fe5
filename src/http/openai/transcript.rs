//! The items of a session: reads the runs that have made them.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::finished::settings_of;
use crate::http::auth::Call;
use crate::http::faces::openai::ids::{ItemId, parse_item_id};
use crate::http::faces::openai::item_list::{ItemList, Window};
use crate::http::faces::openai::removal::{parts_of, without};
use crate::http::problem::Problem;
use crate::run::read::{Passage, PassageRuns, passage_runs, passages_of};
use tasks::off_thread::by_size;
use values::ids::SessionId;
use values::json::{Value, weight};
use values::message::Message;
use values::session::Bundle;

/// How many passages are read at the same time.
const AT_ONCE: usize = 8;

/// A session as clients see it.
#[derive(Debug)]
pub(super) struct Transcript {
    /// The session with all its messages.
    pub(super) bundle: Arc<Bundle>,
    /// Its passages, oldest first.
    passages: Vec<Arc<Passage>>,
}

/// An item of a session.
#[derive(Debug)]
pub(super) struct FoundItem {
    /// The item as JSON.
    pub(super) body: Value,
    id: ItemId,
    passage: Arc<Passage>,
    runs: Option<PassageRuns>,
}

impl Transcript {
    /// Reads a session; `None` if there is none.
    pub(super) async fn of_session(call: &Call, session_id: SessionId) -> Result<Option<Self>, Problem> {
        let bundle = call.api.runs.sessions.whole_bundle(&call.tenant, session_id).await?;
        Ok(bundle.map(|bundle| Self {
            passages: passages_of(&bundle).into_iter().map(Arc::new).collect(),
            bundle,
        }))
    }

    /// Lists the items that a client asks for. Reads only the runs that made them.
    pub(super) async fn list(&self, call: &Call, window: &Window) -> Result<ItemList, Problem> {
        let mut passages = self.passages.clone();
        if let Some(after) = &window.after {
            let Some(found) = self.find(call, after).await? else {
                return Ok(ItemList::new(Vec::new()));
            };
            let is_found = |passage: &Arc<Passage>| Arc::ptr_eq(passage, &found.passage);
            let at = passages.iter().position(is_found).unwrap_or_default();
            if window.is_ascending {
                passages.drain(..at);
            } else {
                passages.truncate(at + 1);
            }
        }
        if !window.is_ascending {
            passages.reverse();
        }
        let mut items = Vec::new();
        for passages in passages.chunks(AT_ONCE) {
            let read = passages.iter().map(|passage| read(call, passage));
            for (mut read, _) in try_join_all(read).await? {
                if !window.is_ascending {
                    read.reverse();
                }
                items.append(&mut read);
            }
            if window.is_filled_by(&items) {
                break;
            }
        }
        Ok(window.list(items))
    }

    /// Finds an item.
    pub(super) async fn find(&self, call: &Call, id: &str) -> Result<Option<FoundItem>, Problem> {
        let Some(item_id) = parse_item_id(id) else {
            return Ok(None);
        };
        for passage in self.passages.iter().filter(|passage| passage.may_have(item_id)) {
            let (items, runs) = read(call, passage).await?;
            if let Some(body) = items.into_iter().find(|item| item["id"] == id) {
                return Ok(Some(FoundItem {
                    body,
                    id: item_id,
                    passage: Arc::clone(passage),
                    runs,
                }));
            }
        }
        Ok(None)
    }

    /// Returns how many messages stay as they are without an item, from the first on, and the
    /// messages after those.
    pub(super) fn without(&self, found: &FoundItem) -> Option<(usize, Vec<Arc<Message>>)> {
        let parts = parts_of(&found.passage, found.runs.as_ref(), found.id);
        without(&self.bundle.history, &parts)
    }
}

/// Reads the items of a passage, oldest first, with the runs that made them.
async fn read(call: &Call, passage: &Arc<Passage>) -> Result<(Vec<Value>, Option<PassageRuns>), Problem> {
    let runs = passage_runs(&call.api.runs, &call.tenant, passage).await?;
    let bytes = weight(&passage.messages) as u64;
    let (passage, settings) = (Arc::clone(passage), settings_of(call));
    let make = move || (passage.items(runs.as_ref(), &settings), runs);
    Ok(by_size(&call.tenant, bytes, make).await)
}
