//! Leaves out the patterns that our engine can't compile, such as those with look-around. Values
//! are not checked against them, and nothing that they would accept is rejected.

use super::keywords::DATA;
use crate::json::{Object, Value};

/// Returns the schema without the patterns that can't be compiled; `None` if there are none.
pub(super) fn without_patterns(schema: &Value, is_compilable: &dyn Fn(&str) -> bool) -> Option<Value> {
    let mut relaxed = schema.clone();
    let mut relaxing = Relaxing {
        is_compilable,
        left_out: 0,
    };
    relaxing.relax(&mut relaxed);
    (relaxing.left_out > 0).then_some(relaxed)
}

struct Relaxing<'a> {
    is_compilable: &'a dyn Fn(&str) -> bool,
    left_out: usize,
}

impl Relaxing<'_> {
    /// Returns whether the schema may now accept more. A reference counts as such, since its target
    /// may.
    fn relax(&mut self, schema: &mut Value) -> bool {
        match schema {
            // Every part is relaxed, so this must not stop at the first.
            Value::Array(schemas) => schemas
                .iter_mut()
                .fold(false, |is_wider, schema| self.relax(schema) | is_wider),
            Value::Object(keywords) => self.relax_object(keywords),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn relax_object(&mut self, keywords: &mut Object) -> bool {
        let before = self.left_out;
        let is_compilable = self.is_compilable;
        if keywords
            .get("pattern")
            .and_then(Value::as_str)
            .is_some_and(|pattern| !is_compilable(pattern))
        {
            keywords.remove("pattern");
            self.left_out += 1;
        }
        if let Some(Value::Object(members)) = keywords.get_mut("patternProperties") {
            let count = members.len();
            members.retain(|pattern, _| is_compilable(pattern));
            if members.len() < count {
                self.left_out += 1;
                // They would reject the members that the pattern allows.
                keywords.remove("additionalProperties");
                keywords.remove("unevaluatedProperties");
            }
        }
        let mut is_wider = self.left_out > before || keywords.contains_key("$ref");
        let names: Vec<_> = keywords
            .keys()
            .filter(|name| !DATA.contains(&name.as_str()))
            .cloned()
            .collect();
        for name in names {
            let is_part_wider = keywords.get_mut(&name).is_some_and(|part| self.relax(part));
            is_wider |= is_part_wider;
            if is_part_wider {
                reverse(keywords, &name);
            }
        }
        is_wider
    }
}

/// Removes the keywords that would accept less because their part accepts more.
fn reverse(keywords: &mut Object, part: &str) {
    match part {
        "not" => drop(keywords.remove("not")),
        "if" => {
            for name in ["if", "then", "else"] {
                keywords.remove(name);
            }
        }
        "contains" => drop(keywords.remove("maxContains")),
        "oneOf" => {
            if let Some(branches) = keywords.remove("oneOf") {
                let any = Value::Object(Object::from_iter([("anyOf".to_owned(), branches)]));
                match keywords.entry("allOf").or_insert_with(|| Value::Array(Vec::new())) {
                    Value::Array(all) => all.push(any),
                    all => *all = any,
                }
            }
        }
        _ => {}
    }
}
