//! Pages of lists. A cursor names the last row; it is opaque to callers and valid in its own list
//! only.
//!
//! A page ends with the item that reaches its size in bytes.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::openapi::schema::{ArrayBuilder, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::codes::ProblemCode;
use super::parameters::{QueryParameters, invalid};
use super::problem::Problem;
use crate::json::json_length;
use crate::record::ThreadName;

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;
/// About how many bytes a page has: it ends with the item that reaches so many.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct ListPage<T> {
    /// The rows.
    data: Vec<T>,
    /// Leads to the next page; null on the last one.
    next_cursor: Option<String>,
}

impl<T: Serialize> ListPage<T> {
    /// Makes a page of rows that were asked for with `limit + 1`, so that it is known whether more
    /// follow. It ends early where it has reached its bytes.
    pub(super) fn new<R>(rows: Vec<R>, limit: u32, cursor: impl Fn(&R) -> Cursor, view: impl Fn(R) -> T) -> Self {
        let (mut data, mut bytes, mut last) = (Vec::new(), 0, None);
        let mut rows = rows.into_iter();
        while data.len() < limit as usize
            && bytes < PAGE_BYTES
            && let Some(row) = rows.next()
        {
            last = Some(cursor(&row));
            let shown = view(row);
            bytes += json_length(&shown);
            data.push(shown);
        }
        let next = last.filter(|_| rows.next().is_some());
        Self::with_cursor(data, next)
    }

    /// Makes a page of rows with a cursor that is known already.
    pub(super) fn with_cursor(data: Vec<T>, next: Option<Cursor>) -> Self {
        Self {
            data,
            next_cursor: next.map(|cursor| cursor.encode()),
        }
    }
}

/// A page is named after its rows. Routes name it by an alias without parameters, or the
/// description would also contain the name of this type.
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
pub(super) fn take_limit(query: &mut QueryParameters) -> Result<u32, Problem> {
    Ok(take_given_limit(query)?.unwrap_or(DEFAULT_LIMIT))
}

/// Takes the parameter `limit` of a list that is whole without one.
pub(super) fn take_given_limit(query: &mut QueryParameters) -> Result<Option<u32>, Problem> {
    let limit = query.number::<u32>("limit")?;
    if limit.is_none_or(|limit| (1..=MAX_LIMIT).contains(&limit)) {
        Ok(limit)
    } else {
        Err(invalid("limit", format!("not between 1 and {MAX_LIMIT}")))
    }
}

/// Takes the parameter `cursor`.
pub(super) fn take_cursor<T>(
    query: &mut QueryParameters,
    read: impl Fn(Cursor) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = query.text("cursor")? else {
        return Ok(None);
    };
    let key = Cursor::decode(&text).and_then(read);
    key.map(Some)
        .ok_or_else(|| Problem::of_field(ProblemCode::InvalidCursor, "cursor", "not a cursor of this list"))
}

/// The key of the last row of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cursor {
    /// Of runs.
    Run(Uuid),
    /// Of sessions.
    Session(Uuid),
    /// Of messages: the index of the next one.
    Message(u64),
    /// Of the steps of a run: the index of the next one.
    Step(u64),
    /// Of deliveries.
    Delivery(Uuid),
    /// Of agents.
    Agent(String),
    /// Of threads.
    Thread(ThreadName),
}

impl Cursor {
    fn encode(&self) -> String {
        let (kind, bytes) = match self {
            Self::Run(id) => ('r', id.as_bytes().to_vec()),
            Self::Session(id) => ('s', id.as_bytes().to_vec()),
            Self::Message(index) => ('m', index.to_be_bytes().to_vec()),
            Self::Step(index) => ('n', index.to_be_bytes().to_vec()),
            Self::Delivery(id) => ('d', id.as_bytes().to_vec()),
            Self::Agent(name) => ('a', name.as_bytes().to_vec()),
            Self::Thread(name) => ('t', name.as_str().as_bytes().to_vec()),
        };
        bytes
            .iter()
            .fold(String::from(kind), |text, byte| format!("{text}{byte:02x}"))
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = decode_hex(text.get(1..)?)?;
        match text.as_bytes().first()? {
            b'r' => Uuid::from_slice(&bytes).ok().map(Self::Run),
            b's' => Uuid::from_slice(&bytes).ok().map(Self::Session),
            b'm' => bytes.try_into().ok().map(u64::from_be_bytes).map(Self::Message),
            b'n' => bytes.try_into().ok().map(u64::from_be_bytes).map(Self::Step),
            b'd' => Uuid::from_slice(&bytes).ok().map(Self::Delivery),
            b'a' => String::from_utf8(bytes)
                .ok()
                .filter(|name| !name.contains('\0'))
                .map(Self::Agent),
            b't' => String::from_utf8(bytes)
                .ok()
                .and_then(|name| name.parse().ok())
                .map(Self::Thread),
            _ => None,
        }
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0 && digits.len() <= 256)?;
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
        for cursor in [
            Cursor::Run(Uuid::from_u128(7)),
            Cursor::Session(Uuid::from_u128(u128::MAX)),
            Cursor::Message(u64::MAX),
            Cursor::Step(3),
            Cursor::Delivery(Uuid::from_u128(1 << 64)),
            Cursor::Agent("demo".to_owned()),
            Cursor::Thread("a:b@c".parse().unwrap()),
            Cursor::Thread("x".repeat(128).parse().unwrap()),
        ] {
            assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
        }
        for text in [
            "", "r", "r00", "x00", "mffff", "a0", "aff", "a00", "t", "t20", "é0", "r\u{661}",
        ] {
            assert_eq!(Cursor::decode(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_full_page_that_is_the_last_has_no_cursor() {
        let page = |rows: Vec<u64>| ListPage::new(rows, 2, |row| Cursor::Message(*row), |row| row);
        assert_eq!(
            (page(vec![1, 2]).data, page(vec![1, 2]).next_cursor),
            (vec![1, 2], None)
        );
        let more = page(vec![1, 2, 3]);
        assert_eq!(
            (more.data, more.next_cursor),
            (vec![1, 2], Some(Cursor::Message(2).encode()))
        );
    }

    #[test]
    fn a_page_ends_where_it_has_reached_its_bytes() {
        let rows: Vec<String> = (0..5).map(|_| "x".repeat(PAGE_BYTES / 2)).collect();
        let page = ListPage::new(rows, 4, |_| Cursor::Message(7), |row| row);
        assert_eq!(
            (page.data.len(), page.next_cursor),
            (2, Some(Cursor::Message(7).encode()))
        );
        let rows = vec!["x".repeat(2 * PAGE_BYTES)];
        let page = ListPage::new(rows, 4, |_| Cursor::Message(7), |row| row);
        assert_eq!((page.data.len(), page.next_cursor), (1, None));
    }
}
