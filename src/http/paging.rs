//! Pages of lists. A cursor names the last row. It is opaque to callers and valid only in its own
//! list.
//!
//! A page ends with the item that reaches its size in bytes.

use std::borrow::Cow;

use axum::Json;
use serde::Serialize;
use utoipa::openapi::schema::{ArrayBuilder, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::codes::ProblemCode;
use super::parameters::{QueryParameters, invalid};
use super::problem::Problem;
use agent::record::ThreadName;
use store::Page;
use values::ids::{DeliveryId, RunId, SessionId};
use values::json::json_length;
use values::session::Hash;
use workspace::{FilePath, MAX_PATH_BYTES};

const DEFAULT_LIMIT: u32 = 50;
pub(super) const MAX_LIMIT: u32 = 200;
/// The approximate bytes of a page. It ends with the item that reaches this size.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// The requested rows of a list.
#[derive(Debug)]
pub(super) struct Paging<K> {
    /// The last row of the previous page.
    pub(super) after: Option<K>,
    /// The most rows.
    pub(super) limit: u32,
}

impl<K: CursorKey> Paging<K> {
    /// Takes `limit` and `cursor`. They must be the last parameters that a list takes.
    pub(super) fn take(query: QueryParameters) -> Result<Self, Problem> {
        Self::take_with(query, DEFAULT_LIMIT)
    }

    /// Takes the same for a list with another default limit.
    pub(super) fn take_with(mut query: QueryParameters, default: u32) -> Result<Self, Problem> {
        let limit = take_limit(&mut query)?.unwrap_or(default);
        let after = take_cursor(&mut query)?;
        query.finish()?;
        Ok(Self { after, limit })
    }

    /// Makes a page of rows. One row more than requested shows that another page follows.
    pub(super) fn page<T: Serialize>(&self, rows: Vec<T>, key: impl Fn(&T) -> K) -> Json<ListPage<T>> {
        Json(ListPage::new(rows, self.limit, key, |row| row))
    }
}

impl<K: CursorKey + Copy> Paging<K> {
    /// Returns the page to read, with one row more to detect whether another page follows.
    pub(super) fn one_more(&self) -> Page<K> {
        Page {
            before: self.after,
            limit: self.limit + 1,
        }
    }
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct ListPage<T> {
    /// The rows.
    data: Vec<T>,
    /// Leads to the next page; null on the last one.
    next_cursor: Option<String>,
}

impl<T: Serialize> ListPage<T> {
    /// Makes a page of up to `limit + 1` rows. The extra row shows that another page follows. The
    /// page ends early when it reaches its bytes.
    pub(super) fn new<R, K: CursorKey>(rows: Vec<R>, limit: u32, key: impl Fn(&R) -> K, view: impl Fn(R) -> T) -> Self {
        let (mut data, mut bytes, mut last) = (Vec::new(), 0, None);
        let mut rows = rows.into_iter();
        while data.len() < limit as usize
            && bytes < PAGE_BYTES
            && let Some(row) = rows.next()
        {
            last = Some(key(&row));
            let shown = view(row);
            bytes += json_length(&shown);
            data.push(shown);
        }
        let next = last.filter(|_| rows.next().is_some());
        Self::with_cursor(data, next.as_ref())
    }

    /// Makes a page of rows with a given cursor.
    pub(super) fn with_cursor<K: CursorKey>(data: Vec<T>, next: Option<&K>) -> Self {
        let next_cursor = next.map(encode_cursor);
        Self { data, next_cursor }
    }
}

/// The schema of a page is named after its rows. Routes use an alias without parameters. Otherwise
/// the description would also contain the name of this type.
impl<T: ToSchema> PartialSchema for ListPage<T> {
    fn schema() -> RefOr<Schema> {
        let rows = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let cursor = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
        ObjectBuilder::new()
            .description(Some("A page of a list."))
            .property("data", rows.description(Some("The rows.")))
            .required("data")
            .property(
                "next_cursor",
                cursor.description(Some("Leads to the next page; null on the last one.")),
            )
            .required("next_cursor")
            .into()
    }
}

impl<T: ToSchema> ToSchema for ListPage<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Page", T::name()))
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

/// Takes the parameter `limit`.
pub(super) fn take_limit(query: &mut QueryParameters) -> Result<Option<u32>, Problem> {
    let limit = query.number::<u32>("limit")?;
    if limit.is_none_or(|limit| (1..=MAX_LIMIT).contains(&limit)) {
        Ok(limit)
    } else {
        Err(invalid("limit", format!("not between 1 and {MAX_LIMIT}")))
    }
}

/// Returns the index at which a page begins, by its cursor or by the parameter `from`.
pub(super) fn first_index(cursor: Option<u64>, from: Option<u32>) -> Result<u64, Problem> {
    if cursor.is_some() && from.is_some() {
        return Err(invalid(
            "from",
            "a cursor determines where the page begins: leave `from` out",
        ));
    }
    Ok(cursor.or(from.map(u64::from)).unwrap_or(0))
}

/// Takes the parameter `cursor`.
pub(super) fn take_cursor<K: CursorKey>(query: &mut QueryParameters) -> Result<Option<K>, Problem> {
    let Some(text) = query.text("cursor")? else {
        return Ok(None);
    };
    decode_cursor(&text)
        .map(Some)
        .ok_or_else(|| Problem::of_field(ProblemCode::InvalidCursor, "cursor", "not a cursor of this list"))
}

/// The key of the last row of a page.
pub(super) trait CursorKey: Sized {
    /// The first character of the list's cursors.
    const KIND: char;

    /// Returns the bytes of a cursor.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads the bytes of a cursor.
    fn from_bytes(bytes: Vec<u8>) -> Option<Self>;
}

/// The index of the next message, which has 32 bits at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageIndex(pub(super) u64);

/// The index of the next step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepIndex(pub(super) u64);

/// The number of an entry of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryNumber(pub(super) u64);

macro_rules! id_keys {
    ($($id:ty = $kind:literal),+) => {$(
        impl CursorKey for $id {
            const KIND: char = $kind;

            fn to_bytes(&self) -> Vec<u8> {
                self.as_uuid().as_bytes().to_vec()
            }

            fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
                Uuid::from_slice(&bytes).ok().map(Self::from_uuid)
            }
        }
    )+};
}

id_keys!(RunId = 'r', SessionId = 's', DeliveryId = 'd');

impl CursorKey for MessageIndex {
    const KIND: char = 'm';

    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let index = read_index(bytes)?;
        u32::try_from(index).is_ok().then_some(Self(index))
    }
}

