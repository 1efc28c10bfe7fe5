//! Values of columns and placeholders, before an engine encodes them.

use std::convert::identity;

use uuid::Uuid;

use super::{HashList, StoredTime, stored_count};
use agent::record::ThreadName;
use values::clock::Timestamp;
use values::ids::{ApiKeyId, BranchId, CommandId, DeliveryId, ExecutionId, RunId, SessionId};
use values::session::Hash;
use values::tenant::TenantId;

/// A value, or null.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    Hashes(HashList<'v>),
    Id(Option<Uuid>),
    Time(Option<StoredTime>),
    Float(Option<f64>),
    Int(Option<i64>),
    Int32(Option<i32>),
    Int16(Option<i16>),
    Bool(Option<bool>),
}

/// A type that can be converted to a value.
pub(crate) trait Storable<'v> {
    /// The null value of the type.
    const NULL: Value<'v>;

    /// Converts it to a value.
    fn stored(self) -> Value<'v>;
}

impl<'v> From<HashList<'v>> for Value<'v> {
    fn from(hashes: HashList<'v>) -> Self {
        Value::Hashes(hashes)
    }
}

impl<'v, T: Storable<'v>> From<T> for Value<'v> {
    fn from(storable: T) -> Self {
        storable.stored()
    }
}

impl<'v, T: Storable<'v>> Storable<'v> for Option<T> {
    const NULL: Value<'v> = T::NULL;

    fn stored(self) -> Value<'v> {
        self.map_or(T::NULL, T::stored)
    }
}

impl<'v, T> Storable<'v> for &'v Option<T>
where
    &'v T: Storable<'v>,
{
    const NULL: Value<'v> = <&'v T>::NULL;

    fn stored(self) -> Value<'v> {
        self.as_ref().stored()
    }
}

/// Implements [`Storable`] for types that are copied, and for references to them.
macro_rules! copied {
    ($($type:ty => $variant:ident($convert:expr)),+ $(,)?) => {$(
        impl<'v> Storable<'v> for $type {
            const NULL: Value<'v> = Value::$variant(None);

            fn stored(self) -> Value<'v> {
                Value::$variant(Some($convert(self)))
            }
        }

        impl<'v> Storable<'v> for &'v $type {
            const NULL: Value<'v> = Value::$variant(None);

            fn stored(self) -> Value<'v> {
                (*self).stored()
            }
        }
    )+};
}

copied! {
    Uuid => Id(identity),
    ApiKeyId => Id(ApiKeyId::as_uuid),
    BranchId => Id(BranchId::as_uuid),
    CommandId => Id(CommandId::as_uuid),
    DeliveryId => Id(DeliveryId::as_uuid),
    ExecutionId => Id(ExecutionId::as_uuid),
    RunId => Id(RunId::as_uuid),
    SessionId => Id(SessionId::as_uuid),
    StoredTime => Time(identity),
    Timestamp => Time(StoredTime),
    f64 => Float(identity),
    i64 => Int(identity),
    u64 => Int(stored_count),
    u32 => Int(i64::from),
    i32 => Int32(identity),
    i16 => Int16(identity),
    bool => Bool(identity),
}

/// Implements [`Storable`] for types from which text or bytes are borrowed.
macro_rules! lent {
    ($($type:ty => $variant:ident($lend:expr)),+ $(,)?) => {$(
        impl<'v> Storable<'v> for &'v $type {
            const NULL: Value<'v> = Value::$variant(None);

            fn stored(self) -> Value<'v> {
                Value::$variant(Some($lend(self)))
            }
        }
    )+};
}

lent! {
    str => Text(identity),
    String => Text(String::as_str),
    TenantId => Text(TenantId::as_str),
    ThreadName => Text(ThreadName::as_str),
    [u8] => Bytes(identity),
    Vec<u8> => Bytes(Vec::as_slice),
    Hash => Bytes(hash_bytes),
}

fn hash_bytes(hash: &Hash) -> &[u8] {
    hash.as_bytes().as_slice()
}

/// Lists values for the placeholders of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::rows::Value::from($value)),*]
    };
}
pub(crate) use values;
