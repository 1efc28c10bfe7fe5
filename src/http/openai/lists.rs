//! The parameters of lists in OpenAI's form.

use crate::http::faces::openai::item_list::Window;
use crate::http::parameters::{QueryParameters, invalid};
use crate::http::problem::Problem;

/// The default and the highest number of items in a list.
const LIMITS: (usize, usize) = (20, 100);

/// Takes the parameters of a list. Others are ignored.
pub(super) fn take_window(mut query: QueryParameters) -> Result<Window, Problem> {
    let (default, most) = LIMITS;
    let limit = query.number("limit")?.unwrap_or(default);
    if !(1..=most).contains(&limit) {
        return Err(invalid("limit", format!("not between 1 and {most}")));
    }
    let is_ascending = match query.text("order")?.as_deref() {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(_) => return Err(invalid("order", "neither `asc` nor `desc`")),
    };
    Ok(Window {
        after: query.text("after")?,
        limit,
        is_ascending,
    })
}