impl CursorKey for StepIndex {
    const KIND: char = 'n';

    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        read_index(bytes).map(Self)
    }
}

impl CursorKey for EntryNumber {
    const KIND: char = 'e';

    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        read_index(bytes).map(Self)
    }
}

/// The name of an agent.
impl CursorKey for String {
    const KIND: char = 'a';

    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let name = Self::from_utf8(bytes).ok()?;
        (!name.contains('\0')).then_some(name)
    }
}

/// A version of an agent.
impl CursorKey for Hash {
    const KIND: char = 'v';

    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        Self::try_from(bytes.as_slice()).ok()
    }
}

impl CursorKey for FilePath {
    const KIND: char = 'f';

    fn to_bytes(&self) -> Vec<u8> {
        self.as_str().as_bytes().to_vec()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        Self::parse(&String::from_utf8(bytes).ok()?).ok()
    }
}

impl CursorKey for ThreadName {
    const KIND: char = 't';

    fn to_bytes(&self) -> Vec<u8> {
        self.as_str().as_bytes().to_vec()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        String::from_utf8(bytes).ok()?.parse().ok()
    }
}

/// Returns the cursor of a page after a row.
pub(super) fn encode_cursor<K: CursorKey>(key: &K) -> String {
    let bytes = key.to_bytes();
    bytes
        .iter()
        .fold(String::from(K::KIND), |text, byte| format!("{text}{byte:02x}"))
}

/// Returns the row of a cursor; `None` if it is not one of the list.
pub(super) fn decode_cursor<K: CursorKey>(text: &str) -> Option<K> {
    K::from_bytes(decode_hex(text.strip_prefix(K::KIND)?)?)
}

fn read_index(bytes: Vec<u8>) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0 && digits.len() <= 2 * MAX_PATH_BYTES)?;
    digits
        .chunks_exact(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_and_nothing_else_is_one() {
        fn check<K: CursorKey + PartialEq + std::fmt::Debug>(keys: impl IntoIterator<Item = K>) {
            for key in keys {
                assert_eq!(decode_cursor(&encode_cursor(&key)), Some(key));
            }
            for text in [
                "", "r", "r00", "x00", "mffff", "a0", "aff", "a00", "t", "t20", "é0", "r\u{661}",
            ] {
                assert_eq!(decode_cursor::<K>(text), None, "{text:?}");
            }
        }
        check([RunId::from_uuid(Uuid::from_u128(7))]);
        check([SessionId::from_uuid(Uuid::from_u128(u128::MAX))]);
        check([MessageIndex(u32::MAX.into())]);
        check([StepIndex(3)]);
        check([DeliveryId::from_uuid(Uuid::from_u128(1 << 64))]);
        check(["demo".to_owned()]);
        check([Hash::from([7; 32])]);
        check::<FilePath>([
            "a/b".parse().unwrap(),
            FilePath::parse(&"x/".repeat(60)[..119]).unwrap(),
        ]);
        check::<ThreadName>(["a:b@c".parse().unwrap(), "x".repeat(128).parse().unwrap()]);
    }

    #[test]
    fn a_full_page_that_is_the_last_has_no_cursor() {
        let page = |rows: Vec<u64>| ListPage::new(rows, 2, |row| MessageIndex(*row), |row| row);
        assert_eq!(
            (page(vec![1, 2]).data, page(vec![1, 2]).next_cursor),
            (vec![1, 2], None)
        );
        let more = page(vec![1, 2, 3]);
        assert_eq!(
            (more.data, more.next_cursor),
            (vec![1, 2], Some(encode_cursor(&MessageIndex(2))))
        );
    }

    #[test]
    fn a_page_ends_where_it_has_reached_its_bytes() {
        let rows: Vec<String> = (0..5).map(|_| "x".repeat(PAGE_BYTES / 2)).collect();
        let page = ListPage::new(rows, 4, |_| MessageIndex(7), |row| row);
        assert_eq!(
            (page.data.len(), page.next_cursor),
            (2, Some(encode_cursor(&MessageIndex(7))))
        );
        let rows = vec!["x".repeat(2 * PAGE_BYTES)];
        let page = ListPage::new(rows, 4, |_| MessageIndex(7), |row| row);
        assert_eq!((page.data.len(), page.next_cursor), (1, None));
    }
}
