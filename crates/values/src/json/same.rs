//! Compares two values as databases do: `1` equals `1.0`.

use serde_json::{Number, Value};

/// Returns whether two values are equal. Numbers are compared by value.
pub fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => digits(left) == digits(right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let has_same = |(key, value)| right.get(key).is_some_and(|right| is_same(value, right));
            left.len() == right.len() && left.iter().all(has_same)
        }
        _ => left == right,
    }
}

/// Writes a number in one form, whether it is an integer or a float. A conversion between the two
/// could lose digits.
fn digits(number: &Number) -> String {
    match number.as_f64() {
        // Adding zero turns -0 into 0.
        Some(value) if number.is_f64() && value.fract() == 0.0 => format!("{:.0}", value + 0.0),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        for (left, right, same) in [
            (json!(1), json!(1.0), true),
            (json!(0), json!(-0.0), true),
            (json!(10_000_000_000_000_000_u64), json!(1e16), true),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992.0), false),
            (json!({"a": [1, {"b": 2.0}]}), json!({"a": [1.0, {"b": 2}]}), true),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!([1, 2]), json!([1]), false),
            (json!(1), json!("1"), false),
            (json!(1), json!(true), false),
            (json!(null), json!(null), true),
            (json!(0.1), json!(0.1), true),
        ] {
            assert_eq!(
                (is_same(&left, &right), is_same(&right, &left)),
                (same, same),
                "{left} {right}"
            );
        }
    }
}
