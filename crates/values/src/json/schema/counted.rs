//! A value that counts how much of it is read. The check ends at a limit.
//!
//! So the check of any schema ends. For example, a schema that refers to itself twice per level
//! would visit the innermost of a hundred levels 2^100 times. Errors count by the memory that the
//! library uses for them: it copies parts of the schema and the path into each error. So a few
//! thousand errors could exhaust the memory.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, unique};

use super::error::quoted;
use super::measure::Measure;
use crate::json::{self, Value};

/// How many bytes of text, or of memory, cost as much as one check.
pub(super) const BYTES_PER_CHECK: usize = 64;
/// The most bytes that an index adds to the path of a value.
const INDEX_BYTES: usize = 10;

/// The work that one check of a value may still do.
#[derive(Debug)]
pub(super) struct Allowance<'m> {
    /// The remaining checks.
    left: Cell<usize>,
    /// The remaining bytes of text that patterns may be matched against; unbounded without
    /// patterns.
    text_left: Cell<usize>,
    /// The work of the schema for each value.
    measure: &'m Measure,
    /// The cost of each member's name, in checks.
    name: usize,
}

/// The panic payload that ends a check.
struct Spent;

impl<'m> Allowance<'m> {
    pub(super) fn new(checks: usize, matched_bytes: usize, measure: &'m Measure) -> Self {
        let text = if measure.patterns == 0 {
            usize::MAX
        } else {
            matched_bytes
        };
        Self {
            left: Cell::new(checks),
            text_left: Cell::new(text),
            measure,
            name: 0,
        }
    }

    /// Charges each name as if all its checks failed, since later reads of the name are not
    /// counted.
    pub(super) fn with_errors_of_names(self) -> Self {
        let name = self.measure.name_checks.saturating_mul(self.error(0));
        Self { name, ..self }
    }

    /// Does the work. Returns `None` if it exceeds the allowance.
    ///
    /// The library can't be stopped otherwise, so its stack is unwound. This is safe: it holds no
    /// lock, and none of its data outlives the check.
    pub(super) fn spend<T>(&self, work: impl FnOnce(&Self) -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(result) => Some(result),
            Err(cause) if cause.is::<Spent>() => None,
            Err(cause) => resume_unwind(cause),
        }
    }

    fn take(from: &Cell<usize>, amount: usize) {
        match from.get().checked_sub(amount) {
            Some(left) => from.set(left),
            None => resume_unwind(Box::new(Spent)),
        }
    }

    fn charge(&self, checks: usize) {
        Self::take(&self.left, checks);
    }

    fn charge_text(&self, bytes: usize) {
        Self::take(&self.text_left, bytes);
        self.charge(bytes / BYTES_PER_CHECK);
    }

    /// Returns the cost of an error, in checks, for a value with a path of this length.
    fn error(&self, path: usize) -> usize {
        self.measure.error.saturating_add(path) / BYTES_PER_CHECK
    }
}

/// A value, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted<'a> {
    value: &'a Value,
    /// `None` for the name of a property, which is counted with its object.
    allowance: Option<&'a Allowance<'a>>,
    /// The bytes of the pointer to the value, and of the references on the way to it.
    path: usize,
}

/// Values of this kind.
#[derive(Debug)]
pub(super) struct CountedJson;

impl Json for CountedJson {
    type Node<'a> = Counted<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Counted<'_>) -> T) -> T {
        *buffer = Value::from(string);
        f(Counted {
            value: buffer,
            allowance: None,
            path: 0,
        })
    }
}

impl<'a> Counted<'a> {
    pub(super) fn new(value: &'a Value, allowance: &'a Allowance<'a>) -> Self {
        Self {
            value,
            allowance: Some(allowance),
            path: 0,
        }
    }

    fn within(&self, value: &'a Value, path: usize) -> Self {
        let references = self.allowance.map_or(0, |allowance| allowance.measure.references);
        Self {
            value,
            allowance: self.allowance,
            path: self.path.saturating_add(path).saturating_add(references),
        }
    }

