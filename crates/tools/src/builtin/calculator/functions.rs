//! Functions and constants of the calculator.

use super::error::ExpressionError;
use super::number::Number;

/// All names, for messages.
pub(super) const NAMES: &str = "sqrt, abs, round, floor, ceil, min, max, sin, cos, tan, ln, log10, exp, pow, pi and e";

/// Returns the constant.
pub(super) fn constant(name: &str) -> Option<Number> {
    match name {
        "pi" => Some(Number::Real(std::f64::consts::PI)),
        "e" => Some(Number::Real(std::f64::consts::E)),
        _ => None,
    }
}

/// Calls the function; `None` when there is none of this name.
pub(super) fn call(name: &str, arguments: &[Number]) -> Option<Result<Number, ExpressionError>> {
    let result = match name {
        "sqrt" => real(name, arguments, f64::sqrt),
        "sin" => real(name, arguments, f64::sin),
        "cos" => real(name, arguments, f64::cos),
        "tan" => real(name, arguments, f64::tan),
        "exp" => real(name, arguments, f64::exp),
        "ln" => logarithm(name, arguments, f64::ln),
        "log10" => logarithm(name, arguments, f64::log10),
        "round" => rounding(name, arguments, f64::round),
        "floor" => rounding(name, arguments, f64::floor),
        "ceil" => rounding(name, arguments, f64::ceil),
        "abs" => one(name, arguments).map(|x| if x.to_f64() < 0.0 { x.negated() } else { x }),
        "min" => extreme(name, arguments, |candidate, best| best.exceeds(candidate)),
        "max" => extreme(name, arguments, Number::exceeds),
        "pow" => match arguments {
            [base, exponent] => base.to_the_power_of(*exponent),
            _ => Err(wrong_count(name, "2 arguments", arguments)),
        },
        _ => return None,
    };
    Some(result)
}

fn one(name: &str, arguments: &[Number]) -> Result<Number, ExpressionError> {
    match arguments {
        [x] => Ok(*x),
        _ => Err(wrong_count(name, "1 argument", arguments)),
    }
}

fn real(name: &str, arguments: &[Number], function: fn(f64) -> f64) -> Result<Number, ExpressionError> {
    one(name, arguments).and_then(|x| Number::real(function(x.to_f64())))
}

fn logarithm(name: &str, arguments: &[Number], function: fn(f64) -> f64) -> Result<Number, ExpressionError> {
    let x = one(name, arguments)?;
    // At zero, a double would give infinity, which looks like a large result.
    if x.is_zero() {
        return Err(ExpressionError::NotReal);
    }
    Number::real(function(x.to_f64()))
}

fn rounding(name: &str, arguments: &[Number], function: fn(f64) -> f64) -> Result<Number, ExpressionError> {
    match one(name, arguments)? {
        Number::Real(x) => Number::real(function(x)),
        whole @ Number::Whole(_) => Ok(whole),
    }
}

fn extreme(name: &str, arguments: &[Number], wins: fn(Number, Number) -> bool) -> Result<Number, ExpressionError> {
    let best = arguments
        .iter()
        .copied()
        .reduce(|best, candidate| if wins(candidate, best) { candidate } else { best });
    best.ok_or_else(|| wrong_count(name, "1 argument or more", arguments))
}

fn wrong_count(name: &str, wanted: &'static str, arguments: &[Number]) -> ExpressionError {
    ExpressionError::ArgumentCount {
        name: name.to_owned(),
        wanted,
        given: arguments.len(),
    }
}
