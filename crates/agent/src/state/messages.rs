//! The messages of a request.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use values::message::Message;
use values::session::{Fold, RequestPrefix, Total};

/// The messages of a request. A copy costs the same at any length.
#[derive(Clone, Default)]
pub struct Messages {
    /// The messages with which later requests begin as well.
    prefix: Option<Arc<RequestPrefix>>,
    rest: Arc<[Arc<Message>]>,
}

impl Messages {
    /// Makes the messages of a prefix and those after it.
    pub fn after(prefix: Option<Arc<RequestPrefix>>, rest: impl IntoIterator<Item = Arc<Message>>) -> Self {
        Self {
            prefix,
            rest: rest.into_iter().collect(),
        }
    }

    /// Returns the messages with which later requests begin as well.
    pub fn prefix(&self) -> Option<&Arc<RequestPrefix>> {
        self.prefix.as_ref()
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.prefix_len() + self.rest.len()
    }

    /// Returns whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the message at the index.
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        match index.checked_sub(self.prefix_len()) {
            Some(index) => self.rest.get(index),
            None => self.prefix.as_ref()?.messages().get(index),
        }
    }

    /// Returns the last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.iter().next_back()
    }

    /// Iterates over the messages.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        let prefix = self.prefix.iter().flat_map(|prefix| prefix.messages());
        prefix.chain(self.rest.iter())
    }

    /// Returns the messages as a list.
    pub fn to_vec(&self) -> Vec<Arc<Message>> {
        self.iter().cloned().collect()
    }

    /// Computes a value from the messages. A value that an earlier request has computed is not
    /// computed again.
    pub fn fold<F: Fold>(&self, empty: F) -> F {
        let rest = self.rest.iter().map(AsRef::as_ref);
        let Some(prefix) = &self.prefix else {
            let mut value = empty;
            value.extend(rest);
            return value;
        };
        let (mut value, folded) = prefix.fold(empty);
        value.extend(prefix.iter_from(folded).chain(rest));
        value
    }

    /// Returns the sum of a size of the messages.
    pub fn total(&self, of: fn(&Message) -> u64) -> u64 {
        self.fold(Total::new(of)).total
    }

    fn prefix_len(&self) -> usize {
        self.prefix.as_ref().map_or(0, |prefix| prefix.messages().len())
    }
}

impl<T: Into<Arc<[Arc<Message>]>>> From<T> for Messages {
    fn from(messages: T) -> Self {
        let rest = messages.into();
        Self { prefix: None, rest }
    }
}

impl FromIterator<Arc<Message>> for Messages {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self::after(None, messages)
    }
}

impl Index<usize> for Messages {
    type Output = Arc<Message>;

    fn index(&self, index: usize) -> &Arc<Message> {
        match &self.prefix {
            Some(prefix) if index < prefix.messages().len() => &prefix.messages()[index],
            _ => &self.rest[index - self.prefix_len()],
        }
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        let same_prefix = match (&self.prefix, &other.prefix) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (left, right) => left.is_none() && right.is_none(),
        };
        if same_prefix {
            return self.rest == other.rest;
        }
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Messages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
