//! Lists of items, in OpenAI's form.

use serde::Serialize;

use values::json::Value;

/// A list of items.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ItemList {
    object: &'static str,
    data: Vec<Value>,
    first_id: Value,
    last_id: Value,
    has_more: bool,
}

/// The rows of a list that a client asks for.
#[derive(Debug)]
pub(in crate::http) struct Window {
    /// The id after which the rows begin.
    pub(in crate::http) after: Option<String>,
    /// The most rows.
    pub(in crate::http) limit: usize,
    /// Whether the oldest row comes first.
    pub(in crate::http) is_ascending: bool,
}

impl ItemList {
    /// Makes a list of all items.
    pub(in crate::http) fn new(data: Vec<Value>) -> Self {
        let id = |item: Option<&Value>| item.map(|item| item["id"].clone()).unwrap_or_default();
        Self {
            object: "list",
            first_id: id(data.first()),
            last_id: id(data.last()),
            data,
            has_more: false,
        }
    }
}

impl Window {
    /// Makes the list of those items that the client asks for. `items` begin with the oldest.
    pub(in crate::http) fn of(&self, mut items: Vec<Value>) -> ItemList {
        if !self.is_ascending {
            items.reverse();
        }
        self.list(items)
    }

    /// Makes the list of those items that the client asks for. `items` have the order of the list.
    pub(in crate::http) fn list(&self, mut items: Vec<Value>) -> ItemList {
        let mut data = items.split_off(self.start(&items));
        let has_more = data.len() > self.limit;
        data.truncate(self.limit);
        ItemList {
            has_more,
            ..ItemList::new(data)
        }
    }

    /// Returns whether the list needs no more items than these, which have its order.
    pub(in crate::http) fn is_filled_by(&self, items: &[Value]) -> bool {
        items.len() > self.start(items) + self.limit
    }

    /// Returns the index of the first item of the list.
    fn start(&self, items: &[Value]) -> usize {
        let Some(after) = self.after.as_deref() else { return 0 };
        let at = items.iter().position(|item| item["id"] == after);
        at.map_or(items.len(), |at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_begins_after_an_item() {
        let all: Vec<Value> = ["a", "b", "c"].map(|id| json!({"id": id})).into();
        let window = |after: Option<&str>, is_ascending| Window {
            after: after.map(str::to_owned),
            limit: 2,
            is_ascending,
        };
        for (after, is_ascending, ids, has_more) in [
            (None, true, &["a", "b"][..], true),
            (None, false, &["c", "b"], true),
            (Some("a"), true, &["b", "c"], false),
            (Some("b"), false, &["a"], false),
            (Some("nothing"), true, &[], false),
        ] {
            let list = window(after, is_ascending).of(all.clone());
            let found: Vec<&Value> = list.data.iter().map(|item| &item["id"]).collect();
            assert_eq!((json!(found), list.has_more), (json!(ids), has_more));
            assert_eq!(list.first_id, found.first().copied().cloned().unwrap_or_default());
        }
        assert!(window(None, true).is_filled_by(&all));
        assert!(!window(Some("a"), true).is_filled_by(&all));
    }
}
