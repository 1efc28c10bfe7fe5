//! Compares the order of the fields that a document shows with that of the response: readers see
//! both side by side.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// The members of JSON as they are written.
enum Written {
    Object(Vec<(String, Written)>),
    Array(Vec<Written>),
    Other,
}

/// Fails on the first field that the document shows behind one that comes later in the response.
/// Keys that it leaves out have no order.
pub(super) fn check_order(shown: &str, given: &str) -> Result<(), String> {
    let read = |text| serde_json::from_str(text).map_err(|error: serde_json::Error| error.to_string());
    compare("", &read(shown)?, &read(given)?)
}

fn compare(path: &str, shown: &Written, given: &Written) -> Result<(), String> {
    match (shown, given) {
        (Written::Object(shown), Written::Object(given)) => {
            let mut next = 0;
            for (key, value) in shown.iter().filter(|(key, _)| key != "…") {
                let path = format!("{path}/{key}");
                let found = given.iter().position(|(name, _)| name == key);
                let at = found.ok_or_else(|| format!("{path}: was not given"))?;
                if at < next {
                    return Err(format!("{path}: is shown behind {}", given[next - 1].0));
                }
                next = at + 1;
                compare(&path, value, &given[at].1)?;
            }
            Ok(())
        }
        (Written::Array(shown), Written::Array(given)) => {
            let pairs = shown.iter().zip(given).enumerate();
            pairs
                .into_iter()
                .try_for_each(|(at, (shown, given))| compare(&format!("{path}/{at}"), shown, given))
        }
        _ => Ok(()),
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenVisitor)
    }
}

struct WrittenVisitor;

impl<'de> Visitor<'de> for WrittenVisitor {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Written::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Written, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Written::Array(all))
    }

    fn visit_str<E>(self, _: &str) -> Result<Written, E> {
        Ok(Written::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Written, E> {
        Ok(Written::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Written, E> {
        Ok(Written::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Written, E> {
        Ok(Written::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Written, E> {
        Ok(Written::Other)
    }

    fn visit_unit<E>(self) -> Result<Written, E> {
        Ok(Written::Other)
    }
}

#[test]
fn fields_in_another_order_are_found() {
    let given = r#"{"a": 1, "b": [{"c": 1, "d": null}], "e": "x"}"#;
    for same in [
        given,
        r#"{"…": "…", "a": 1, "e": "x"}"#,
        r#"{"b": [{"d": null, "…": "…"}, "…"], "…": "…"}"#,
    ] {
        check_order(same, given).unwrap();
    }
    check_order(r#"{"e": "x", "a": 1}"#, given).unwrap_err();
    check_order(r#"{"b": [{"d": null, "c": 1}]}"#, given).unwrap_err();
}
