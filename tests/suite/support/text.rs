//! Checking parts of a text.

/// Checks that a text has each of these parts. What it is about may follow a semicolon.
macro_rules! assert_contains {
    ($text:expr, $($part:expr),+ $(,)?) => {
        crate::support::text::assert_contains!($text, $($part),+; "a text")
    };
    ($text:expr, $($part:expr),+; $about:literal) => {
        match &$text {
            text => {
                $(assert!(text.contains($part), "{}: no {:?} in {text}", format_args!($about), $part);)+
            }
        }
    };
}
pub(crate) use assert_contains;

/// Checks that a text has none of these parts. What it is about may follow a semicolon.
macro_rules! assert_lacks {
    ($text:expr, $($part:expr),+ $(,)?) => {
        crate::support::text::assert_lacks!($text, $($part),+; "a text")
    };
    ($text:expr, $($part:expr),+; $about:literal) => {
        match &$text {
            text => {
                $(assert!(!text.contains($part), "{}: {:?} in {text}", format_args!($about), $part);)+
            }
        }
    };
}
pub(crate) use assert_lacks;
