//! The events of runs, as readers find them. `read/follow.rs` reads them.

mod end;
mod sources;

pub(super) use self::end::EndEvents;
pub(super) use self::sources::{
    BATCH, BoardEvents, EventSource, Events, Found, StoredEvents, last_event, newest_resumption,
};
