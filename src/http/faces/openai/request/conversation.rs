//! The bodies of requests for conversations.

use super::generation::{as_object, read_metadata};
use super::items::{Item, Opener, read_list};
use crate::http::faces::fields::Fields;
use crate::http::problem::Problem;
use values::json::{Object, Value};

/// The most items that a request adds to a conversation.
const MAX_NEW_ITEMS: usize = 20;

/// A request for a conversation, read for its form.
#[derive(Debug)]
pub(in crate::http) struct CreateConversation {
    /// The first items, each with its index.
    pub(in crate::http) items: Vec<(usize, Item)>,
    /// The key-value pairs.
    pub(in crate::http) metadata: Object,
}

impl CreateConversation {
    /// Reads a body.
    pub(in crate::http) fn read(body: Object, opener: Opener<'_>, max_items: usize) -> Result<Self, Problem> {
        let mut fields = Fields::new(body);
        let items: Vec<Value> = fields.take("items")?.unwrap_or_default();
        let metadata = read_metadata(&mut fields)?;
        fields.finish();
        Ok(Self {
            items: read_list(items, opener, max_items, "items")?,
            metadata: as_object(&metadata),
        })
    }

    /// Reads the body of a request that adds items, each with its index.
    pub(in crate::http) fn read_items(body: Object, opener: Opener<'_>) -> Result<Vec<(usize, Item)>, Problem> {
        let mut fields = Fields::new(body);
        let items: Vec<Value> = fields.required("items")?;
        fields.finish();
        read_list(items, opener, MAX_NEW_ITEMS, "items")
    }

    /// Reads the body of an update, which has metadata alone.
    pub(in crate::http) fn read_metadata(body: Object) -> Result<Object, Problem> {
        let mut fields = Fields::new(body);
        let metadata = read_metadata(&mut fields)?;
        fields.finish();
        Ok(as_object(&metadata))
    }
}
