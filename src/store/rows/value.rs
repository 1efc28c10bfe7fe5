//! Values of columns and placeholders, before an engine encodes them.

use uuid::Uuid;

use super::StoredTime;

/// A value, or null.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    Id(Option<Uuid>),
    Time(Option<StoredTime>),
    Float(Option<f64>),
    Int(Option<i64>),
    Int32(Option<i32>),
    Int16(Option<i16>),
    Bool(Option<bool>),
}

/// Makes values of a type and of its options, and of references to both.
macro_rules! value_of {
    ($($type:ty => $variant:ident),+ $(,)?) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::$variant(Some(value))
            }
        }

        impl From<Option<$type>> for Value<'_> {
            fn from(value: Option<$type>) -> Self {
                Self::$variant(value)
            }
        }

        impl From<&$type> for Value<'_> {
            fn from(value: &$type) -> Self {
                Self::$variant(Some(*value))
            }
        }

        impl From<&Option<$type>> for Value<'_> {
            fn from(value: &Option<$type>) -> Self {
                Self::$variant(*value)
            }
        }
    )+};
}

value_of! {
    Uuid => Id,
    StoredTime => Time,
    f64 => Float,
    i64 => Int,
    i32 => Int32,
    i16 => Int16,
    bool => Bool,
}

/// Makes values of a borrowed type and of its owned one, and of the options of both.
macro_rules! borrowed_value_of {
    ($($borrowed:ty, $owned:ty => $variant:ident),+ $(,)?) => {$(
        impl<'v> From<&'v $borrowed> for Value<'v> {
            fn from(value: &'v $borrowed) -> Self {
                Self::$variant(Some(value))
            }
        }

        impl<'v> From<Option<&'v $borrowed>> for Value<'v> {
            fn from(value: Option<&'v $borrowed>) -> Self {
                Self::$variant(value)
            }
        }

        impl<'v> From<&'v $owned> for Value<'v> {
            fn from(value: &'v $owned) -> Self {
                Self::$variant(Some(value))
            }
        }

        impl<'v> From<&'v Option<$owned>> for Value<'v> {
            fn from(value: &'v Option<$owned>) -> Self {
                Self::$variant(value.as_deref())
            }
        }
    )+};
}

borrowed_value_of! {
    str, String => Text,
    [u8], Vec<u8> => Bytes,
}
