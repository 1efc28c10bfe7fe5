//! Names, ids and arguments of calls in the form that servers accept.
//!
//! Models invent names that no tool has and that no request may contain. Only the wire form
//! changes; the stored form retains them.

use std::borrow::Cow;
use std::collections::VecDeque;

use rpds::{HashTrieMapSync, HashTrieSetSync};

use super::fields::Fields;
use values::ids::MessageId;
use values::message::{ToolCall, ToolResult, is_plain_id};

/// The longest name of a tool, in characters.
const MAX_NAME: usize = 64;

/// About the memory of an id in a set or a map.
pub(super) const ID_BYTES: usize = 160;

/// Replaces the characters of a name that servers reject. Valid names of tools do not change.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        Cow::Borrowed("_")
    } else if name.len() <= MAX_NAME && name.chars().all(plain) {
        Cow::Borrowed(name)
    } else {
        let fitting = name.chars().map(|c| if plain(c) { c } else { '_' });
        Cow::Owned(fitting.take(MAX_NAME).collect())
    }
}

/// Returns the arguments of a call as the text of a JSON object. Servers reject other arguments, so
/// these are wrapped in an object in which the model can recognise its mistake.
pub(super) fn arguments(call: &ToolCall) -> Cow<'_, str> {
    if call.arguments.trim().is_empty() {
        Cow::Borrowed("{}")
    } else if Fields::parse(&call.arguments).is_some() {
        Cow::Borrowed(&call.arguments)
    } else {
        Cow::Owned(serde_json::json!({"invalid_json": call.arguments}).to_string())
    }
}

/// The rule for ids of calls that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdRule {
    /// Any text.
    Any,
    /// Any text of at most this many bytes.
    UpTo(usize),
    /// At most 40 letters, digits, `_` and `-`. All servers accept this, unless they demand one
    /// length.
    Common,
    /// At most this many letters, digits, `_` and `-`.
    Plain(usize),
    /// Nine letters and digits.
    Nine,
}

impl IdRule {
    fn accepts(self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::UpTo(most) => id.len() <= most,
            Self::Common => is_plain_id(id, ToolCall::PLAIN_ID),
            Self::Plain(most) => is_plain_id(id, most),
            Self::Nine => id.len() == 9 && id.bytes().all(|c| c.is_ascii_alphanumeric()),
        }
    }

    /// Returns the rule for ids that another model has given. A server that accepts any text may
    /// still hand it to a model, or to another server, that does not.
    fn for_others(self) -> Self {
        match self {
            Self::Any | Self::UpTo(_) => Self::Common,
            strict => strict,
        }
    }

    /// Returns an id that the server accepts. An invalid id is replaced by its hash, which is
    /// unique and always the same.
    fn fitting(self, id: &str) -> Cow<'_, str> {
        if self.accepts(id) {
            Cow::Borrowed(id)
        } else {
            Cow::Owned(self.made_of(id))
        }
    }

    fn made_of(self, text: &str) -> String {
        let hash = blake3::hash(text.as_bytes()).to_hex();
        match self {
            Self::Nine => hash.as_str()[..9].to_owned(),
            _ => format!("call_{}", &hash.as_str()[..32]),
        }
    }
}

/// Gives each call of a request, and its result, an id that the server accepts. The id is unique
/// and the same in each request. Some servers number the calls of each completion from the start,
/// and other servers reject such repeated ids. A copy costs the same for any number of calls.
#[derive(Debug, Clone)]
pub(super) struct WireIds {
    rule: IdRule,
    /// The rule for ids that other models have given.
    others: IdRule,
    /// The ids of calls whose results have not followed yet.
    open: VecDeque<String>,
    given: usize,
    used: HashTrieSetSync<String>,
    /// The next count of each id that more than one call has.
    counts: HashTrieMapSync<String, u64>,
    /// The ids on the wire of the latest calls, if they differ from those in the history.
    renamed: HashTrieMapSync<String, String>,
}

impl WireIds {
    /// Makes an empty set of ids.
    pub(super) fn new(rule: IdRule) -> Self {
        Self {
            rule,
            others: rule.for_others(),
            open: VecDeque::new(),
            given: 0,
            used: HashTrieSetSync::new_sync(),
            counts: HashTrieMapSync::new_sync(),
            renamed: HashTrieMapSync::new_sync(),
        }
    }

    /// Returns the same set with another rule for ids that other models have given.
    pub(super) fn with_others(self, others: IdRule) -> Self {
        Self { others, ..self }
    }

