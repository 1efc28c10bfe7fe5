//! Numbers of the calculator: integers are exact up to 128 bits; all others are doubles.

use std::fmt;

use super::error::ExpressionError;

/// The digits of a double that are shown. Two further digits would be rounding noise, as in 0.1 +
/// 0.2.
const SHOWN_DIGITS: usize = 15;
/// Up to this number, doubles represent every integer exactly.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;
/// Doubles from here on are shown with an exponent.
const LARGE: f64 = 1e21;
/// Doubles below this are shown with an exponent.
const SMALL: f64 = 1e-7;

/// A number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// Reads digits with an optional fraction and exponent.
    pub(super) fn parse(text: &str) -> Result<Self, ExpressionError> {
        if let Ok(whole) = text.parse() {
            return Ok(Self::Whole(whole));
        }
        let real = text.parse().map_err(|_| ExpressionError::Number(text.to_owned()))?;
        Self::real(real)
    }

    /// Makes a number from a double. Infinities and NaN are errors.
    pub(super) fn real(value: f64) -> Result<Self, ExpressionError> {
        if value.is_nan() {
            Err(ExpressionError::NotReal)
        } else if value.is_infinite() {
            Err(ExpressionError::TooLarge)
        } else {
            Ok(Self::Real(value))
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a double is asked for")]
    pub(super) fn to_f64(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Real(value) => value,
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.to_f64() == 0.0
    }

    pub(super) fn exceeds(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => left > right,
            _ => self.to_f64() > other.to_f64(),
        }
    }

    pub(super) fn negated(self) -> Self {
        match self {
            Self::Whole(value) => value.checked_neg().map_or(Self::Real(-self.to_f64()), Self::Whole),
            Self::Real(value) => Self::Real(-value),
        }
    }

    pub(super) fn plus(self, other: Self) -> Result<Self, ExpressionError> {
        self.combined(other, i128::checked_add, |left, right| left + right)
    }

    pub(super) fn minus(self, other: Self) -> Result<Self, ExpressionError> {
        self.combined(other, i128::checked_sub, |left, right| left - right)
    }

    pub(super) fn times(self, other: Self) -> Result<Self, ExpressionError> {
        self.combined(other, i128::checked_mul, |left, right| left * right)
    }

    pub(super) fn divided_by(self, other: Self) -> Result<Self, ExpressionError> {
        if other.is_zero() {
            return Err(ExpressionError::DivisionByZero);
        }
        let exact = |left: i128, right: i128| {
            let without_rest = left.checked_rem(right)? == 0;
            without_rest.then(|| left.checked_div(right)).flatten()
        };
        self.combined(other, exact, |left, right| left / right)
    }

    /// Returns the remainder, which has the sign of the dividend.
    pub(super) fn rest_of_division_by(self, other: Self) -> Result<Self, ExpressionError> {
        if other.is_zero() {
            return Err(ExpressionError::DivisionByZero);
        }
        self.combined(other, i128::checked_rem, |left, right| left % right)
    }

    pub(super) fn to_the_power_of(self, exponent: Self) -> Result<Self, ExpressionError> {
        if self.is_zero() && exponent.to_f64() < 0.0 {
            return Err(ExpressionError::DivisionByZero);
        }
        let exact = |base: i128, exponent: i128| u32::try_from(exponent).ok().and_then(|e| base.checked_pow(e));
        self.combined(exponent, exact, f64::powf)
    }

    fn combined(
        self,
        other: Self,
        exact: impl FnOnce(i128, i128) -> Option<i128>,
        rounded: impl FnOnce(f64, f64) -> f64,
    ) -> Result<Self, ExpressionError> {
        let whole = match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => exact(left, right),
            _ => None,
        };
        match whole {
            Some(whole) => Ok(Self::Whole(whole)),
            None => Self::real(rounded(self.to_f64(), other.to_f64())),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match self {
            Self::Whole(value) => return value.fmt(f),
            // Adding zero turns -0 into 0.
            Self::Real(value) => value + 0.0,
        };
        if value.fract() == 0.0 && value.abs() <= EXACT_WHOLE {
            return write!(f, "{value:.0}");
        }
        let rounded = format!("{value:.*e}", SHOWN_DIGITS - 1);
        let shown: f64 = rounded.parse().unwrap_or(value);
        // Rounding up the largest double would overflow.
        let shown = if shown.is_finite() { shown } else { value };
        if (SMALL..LARGE).contains(&shown.abs()) {
            write!(f, "{shown}")
        } else {
            write!(f, "{shown:e}")
        }
    }
}
