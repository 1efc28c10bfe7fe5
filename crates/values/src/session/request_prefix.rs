//! The messages with which all later requests of a session begin, and values computed from them.
//!
//! A turn extends the prefix of the turn before it and the values computed from it, for example the
//! encoded form of the messages. So its cost depends only on its new messages. The values only save
//! work: without a prefix, everything is computed again.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use parking_lot::Mutex;
use rpds::VectorSync;

use crate::message::{Message, Section};

/// The most values that a prefix retains: some sizes, and for each model an encoded form and the
/// sizes of pictures.
const MAX_FOLDS: usize = 24;
/// The most bytes of a retained value. A longer conversation computes the rest each time.
const MAX_FOLD_BYTES: usize = 8 << 20;
/// The memory of a message in the list, which shares the message itself with the history.
const SLOT: usize = 16;

/// A value that is computed from a list of messages, in their order.
pub trait Fold: Clone + Send + Sync + 'static {
    /// Returns whether the other value is computed in the same way.
    fn is_like(&self, other: &Self) -> bool;

    /// Returns whether the value can be retained after these messages: no later message may change
    /// the value of these and earlier messages. Must cost much less than to add them.
    fn settles_with<'a>(&self, _messages: impl Iterator<Item = &'a Message>) -> bool {
        true
    }

    /// Adds messages at the end of the list.
    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone);

    /// Returns the value in a form that is cheap to copy and to extend.
    #[must_use]
    fn retained(self) -> Self {
        self
    }

    /// Returns about how many bytes of memory the value takes.
    fn bytes(&self) -> usize;
}

/// The sum of a size of messages.
#[derive(Debug, Clone)]
pub struct Total {
    measure: fn(&Message) -> u64,
    /// The sum so far.
    pub total: u64,
}

impl Total {
    /// Makes the sum of no messages. `measure` returns the size of one.
    pub fn new(measure: fn(&Message) -> u64) -> Self {
        Self { measure, total: 0 }
    }
}

impl Fold for Total {
    fn is_like(&self, other: &Self) -> bool {
        ptr::fn_addr_eq(self.measure, other.measure)
    }

    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        self.total += messages.map(self.measure).sum::<u64>();
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// How the messages of a prefix were chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixChoice {
    /// The chosen sections; `None` for all.
    pub sections: Option<BTreeSet<Section>>,
    /// Whether the traces of all executions are chosen. Otherwise no trace is.
    pub has_traces: bool,
    /// The index of the summary that is the first message.
    pub summary: Option<usize>,
}

/// The first messages of the requests of a session.
#[derive(Debug)]
pub struct RequestPrefix {
    choice: PrefixChoice,
    /// The index in the history from which later messages are chosen.
    end: usize,
    messages: VectorSync<Arc<Message>>,
    folds: Mutex<Vec<Retained>>,
}

/// A value of the first messages of a prefix.
#[derive(Clone)]
struct Retained {
    value: Arc<dyn Any + Send + Sync>,
    /// The number of the messages.
    messages: usize,
    bytes: usize,
}

impl RequestPrefix {
    /// Makes an empty prefix. Messages are chosen from the index on.
    pub fn new(choice: PrefixChoice, end: usize) -> Self {
        Self {
            choice,
            end,
            messages: VectorSync::new_sync(),
            folds: Mutex::default(),
        }
    }

    /// Returns the prefix with more messages at its end, and with the values that were computed so
    /// far. Later messages are chosen from the index on.
    #[must_use]
    pub fn extended(&self, messages: impl IntoIterator<Item = Arc<Message>>, end: usize) -> Self {
        let mut all = self.messages.clone();
        for message in messages {
            all.push_back_mut(message);
        }
        Self {
            choice: self.choice.clone(),
            end,
            messages: all,
            folds: Mutex::new(self.folds.lock().clone()),
        }
    }

    /// Returns how the messages were chosen.
    pub fn choice(&self) -> &PrefixChoice {
        &self.choice
    }

    /// Returns the index in the history from which later messages are chosen.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Returns the messages.
    pub fn messages(&self) -> &VectorSync<Arc<Message>> {
        &self.messages
    }

    /// Returns about how many bytes of memory the list and the values take.
    pub fn bytes(&self) -> usize {
        let values: usize = self.folds.lock().iter().map(|retained| retained.bytes).sum();
        values + self.messages.len() * SLOT
    }

    /// Computes a value from the messages, as far as it can be retained. Returns it with the number
    /// of these messages.
    pub fn fold<F: Fold>(&self, empty: F) -> (F, usize) {
        let known = self.folds.lock().iter().find_map(|retained| retained.of_kind(&empty));
        let (mut value, counted) = known.unwrap_or((empty, 0));
        let added = self.iter_from(counted);
        if counted == self.messages.len() || !value.settles_with(added.clone()) {
            return (value, counted);
        }
        value.extend(added);
        let value = value.retained();
        if value.bytes() <= MAX_FOLD_BYTES {
            self.retain(&value);
        }
        (value, self.messages.len())
    }

