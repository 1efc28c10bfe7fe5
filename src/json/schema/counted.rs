//! A value whose reading is counted: it looks empty once more was read of it than is allowed, and what was found then is discarded.
//!
//! So a check ends, whatever the schema makes of the value: a schema that refers to itself twice per level would otherwise look at the
//! innermost of a hundred levels 2^100 times.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, unique};

use super::measure::Measure;
use crate::json::{self, Value};

/// How many bytes of text cost as much as one check.
const BYTES_PER_CHECK: usize = 64;

/// What may still be read in one check of a value.
#[derive(Debug)]
pub(super) struct Allowance {
    /// In checks.
    left: Cell<usize>,
    /// In bytes of text that patterns may be matched against; unbounded without patterns.
    text_left: Cell<usize>,
    is_spent: Cell<bool>,
    /// What each value within the value may cost.
    checks: usize,
    /// How many patterns a name may be matched against.
    name_patterns: usize,
}

impl Allowance {
    pub(super) fn new(checks: usize, matched_bytes: usize, measure: &Measure) -> Self {
        let text = if measure.patterns == 0 {
            usize::MAX
        } else {
            matched_bytes
        };
        Self {
            left: Cell::new(checks),
            text_left: Cell::new(text),
            is_spent: Cell::new(false),
            checks: measure.checks,
            name_patterns: measure.name_patterns,
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    fn take(&self, from: &Cell<usize>, amount: usize) {
        let left = from.get().checked_sub(amount);
        from.set(left.unwrap_or(0));
        if left.is_none() {
            self.is_spent.set(true);
        }
    }

    fn charge(&self, checks: usize) {
        self.take(&self.left, checks);
    }

    fn charge_text(&self, bytes: usize) {
        self.take(&self.text_left, bytes);
        self.charge(bytes / BYTES_PER_CHECK);
    }
}

/// A value, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted<'a> {
    value: &'a Value,
    /// None for the name of a property, which was counted with its object.
    allowance: Option<&'a Allowance>,
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
        })
    }
}

impl<'a> Counted<'a> {
    pub(super) fn new(value: &'a Value, allowance: &'a Allowance) -> Self {
        let allowance = Some(allowance);
        Self { value, allowance }
    }

    /// Returns the value, or nothing once the allowance is spent.
    fn seen(&self) -> &'a Value {
        match self.allowance {
            Some(allowance) if allowance.is_spent() => &Value::Null,
            _ => self.value,
        }
    }

    fn within(&self, value: &'a Value) -> Self {
        Self { value, ..*self }
    }

    fn charge(&self, checks: impl FnOnce(&Allowance) -> usize) {
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
        let object = self.seen().as_object()?;
        Some(Members { node: *self, object })
    }

    fn as_array(&self) -> Option<Items<'a>> {
        let items = self.seen().as_array()?;
        Some(Items { node: *self, items })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.seen().as_str()?;
        if let Some(allowance) = self.allowance {
            allowance.charge_text(text.len());
            if allowance.is_spent() {
                return None;
            }
        }
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<Self::Number> {
        Node::<SerdeJson>::as_number(&self.seen())
    }

    fn as_boolean(&self) -> Option<bool> {
        self.seen().as_bool()
    }

    fn is_null(&self) -> bool {
        self.seen().is_null()
    }

    fn json_type(&self) -> JsonType {
        Node::<SerdeJson>::json_type(&self.seen())
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.seen();
        self.charge(|_| text.as_str().map_or(0, str::len) / BYTES_PER_CHECK);
        Node::<SerdeJson>::string_length(&text)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.charge(|_| weight(expected));
        Node::<SerdeJson>::equals_value(&self.seen(), expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.seen())
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
            .charge(|allowance| if found.is_some() { allowance.checks } else { 1 });
        found.map(|value| self.node.within(value))
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
            allowance.charge(allowance.checks);
            allowance.charge_text(name.len().saturating_mul(allowance.name_patterns));
            if allowance.is_spent() {
                return None;
            }
        }
        Some((name, self.node.within(value)))
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
            allowance.charge(allowance.checks);
            if allowance.is_spent() {
                return None;
            }
        }
        Some(self.node.within(value))
    }
}

/// What comparing with a value costs, in checks.
fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(weight).sum::<usize>(),
        Value::String(text) => 1 + text.len() / BYTES_PER_CHECK,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
