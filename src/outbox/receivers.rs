//! How many messages are on their way to whom: a receiver that does not answer must leave places to the others. Sends nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The receivers of the messages that are on their way.
#[derive(Debug)]
pub(super) struct Receivers {
    share: usize,
    counts: Mutex<HashMap<String, usize>>,
}

/// A message on its way, as long as this is kept.
#[derive(Debug)]
pub(super) struct Share {
    receivers: Arc<Receivers>,
    receiver: String,
}

impl Receivers {
    /// Divides this many places.
    pub(super) fn new(places: usize) -> Self {
        Self {
            share: (places / 4).max(1),
            counts: Mutex::default(),
        }
    }

    /// Returns the share of a receiver, a quarter of the places. No more messages are taken at once, since all may be for one receiver.
    pub(super) fn share(&self) -> usize {
        self.share
    }

    /// Notes that a message is on its way to the address.
    pub(super) fn take(self: &Arc<Self>, url: &str) -> Share {
        let receiver = receiver(url).to_owned();
        *self.counts().entry(receiver.clone()).or_default() += 1;
        Share {
            receivers: Arc::clone(self),
            receiver,
        }
    }

    /// Lists those that have their share, by how their addresses begin.
    pub(super) fn busy(&self) -> Vec<String> {
        let counts = self.counts();
        let busy = counts.iter().filter(|(_, count)| **count >= self.share);
        busy.map(|(receiver, _)| receiver.clone()).collect()
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // Each change is that of one count.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Tells whether messages to its receiver are passed over.
    pub(super) fn is_full(&self) -> bool {
        let counts = self.receivers.counts();
        counts
            .get(&self.receiver)
            .is_some_and(|count| *count >= self.receivers.share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.receivers.counts();
        if let Some(count) = counts.get_mut(&self.receiver) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.receiver);
            }
        }
    }
}

/// Returns an address without its path and query.
fn receiver(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[authority..].find(['/', '?', '#']);
    end.map_or(url, |end| &url[..authority + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_all_up_to_the_path() {
        for (url, expected) in [
            ("https://example.org", "https://example.org"),
            ("https://example.org/", "https://example.org"),
            ("http://example.org:8080/a/b?c#d", "http://example.org:8080"),
            ("https://example.org?run=1", "https://example.org"),
            ("https://[::1]:1#x", "https://[::1]:1"),
            ("a/b", "a"),
            ("", ""),
        ] {
            assert_eq!(receiver(url), expected, "{url}");
        }
    }

    #[test]
    fn a_receiver_is_busy_while_it_has_its_share() {
        let receivers = Arc::new(Receivers::new(8));
        assert_eq!(receivers.share(), 2);
        let first = receivers.take("https://a/1");
        let other = receivers.take("https://b/1");
        assert!(!first.is_full() && receivers.busy().is_empty());
        let second = receivers.take("https://a/2");
        assert!(first.is_full() && second.is_full() && !other.is_full());
        assert_eq!(receivers.busy(), ["https://a"]);
        drop(first);
        assert!(receivers.busy().is_empty());
        drop((second, other));
        assert!(receivers.counts().is_empty());
        assert_eq!(Receivers::new(1).share(), 1);
    }
}