    fn charge(&self, checks: impl FnOnce(&Allowance<'_>) -> usize) {
        if let Some(allowance) = self.allowance {
            allowance.charge(checks(allowance));
        }
    }
}

impl<'a> Node<'a, CountedJson> for Counted<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = <&'a Value as Node<'a, SerdeJson>>::Number;

    fn as_object(&self) -> Option<Members<'a>> {
        let object = self.value.as_object()?;
        Some(Members { node: *self, object })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        let items = self.value.as_array()?;
        Some(Items { node: *self, items })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.as_str()?;
        if let Some(allowance) = self.allowance {
            allowance.charge_text(text.len());
        }
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<Self::Number> {
        Node::<SerdeJson>::as_number(&self.value)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        Node::<SerdeJson>::json_type(&self.value)
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.value;
        self.charge(|_| text.as_str().map_or(0, str::len) / BYTES_PER_CHECK);
        Node::<SerdeJson>::string_length(&text)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.charge(|_| weight(expected));
        Node::<SerdeJson>::equals_value(&self.value, expected)
    }

    /// Returns a shortened value, so that an error copies little. The path of the error leads to
    /// the whole value.
    fn to_value(&self) -> Cow<'a, Value> {
        self.charge(|allowance| allowance.error(self.path));
        match self.value {
            Value::Array(_) => Cow::Owned(Value::Array(Vec::new())),
            Value::Object(_) => Cow::Owned(Value::Object(json::Object::new())),
            Value::String(text) => Cow::Owned(Value::from(quoted(text))),
            Value::Null | Value::Bool(_) | Value::Number(_) => Cow::Borrowed(self.value),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::<SerdeJson>::identity(&self.value)
    }
}

/// An object whose members are counted as they are read.
#[derive(Debug)]
pub(super) struct Members<'a> {
    node: Counted<'a>,
    object: &'a json::Object,
}

impl<'a> Object<'a, CountedJson> for Members<'a> {
    type Node = Counted<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.object.len()
    }

    fn get(&self, key: &String) -> Option<Counted<'a>> {
        let found = self.object.get(key);
        self.node
            .charge(|allowance| if found.is_some() { allowance.measure.checks } else { 1 });
        found.map(|value| self.node.within(value, path_of(key)))
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter {
            node: self.node,
            members: self.object.iter(),
        }
    }
}

/// The members of an object.
#[derive(Debug)]
pub(super) struct MembersIter<'a> {
    node: Counted<'a>,
    members: serde_json::map::Iter<'a>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Counted<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        if let Some(allowance) = self.node.allowance {
            allowance.charge(allowance.measure.checks.saturating_add(allowance.name));
            allowance.charge_text(name.len().saturating_mul(allowance.measure.name_patterns));
        }
        Some((name, self.node.within(value, path_of(name))))
    }
}

/// A list whose items are counted as they are read.
#[derive(Debug)]
pub(super) struct Items<'a> {
    node: Counted<'a>,
    items: &'a [Value],
}

impl<'a> Array<'a, CountedJson> for Items<'a> {
    type Node = Counted<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter {
            node: self.node,
            items: self.items.iter(),
        }
    }

    fn is_unique(&self) -> bool {
        self.node.charge(|_| self.items.iter().map(weight).sum());
        unique::is_unique(self.items)
    }
}

/// The items of a list.
#[derive(Debug)]
pub(super) struct ItemsIter<'a> {
    node: Counted<'a>,
    items: std::slice::Iter<'a, Value>,
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Counted<'a>;

    fn next(&mut self) -> Option<Counted<'a>> {
        let value = self.items.next()?;
        if let Some(allowance) = self.node.allowance {
            allowance.charge(allowance.measure.checks);
        }
        Some(self.node.within(value, INDEX_BYTES))
    }
}

/// Returns the cost of a comparison with a value, in checks.
fn weight(value: &Value) -> usize {
    1 + json::weight(value) / BYTES_PER_CHECK
}

/// Returns the bytes that a name adds to the path of a value. Each `~` and `/` takes two bytes.
fn path_of(name: &str) -> usize {
    1 + 2 * name.len()
}
