//! Estimates the memory of values, and counts values.
//!
//! A value of JSON takes up to a hundred times the bytes of its text, so the length of the text is
//! no estimate. [`weight`] lets a value serialize itself and adds up the allocations of its parts.
//! It writes nothing and reads no text, so it costs a few nanoseconds for each part, and hardly
//! more for a text of megabytes. The weight is at least the memory of JSON values and of texts, and
//! at most about three times as much.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

use super::Value;

/// A number, a name of an enum, or another small value.
const SCALAR: usize = 16;
/// A text without its bytes: its slot and its allocation.
const TEXT: usize = 32;
/// A field of a struct, apart from its value. Includes its share of the fields that are left out.
const FIELD: usize = 16;
/// An allocated list without its items.
const LIST: usize = 64;
/// A slot of a list, apart from the allocations of its item. A JSON value has 32 bytes, and a list
/// that has grown has up to two slots for each item.
const ITEM: usize = 64;
/// A map with entries, besides [`ENTRY`] for each. The node of a map of JSON values takes 648
/// bytes, however few of its 11 slots are used.
const MAP: usize = 512;
/// A slot of a map, apart from the allocations of key and value. A full node is split in the
/// middle, so a slot takes up to a sixth of a node.
const ENTRY: usize = 128;

/// Estimates the bytes of memory that a value takes, from its serialized parts.
pub fn weight<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut weigher = Weigher(0);
    // The weigher never fails. A value that can't be serialized counts up to there.
    let _ = value.serialize(&mut weigher);
    weigher.0
}

/// Counts the values: the value itself and all inside it.
pub fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count_values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// The sum so far.
struct Weigher(usize);

/// The entries of a map, or the fields of a struct that has flattened ones.
struct Entries<'a> {
    weigher: &'a mut Weigher,
    each: usize,
}

macro_rules! scalars {
    ($($name:ident: $type:ty;)*) => {$(
        fn $name(self, _: $type) -> fmt::Result {
            self.0 += SCALAR;
            Ok(())
        }
    )*};
}

impl<'a> Serializer for &'a mut Weigher {
    type Ok = ();
    type Error = fmt::Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    scalars! {
        serialize_bool: bool;
        serialize_i8: i8;
        serialize_i16: i16;
        serialize_i32: i32;
        serialize_i64: i64;
        serialize_u8: u8;
        serialize_u16: u16;
        serialize_u32: u32;
        serialize_u64: u64;
        serialize_f32: f32;
        serialize_f64: f64;
        serialize_char: char;
        serialize_unit_struct: &'static str;
    }

    /// Ids are bytes, which is cheaper.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_str(self, text: &str) -> fmt::Result {
        self.0 += TEXT + text.len();
        Ok(())
    }

    /// A time is written as text, and takes a few bytes. To write it would cost more than all else.
    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> fmt::Result {
        self.0 += SCALAR;
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> fmt::Result {
        self.0 += bytes.len();
        Ok(())
    }

    fn serialize_none(self) -> fmt::Result {
        Ok(())
    }

    fn serialize_unit(self) -> fmt::Result {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> fmt::Result {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> fmt::Result {
        self.0 += SCALAR;
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> fmt::Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> fmt::Result {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, fmt::Error> {
        self.0 += LIST;
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, fmt::Error> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, fmt::Error> {
        Ok(self)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, fmt::Error> {
        Ok(self)
    }

    /// Only a struct with flattened fields does not know how many entries there are.
    fn serialize_map(self, len: Option<usize>) -> Result<Entries<'a>, fmt::Error> {
        let each = if len.is_some() { ENTRY } else { FIELD };
        if len.is_some_and(|len| len > 0) {
            self.0 += MAP;
        }
        Ok(Entries { weigher: self, each })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, fmt::Error> {
        Ok(self)
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, fmt::Error> {
        Ok(self)
    }
}

macro_rules! parts {
    ($($of:ident: $part:ident($($name:ident: $type:ty)?) is $bytes:ident;)*) => {$(
        impl ser::$of for &mut Weigher {
            type Ok = ();
            type Error = fmt::Error;

            fn $part<T: Serialize + ?Sized>(&mut self, $($name: $type,)? value: &T) -> fmt::Result {
                self.0 += $bytes;
                value.serialize(&mut **self)
            }

            fn end(self) -> fmt::Result {
                Ok(())
            }
        }
    )*};
}

parts! {
    SerializeSeq: serialize_element() is ITEM;
    SerializeTuple: serialize_element() is FIELD;
    SerializeTupleStruct: serialize_field() is FIELD;
    SerializeTupleVariant: serialize_field() is FIELD;
    SerializeStruct: serialize_field(_name: &'static str) is FIELD;
    SerializeStructVariant: serialize_field(_name: &'static str) is FIELD;
}

impl ser::SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = fmt::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> fmt::Result {
        self.weigher.0 += self.each;
        key.serialize(&mut *self.weigher)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> fmt::Result {
        value.serialize(&mut *self.weigher)
    }

    fn end(self) -> fmt::Result {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;
    use crate::json::Object;

    /// Checks the weight: at least the minimum that the parts take, and at most three times that.
    #[track_caller]
    fn assert_weight(json: &Value, at_least: usize) {
        let weight = weight(json);
        assert!(
            (at_least..=3 * at_least).contains(&weight),
            "{weight}, at least {at_least}"
        );
    }

    #[test]
    fn json_is_weighed_by_its_memory() {
        let (slot, entry) = (size_of::<Value>(), size_of::<String>() + size_of::<Value>());
        assert_weight(&json!(vec![json!({"a": 0}); 10_000]), 10_000 * (slot + 11 * entry + 1));
        assert_weight(&json!(vec![json!({}); 10_000]), 10_000 * slot);
        // A list that was parsed has four slots or more.
        assert_weight(&json!(vec![json!([0]); 10_000]), 10_000 * 5 * slot);
        assert_weight(&json!(vec![0; 10_000]), 10_000 * slot);
        assert_weight(&json!("x".repeat(10_000)), 10_000);
        // No allocation takes less than 16 bytes.
        let wide: Object = (0..10_000).map(|key| (format!("{key:08}"), json!(0))).collect();
        assert_weight(&Value::Object(wide), 10_000 * (entry + 16));
        let deep = (0..100).fold(json!(0), |below, _| json!({"a": below}));
        assert_weight(&deep, 100 * (11 * entry + 1));
    }

    #[test]
    fn a_value_is_weighed_as_parsed_however_small_its_text_is() {
        let text = format!("[{}]", vec![r#"{"a":0}"#; 10_000].join(","));
        let mut parsed = None;
        let taken = measure(|| parsed = serde_json::from_str::<Value>(&text).ok());
        let weight = weight(&parsed);
        let memory = usize::try_from(taken.bytes_current).unwrap();
        assert!(memory > 80 * text.len(), "{memory}");
        assert!((memory..2 * memory).contains(&weight), "{weight} of {memory}");
    }

    #[test]
    fn texts_and_times_are_neither_read_nor_written() {
        let values = vec![("x".repeat(1 << 20), Timestamp::UNIX_EPOCH); 10];
        let taken = measure(|| assert!(weight(&values) > 10 << 20));
        assert_eq!(taken.count_total, 0);
    }
}
