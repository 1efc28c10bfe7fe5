//! Parses and evaluates expressions in one pass, by precedence climbing. Hostile input costs
//! neither time nor stack.

use super::error::{ExpressionError, MAX_DEPTH, MAX_LENGTH};
use super::functions;
use super::number::Number;

/// A sign binds tighter than a product and looser than a power: -2^2 is -4.
const SIGN: u8 = 3;

type Result<T> = std::result::Result<T, ExpressionError>;

/// Evaluates an expression.
pub(super) fn evaluate(text: &str) -> Result<Number> {
    if text.chars().nth(MAX_LENGTH).is_some() {
        return Err(ExpressionError::TooLong);
    }
    if text.trim().is_empty() {
        return Err(ExpressionError::Empty);
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.expression(0)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.unexpected("an operator or the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Evaluates operands and the operators between them whose binding is at least `min_binding`.
    fn expression(&mut self, min_binding: u8) -> Result<Number> {
        if self.depth == MAX_DEPTH {
            return Err(ExpressionError::TooDeep);
        }
        self.depth += 1;
        let mut left = self.operand()?;
        while let Some((operator, binding)) = self.peek().and_then(|c| Some((c, binding(c)?))) {
            if binding < min_binding {
                break;
            }
            self.take();
            // Powers are right-associative; all other operators are left-associative.
            let right = self.expression(if operator == '^' { binding } else { binding + 1 })?;
            left = match operator {
                '+' => left.plus(right),
                '-' => left.minus(right),
                '*' => left.times(right),
                '/' => left.divided_by(right),
                '%' => left.rest_of_division_by(right),
                _ => left.to_the_power_of(right),
            }?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Number> {
        match self.peek() {
            Some('-') => {
                self.take();
                Ok(self.expression(SIGN)?.negated())
            }
            Some('+') => {
                self.take();
                self.expression(SIGN)
            }
            Some('(') => {
                self.take();
                let value = self.expression(0)?;
                self.expect(')', "an operator or )")?;
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => Number::parse(self.number()),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.named(),
            _ => Err(self.unexpected("a number, a name or (")),
        }
    }

    /// Reads a constant or a call.
    fn named(&mut self) -> Result<Number> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let unknown = || ExpressionError::UnknownName {
            name: name.to_owned(),
            known: functions::NAMES,
        };
        if self.peek() != Some('(') {
            return functions::constant(name).ok_or_else(unknown);
        }
        self.take();
        let mut arguments = Vec::new();
        if self.peek() != Some(')') {
            arguments.push(self.expression(0)?);
            while self.peek() == Some(',') {
                self.take();
                arguments.push(self.expression(0)?);
            }
        }
        self.expect(')', "an operator, a comma or )")?;
        functions::call(name, &arguments).ok_or_else(unknown)?
    }

    /// Takes digits, a fraction and an exponent. The caller checks whether they form a number.
    fn number(&mut self) -> &'a str {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit() || c == '.');
        let rest = &self.text.as_bytes()[self.at..];
        let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
        let is_exponent = matches!(rest.first(), Some(b'e' | b'E'));
        if is_exponent && rest.get(1 + sign).is_some_and(u8::is_ascii_digit) {
            self.at += 1 + sign;
            self.take_while(|c| c.is_ascii_digit());
        }
        &self.text[start..self.at]
    }

    fn expect(&mut self, wanted: char, expected: &'static str) -> Result<()> {
        if self.peek() != Some(wanted) {
            return Err(self.unexpected(expected));
        }
        self.take();
        Ok(())
    }

    /// Skips space and returns the next character.
    fn peek(&mut self) -> Option<char> {
        self.take_while(char::is_whitespace);
        self.text[self.at..].chars().next()
    }

    fn take(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !wanted(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn unexpected(&mut self, expected: &'static str) -> ExpressionError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
        ExpressionError::Unexpected {
            found,
            position: self.text[..self.at].chars().count() + 1,
            expected,
        }
    }
}

fn binding(operator: char) -> Option<u8> {
    match operator {
        '+' | '-' => Some(1),
        '*' | '/' | '%' => Some(2),
        '^' => Some(SIGN + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        evaluate(text).map_or_else(|error| error.to_string(), |number| number.to_string())
    }

    #[test]
    fn expressions_have_their_usual_values() {
        for (text, value) in [
            ("0.1 + 0.2", "0.3"),
            ("2^10", "1024"),
            ("1+2*3", "7"),
            ("(1+2)*3", "9"),
            ("10-4-3", "3"),
            ("100/10/5", "2"),
            ("2^3^2", "512"),
            ("-2^2", "-4"),
            ("(-2)^2", "4"),
            ("2^-1", "0.5"),
            ("--3", "3"),
            ("2*-3", "-6"),
            ("7 % 3", "1"),
            ("-7 % 3", "-1"),
            ("5.5 % 2", "1.5"),
            ("1/3", "0.333333333333333"),
            ("6/4", "1.5"),
            ("1e3", "1000"),
            ("1.5E-3", "0.0015"),
            (".5 + 1.", "1.5"),
            ("2e", "'e' at position 2 is not expected; an operator or the end is"),
            ("2*e", "5.43656365691809"),
            ("pi", "3.14159265358979"),
            ("sqrt(16)", "4"),
            ("sqrt(2)^2", "2"),
            ("abs(-3) + abs(2.5)", "5.5"),
            ("round(2.5) + floor(-1.5) + ceil(1.2)", "3"),
            ("min(3, 1, 2) + max(4)", "5"),
            ("max(2^53, 2^53 + 1)", "9007199254740993"),
            ("min(1.5, 2)", "1.5"),
            ("sin(0) + cos(0) + tan(0)", "1"),
            ("ln(e) + log10(1000) + exp(0)", "5"),
            ("pow(2, 0.5)", "1.4142135623731"),
            ("0 * -1.5", "0"),
            ("2^53 + 1", "9007199254740993"),
            ("2^100", "1267650600228229401496703205376"),
            ("99999999999999999999 + 1", "100000000000000000000"),
            ("2^200", "1.60693804425899e60"),
            ("1/10^9", "1e-9"),
            ("1.7976931348623157e308", "1.7976931348623157e308"),
            ("170141183460469231731687303715884105727 + 1", "1.70141183460469e38"),
        ] {
            assert_eq!(shown(text), value, "{text}");
        }
    }

    #[test]
    fn expressions_without_a_value_are_errors() {
        for (text, message) in [
            ("", "the expression is empty"),
            ("  ", "the expression is empty"),
            ("1/0", "division by zero"),
            ("1 % 0", "division by zero"),
            ("1/(0.5-0.5)", "division by zero"),
            ("0^-1", "division by zero"),
            ("10^400", "the result is too large"),
            ("1e999", "the result is too large"),
            ("exp(1000)", "the result is too large"),
            (
                "sqrt(-1)",
                "there is no real result, as for the root of a negative number or the logarithm of zero",
            ),
            (
                "ln(0)",
                "there is no real result, as for the root of a negative number or the logarithm of zero",
            ),
            ("(1+2", "the end at position 5 is not expected; an operator or ) is"),
            ("1+2)", "')' at position 4 is not expected; an operator or the end is"),
            ("1 +", "the end at position 4 is not expected; a number, a name or ( is"),
            ("2 3", "'3' at position 3 is not expected; an operator or the end is"),
            ("2 ** 3", "'*' at position 4 is not expected; a number, a name or ( is"),
            ("1 € 2", "'€' at position 3 is not expected; an operator or the end is"),
            ("1.2.3", "\"1.2.3\" is not a number"),
            (".", "\".\" is not a number"),
            ("sqrt(1, 2)", "sqrt takes 1 argument, not 2"),
            ("max()", "max takes 1 argument or more, not 0"),
        ] {
            assert_eq!(shown(text), message, "{text}");
        }
        for text in ["x + 1", "system(1)", "sqrt + 1", "pi(1)"] {
            assert!(shown(text).contains("known are sqrt, abs"), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn size_and_depth_are_limited() {
        assert_eq!(evaluate(&"1+".repeat(501)).unwrap_err(), ExpressionError::TooLong);
        assert_eq!(shown(&format!("1{}", "+1".repeat(499))), "500");
        for deep in ["(".repeat(999), "-".repeat(999), "2^".repeat(499), "abs(".repeat(249)] {
            assert_eq!(evaluate(&deep).unwrap_err(), ExpressionError::TooDeep);
        }
        let fair = format!("{}1{}", "(".repeat(50), ")".repeat(50));
        assert_eq!(shown(&fair), "1");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9.e+*/%^(), a-z€-]{0,60}") {
            let _ = shown(&text);
        }

        #[test]
        fn sums_and_products_of_whole_numbers_are_exact(a in any::<i32>(), b in any::<i32>(), c in any::<i32>()) {
            let value = i128::from(a) * i128::from(b) - i128::from(c);
            prop_assert_eq!(shown(&format!("({a}) * ({b}) - ({c})")), value.to_string());
        }
    }
}