    /// Iterates over the messages from a number of messages on.
    pub fn iter_from(&self, first: usize) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        (first..self.messages.len()).filter_map(|at| self.messages.get(at).map(AsRef::as_ref))
    }

    fn retain<F: Fold>(&self, value: &F) {
        let mut folds = self.folds.lock();
        folds.retain(|retained| retained.of_kind(value).is_none());
        if folds.len() == MAX_FOLDS {
            folds.remove(0);
        }
        folds.push(Retained {
            value: Arc::new(value.clone()),
            messages: self.messages.len(),
            bytes: value.bytes(),
        });
    }
}

impl Retained {
    fn of_kind<F: Fold>(&self, like: &F) -> Option<(F, usize)> {
        let value = self.value.downcast_ref::<F>().filter(|value| value.is_like(like))?;
        Some((value.clone(), self.messages))
    }
}

impl fmt::Debug for Retained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {} messages", self.bytes, self.messages)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{MessageId, UuidV7Source};
    use crate::message::Role;

    /// Counts messages, and the work of all copies.
    #[derive(Debug, Clone)]
    struct Counted {
        kind: usize,
        messages: usize,
        bytes_each: usize,
        is_final: bool,
        work: Arc<AtomicUsize>,
    }

    impl Counted {
        fn new(kind: usize) -> Self {
            Self {
                kind,
                messages: 0,
                bytes_each: 10,
                is_final: true,
                work: Arc::default(),
            }
        }
    }

    impl Fold for Counted {
        fn is_like(&self, other: &Self) -> bool {
            self.kind == other.kind
        }

        fn settles_with<'a>(&self, _: impl Iterator<Item = &'a Message>) -> bool {
            self.is_final
        }

        fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
            let added = messages.count();
            self.messages += added;
            self.work.fetch_add(added, Ordering::Relaxed);
        }

        fn bytes(&self) -> usize {
            self.messages * self.bytes_each
        }
    }

    fn messages(count: usize) -> Vec<Arc<Message>> {
        let message = |_| {
            let id = MessageId::generate(&UuidV7Source);
            Arc::new(Message::text(id, Role::User, "x", Timestamp::UNIX_EPOCH))
        };
        (0..count).map(message).collect()
    }

    fn prefix(count: usize) -> RequestPrefix {
        let choice = PrefixChoice {
            sections: None,
            has_traces: false,
            summary: None,
        };
        RequestPrefix::new(choice, 0).extended(messages(count), count)
    }

    /// Returns the result of a fold, and how many messages it read.
    fn folded(prefix: &RequestPrefix, empty: &Counted) -> (usize, usize, usize) {
        let before = empty.work.load(Ordering::Relaxed);
        // Retaining a value counts in the work of the first value of its kind.
        let (value, folded) = prefix.fold(empty.clone());
        (value.messages, folded, value.work.load(Ordering::Relaxed) - before)
    }

    #[test]
    fn a_longer_prefix_computes_only_what_was_added() {
        let (short, value) = (prefix(10), Counted::new(0));
        assert_eq!(folded(&short, &value), (10, 10, 10));
        assert_eq!(folded(&short, &value), (10, 10, 0));
        let long = short.extended(messages(3), 13);
        assert_eq!(folded(&long, &value), (13, 13, 3));
        assert_eq!(folded(&long, &Counted::new(1)), (13, 13, 13));
        // Two other turns may follow the same one.
        assert_eq!(folded(&short.extended(messages(4), 14), &value), (14, 14, 4));
        assert_eq!(folded(&short, &value), (10, 10, 0));
        assert_eq!(short.bytes(), 10 * (10 + SLOT));
        assert_eq!(long.bytes(), 13 * (10 + 10 + SLOT));
    }

    #[test]
    fn few_and_small_values_are_retained() {
        let (prefix, large) = (prefix(8), Counted::new(0));
        let large = Counted {
            bytes_each: MAX_FOLD_BYTES / 8 + 1,
            ..large
        };
        assert_eq!(folded(&prefix, &large), (8, 8, 8));
        assert_eq!((folded(&prefix, &large), prefix.bytes()), ((8, 8, 8), 8 * SLOT));
        let values: Vec<_> = (0..=MAX_FOLDS).map(Counted::new).collect();
        for value in &values {
            assert_eq!(folded(&prefix, value), (8, 8, 8));
        }
        assert_eq!(folded(&prefix, &values[MAX_FOLDS]), (8, 8, 0));
        assert_eq!(folded(&prefix, &values[0]), (8, 8, 8), "the oldest made room");
        assert_eq!(prefix.bytes(), 8 * (10 * MAX_FOLDS + SLOT));
    }

    #[test]
    fn what_a_later_message_may_change_is_not_computed() {
        let is_final = false;
        let value = Counted {
            is_final,
            ..Counted::new(0)
        };
        assert_eq!(folded(&prefix(5), &value), (0, 0, 0));
    }
}
