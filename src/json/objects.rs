//! Reads structs from JSON objects only.
//!
//! serde also reads a struct from an array, with its fields in order, and no caller means that.
//! Values are passed on as they arrive: nothing is buffered, and nothing else is checked.
//!
//! The content of untagged and internally tagged enums is buffered by serde itself. A field there
//! that contains an object is read `with` [`from_objects`].

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

/// How serde calls an enum whose variant a field names; the words are all that tells such an enum from any other value.
const TAGGED: &str = "internally tagged enum";

/// A deserializer whose structs are objects at every depth; and what comes of it: seeds and the insides of values.
#[derive(Debug)]
pub struct Objects<T>(T);

impl<T> Objects<T> {
    /// Wraps a deserializer.
    pub fn new(deserializer: T) -> Self {
        Self(deserializer)
    }
}

/// Reads a value, with objects from objects alone; for `#[serde(deserialize_with = "..")]`.
pub fn from_objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(Objects(deserializer))
}

/// Forwards what is asked for by a visitor alone.
macro_rules! forward_deserialize {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Reading::of(visitor, Asked::Otherwise))
        }
    )+};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    forward_deserialize! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_unit deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Reading::of(visitor, Asked::Anything))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Reading::of(visitor, Asked::Struct);
        self.0.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Reading::of(visitor, Asked::Otherwise);
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Reading::of(visitor, Asked::Otherwise);
        self.0.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Reading::of(visitor, Asked::Otherwise);
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Reading::of(visitor, Asked::Otherwise))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Reading::of(visitor, Asked::Otherwise);
        self.0.deserialize_tuple_struct(name, len, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, variant) = self.0.variant_seed(Objects(seed))?;
        Ok((name, Objects(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Reading::of(visitor, Asked::Otherwise))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Reading::of(visitor, Asked::Struct))
    }
}

/// A visitor, and what it was asked with.
struct Reading<V> {
    visitor: V,
    asked: Asked,
}

enum Asked {
    Struct,
    Anything,
    Otherwise,
}

impl<V> Reading<V> {
    fn of(visitor: V, asked: Asked) -> Self {
        Self { visitor, asked }
    }
}

impl<'de, V: Visitor<'de>> Reading<V> {
    fn wants_object(&self) -> bool {
        match self.asked {
            Asked::Struct => true,
            Asked::Anything => Wanted(&self.visitor).to_string().starts_with(TAGGED),
            Asked::Otherwise => false,
        }
    }
}

/// What a visitor says that it expects.
struct Wanted<'v, V>(&'v V);

impl<'de, V: Visitor<'de>> fmt::Display for Wanted<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}

/// Forwards values that have no values inside.
macro_rules! forward_visit {
    ($($method:ident($value:ty))+) => {$(
        fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )+};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Reading<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wants_object() {
            return f.write_str("an object");
        }
        self.visitor.expecting(f)
    }

    forward_visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128)
        visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128) visit_f32(f32) visit_f64(f64)
        visit_char(char) visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
        visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Objects(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Objects(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if self.wants_object() {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        self.visitor.visit_seq(Objects(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Objects(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Objects(variant))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        x: u8,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Newtype(Point);

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Shape {
        Dot,
        At(Point),
        Between(Point, Point),
        Named { at: Point },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Tagged {
        Nothing,
        Somewhere {
            #[serde(deserialize_with = "from_objects")]
            at: Point,
        },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Word(String),
        #[serde(deserialize_with = "from_objects")]
        Place(Point),
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Whole {
        option: Option<Point>,
        list: Vec<Point>,
        map: BTreeMap<String, Point>,
        pair: Option<(u8, Point)>,
        newtype: Option<Newtype>,
        shape: Option<Shape>,
        tagged: Option<Tagged>,
        untagged: Option<Untagged>,
        value: Value,
    }

    fn read<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, String> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        from_objects(&mut deserializer).map_err(|error| error.to_string())
    }

    #[test]
    fn whatever_holds_objects_is_read_as_without_the_wrapper() {
        let all = json!({
            "option": {"x": 1}, "list": [{"x": 1}], "map": {"a": {"x": 1}}, "pair": [1, {"x": 2}], "newtype": {"x": 1},
            "value": [[1, -1, 1.5, true, null, "a"], {"a": {}}],
        });
        let shapes = [
            "\"dot\"",
            r#"{"at":{"x":1}}"#,
            r#"{"between":[{"x":1},{"x":2}]}"#,
            r#"{"named":{"at":{"x":1}}}"#,
        ];
        let shapes = shapes.map(|shape| format!(r#"{{"shape":{shape}}}"#));
        let others = [
            r#"{"tagged":{"kind":"nothing"}}"#,
            r#"{"tagged":{"at":{"x":1},"kind":"somewhere"}}"#,
            r#"{"untagged":"a"}"#,
            r#"{"untagged":{"x":1}}"#,
            r#"{"option":null,"shape":null}"#,
        ];
        let texts = [all.to_string()]
            .into_iter()
            .chain(shapes)
            .chain(others.map(str::to_owned));
        for text in texts {
            let plain: Whole = serde_json::from_str(&text).unwrap();
            assert_eq!(read::<Whole>(&text), Ok(plain), "{text}");
        }
    }

    #[test]
    fn an_array_is_no_object_at_any_depth() {
        for text in [
            "[]",
            "[null]",
            r#"{"option":[1]}"#,
            r#"{"list":[[1]]}"#,
            r#"{"list":[{"x":1},[2]]}"#,
            r#"{"map":{"a":[1]}}"#,
            r#"{"pair":[1,[2]]}"#,
            r#"{"newtype":[1]}"#,
            r#"{"shape":{"at":[1]}}"#,
            r#"{"shape":{"between":[{"x":1},[2]]}}"#,
            r#"{"shape":{"named":[{"x":1}]}}"#,
            r#"{"shape":{"named":{"at":[1]}}}"#,
            r#"{"tagged":["nothing"]}"#,
            r#"{"tagged":["somewhere",{"x":1}]}"#,
        ] {
            let error = read::<Whole>(text).unwrap_err();
            assert!(
                error.starts_with("invalid type: sequence, expected an object"),
                "{text}: {error}"
            );
            let plain = serde_json::from_str::<Whole>(text);
            assert!(plain.is_ok(), "{text} is refused without the wrapper: {plain:?}");
        }
        // These fields ask for the wrapper themselves.
        assert!(read::<Whole>(r#"{"tagged":{"kind":"somewhere","at":[1]}}"#).is_err());
        assert!(read::<Whole>(r#"{"untagged":[1]}"#).is_err());
        let error = read::<Whole>(r#"{"option":7}"#).unwrap_err();
        assert!(
            error.starts_with("invalid type: integer `7`, expected an object"),
            "{error}"
        );
    }

    #[test]
    fn a_raw_value_is_kept_as_it_came() {
        let raw: Vec<&RawValue> = read(r#"[ {"a" : [1]}, 1.50 ]"#).unwrap();
        assert_eq!([raw[0].get(), raw[1].get()], [r#"{"a" : [1]}"#, "1.50"]);
        let owned: BTreeMap<String, Box<RawValue>> = read(r#"{"a": [ ]}"#).unwrap();
        assert_eq!(owned["a"].get(), "[ ]");
    }
}
