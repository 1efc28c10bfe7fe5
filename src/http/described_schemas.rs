//! Adapts all schemas of the OpenAPI document to client generators.
//!
//! Each variant of a tagged union gets a name, and each integer a size. Documentation only.

use std::collections::BTreeMap;
use std::mem;

use utoipa::openapi::schema::{
    AdditionalProperties, ArrayItems, Discriminator, KnownFormat, Object, OneOf, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// The properties that distinguish the forms of a union.
const TAGS: [&str; 2] = ["type", "kind"];
/// The tag of forms that a later version has written. They can't be described.
const UNKNOWN: &str = "unknown";

/// The unions whose forms accept no unknown fields.
const STRICT: [&str; 4] = ["CompilerConfig", "InputPart", "InputSource", "ResponseFormat"];

/// Completes all schemas.
pub(super) fn complete_schemas(schemas: &mut Schemas) {
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in names {
        let forms = match schemas.get_mut(&name) {
            Some(RefOr::T(Schema::OneOf(union))) => name_forms(&name, union),
            _ => Schemas::new(),
        };
        schemas.extend(forms);
    }
    schemas.values_mut().for_each(size_integers);
}

/// Makes the schema of an object with any fields, which others describe.
pub(super) fn any_object(description: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .description(Some(description))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
        .into()
}

/// Describes an instant.
pub(super) fn instant(description: &str) -> Schema {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some(description))
        .into()
}

/// Moves the forms of a tagged union into named schemas, from which generators make types.
fn name_forms(name: &str, union: &mut OneOf) -> Schemas {
    let mut forms = Schemas::new();
    let is_tag = |tag: &&str| union.items.iter().all(|form| tag_value(form, tag).is_some());
    let Some(tag) = TAGS.into_iter().find(is_tag) else {
        return forms;
    };
    let mut discriminator = Discriminator::new(tag);
    for mut form in mem::take(&mut union.items) {
        if STRICT.contains(&name)
            && let RefOr::T(Schema::Object(form)) = &mut form
        {
            form.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
        let Some(value) = tag_value(&form, tag).filter(|value| *value != UNKNOWN) else {
            continue;
        };
        let form_name = format!("{}{name}", capitalised(value));
        let reference = Ref::from_schema_name(&form_name);
        discriminator
            .mapping
            .insert(value.to_owned(), reference.ref_location.clone());
        union.items.push(reference.into());
        forms.insert(form_name, form);
    }
    union.discriminator = Some(discriminator);
    forms
}

/// Returns the only value that the form has for the tag.
fn tag_value<'f>(form: &'f RefOr<Schema>, tag: &str) -> Option<&'f str> {
    match form {
        RefOr::T(Schema::Object(form)) => match form.properties.get(tag)? {
            RefOr::T(Schema::Object(Object {
                enum_values: Some(values),
                ..
            })) if values.len() == 1 => values.first()?.as_str(),
            _ => None,
        },
        RefOr::T(Schema::AllOf(form)) => form.items.iter().find_map(|part| tag_value(part, tag)),
        _ => None,
    }
}

/// `tool_call` and `tool.call` become `ToolCall`.
fn capitalised(tag: &str) -> String {
    let words = tag.split(|c: char| !c.is_ascii_alphanumeric());
    let capitalised = words.filter_map(|word| {
        let (first, rest) = word.split_at_checked(1)?;
        Some(first.to_ascii_uppercase() + rest)
    });
    capitalised.collect()
}

/// Gives all integers within the schema a size.
pub(super) fn size_integers(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            if is_integer(&object.schema_type) {
                size_integer(object);
            }
            object.properties.values_mut().for_each(size_integers);
            if let Some(AdditionalProperties::RefOr(values)) = object.additional_properties.as_deref_mut() {
                size_integers(values);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                size_integers(items);
            }
        }
        Schema::OneOf(union) => union.items.iter_mut().for_each(size_integers),
        Schema::AllOf(whole) => whole.items.iter_mut().for_each(size_integers),
        _ => (),
    }
}

/// Gives an integer without a format the format `int64`. Unsigned integers of 32 bits also get it,
/// since they have no format of their own. Only these have a lower bound and no upper bound.
fn size_integer(integer: &mut Object) {
    let int32 = SchemaFormat::KnownFormat(KnownFormat::Int32);
    let is_unsigned = integer.minimum.is_some() && integer.maximum.is_none();
    if integer.format == Some(int32) && is_unsigned {
        integer.format = None;
        integer.maximum = Some(u32::MAX.into());
    }
    if integer.format.is_none() {
        integer.format = Some(SchemaFormat::KnownFormat(KnownFormat::Int64));
    }
}

fn is_integer(kind: &SchemaType) -> bool {
    match kind {
        SchemaType::Type(kind) => *kind == Type::Integer,
        SchemaType::Array(kinds) => kinds.contains(&Type::Integer),
        SchemaType::AnyValue => false,
    }
}