    /// Returns the id of a call of the message. `own`: whether the model itself made the message.
    pub(super) fn of_call<'a>(&mut self, message: MessageId, call: &'a ToolCall, own: bool) -> Cow<'a, str> {
        let rule = if own { self.rule } else { self.others };
        if call.id.is_empty() {
            let id = format!("call_{}_{}", message.as_uuid().simple(), self.given);
            let id = rule.fitting(&id).into_owned();
            self.given += 1;
            self.used.insert_mut(id.clone());
            self.open.push_back(id.clone());
            return Cow::Owned(id);
        }
        let mut id = rule.fitting(&call.id);
        // No count is tried twice, so many calls with one id take linear time.
        while self.used.contains(&*id) {
            let count = self.counts.get(&call.id).copied().unwrap_or(2);
            id = Cow::Owned(rule.made_of(&format!("{} {count}", call.id)));
            self.counts.insert_mut(call.id.clone(), count + 1);
        }
        self.used.insert_mut(id.clone().into_owned());
        if id == call.id.as_str() {
            self.renamed.remove_mut(&call.id);
        } else {
            self.renamed.insert_mut(call.id.clone(), id.clone().into_owned());
        }
        id
    }

    /// Returns about how many bytes of memory the ids take.
    pub(super) fn bytes(&self) -> usize {
        (self.used.size() + self.counts.size() + self.renamed.size()) * ID_BYTES
    }

    /// Returns the id of the result's call. Results are in the order of their calls.
    pub(super) fn of_result<'a>(&mut self, result: &'a ToolResult) -> Cow<'a, str> {
        if result.call_id.is_empty() {
            return Cow::Owned(self.open.pop_front().unwrap_or_else(|| "_".to_owned()));
        }
        match self.renamed.get(&result.call_id) {
            Some(id) => Cow::Owned(id.clone()),
            None if self.used.contains(&result.call_id) => Cow::Borrowed(&result.call_id),
            None => self.others.fitting(&result.call_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: "t".to_owned(),
            arguments: String::new(),
            signature: None,
        }
    }

    #[test]
    fn names_fit_and_fitting_names_stay() {
        let long = "n".repeat(70);
        for (name, sent) in [
            ("calculator", "calculator"),
            ("a-B_9", "a-B_9"),
            ("multi_tool_use.parallel", "multi_tool_use_parallel"),
            ("größe ", "gr__e_"),
            ("", "_"),
            (&long, &long[..64]),
            (&long[..64], &long[..64]),
        ] {
            assert_eq!(tool_name(name), sent);
        }
    }

    #[test]
    fn ids_fit_and_fitting_ids_stay() {
        let long = "n".repeat(129);
        for (rule, fits, others) in [
            (IdRule::Any, &[long.as_str(), "größe"][..], &[][..]),
            (
                IdRule::UpTo(64),
                &[&long[..64], "functions.get:0"],
                &[&long[..65], &long],
            ),
            (
                IdRule::Plain(128),
                &["toolu_01A-b", &long[..128]],
                &["functions.get:0", "functions.get 0", "größe", &long],
            ),
            (
                IdRule::Plain(64),
                &["tooluse_Ze_bgl9CSqu8aJv7XD-_Dw", &long[..64]],
                &["functions.get:0", "größe", &long[..65]],
            ),
            (
                IdRule::Nine,
                &["aB3456789"],
                &["aB345678", "aB34567890", "aB345678_", "call_1"],
            ),
        ] {
            for id in fits {
                assert_eq!(rule.fitting(id), *id, "{rule:?}");
            }
            let fitting: HashSet<_> = others.iter().map(|id| rule.fitting(id).into_owned()).collect();
            assert_eq!(fitting.len(), others.len(), "{rule:?}");
            assert!(fitting.iter().all(|id| rule.accepts(id)), "{rule:?} {fitting:?}");
        }
    }

    #[test]
    fn calls_that_share_an_id_are_distinguished_with_their_results() {
        let result = |id: &str| ToolResult {
            call_id: id.to_owned(),
            name: "t".to_owned(),
            content: Vec::new(),
            is_error: false,
        };
        let message = MessageId::from_uuid(uuid::Uuid::nil());
        for rule in [
            IdRule::Any,
            IdRule::UpTo(64),
            IdRule::Plain(128),
            IdRule::Plain(64),
            IdRule::Nine,
        ] {
            for own in [true, false] {
                let ids = || {
                    let mut ids = WireIds::new(rule);
                    let mut given = Vec::new();
                    for id in ["c1", "c1", "c 1", "", "c1", "", "c 1"] {
                        let called = ids.of_call(message, &call(id), own).into_owned();
                        assert_eq!(ids.of_result(&result(id)), called, "{rule:?} {id:?}");
                        assert!(rule.accepts(&called), "{rule:?} {own} {called}");
                        given.push(called);
                    }
                    given
                };
                let given = ids();
                assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len(), "{given:?}");
                assert_eq!(given, ids(), "the same in each request");
            }
        }
    }

    #[test]
    fn an_odd_id_goes_back_to_its_own_model_only() {
        let odd = call("functions.lookup:0");
        let message = MessageId::from_uuid(uuid::Uuid::nil());
        let sent = |rule, own| WireIds::new(rule).of_call(message, &odd, own).into_owned();
        assert_eq!(sent(IdRule::Any, true), odd.id);
        assert_eq!(sent(IdRule::UpTo(64), true), odd.id);
        for rule in [
            IdRule::Any,
            IdRule::UpTo(64),
            IdRule::Plain(128),
            IdRule::Plain(64),
            IdRule::Nine,
        ] {
            let id = sent(rule, false);
            assert!(rule.accepts(&id) && IdRule::Common.accepts(&id), "{rule:?} {id}");
        }
    }

    /// With quadratic work this would take hours.
    #[test]
    fn many_calls_of_one_id_are_distinguished_in_linear_time() {
        let call = call("c1");
        let message = MessageId::from_uuid(uuid::Uuid::nil());
        let many = 200_000;
        let mut ids = WireIds::new(IdRule::Plain(64));
        let given: HashSet<_> = (0..many)
            .map(|_| ids.of_call(message, &call, true).into_owned())
            .collect();
        assert_eq!(given.len(), many);
        assert!(given.iter().all(|id| IdRule::Plain(64).accepts(id)));
    }
}
