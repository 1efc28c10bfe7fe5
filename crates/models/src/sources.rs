//! The sources of a response. Some protocols repeat them during a stream, so each is retained once.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::fault::Fault;
use super::room::Room;
use values::json::RawJson;
use values::message::Citation;

/// The sources that a completion has named.
#[derive(Debug, Default)]
pub(super) struct Sources(HashSet<RawJson>);

impl Sources {
    /// Returns the new sources, and takes room for them.
    pub(super) fn take_new<'a>(
        &mut self,
        sources: impl IntoIterator<Item = &'a RawValue>,
        room: &mut Room,
    ) -> Result<Vec<Citation>, Fault> {
        let mut new = Vec::new();
        for source in sources {
            if self.0.contains(source.get()) {
                continue;
            }
            room.take(1)?;
            let source = RawJson::new(source.get());
            self.0.insert(source.clone());
            new.push(Citation(source));
        }
        Ok(new)
    }
}
