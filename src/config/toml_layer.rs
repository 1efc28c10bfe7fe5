//! Reads TOML into settings, and checks each key against the schema.

use toml::Spanned;
use toml::Value;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use serde::Deserialize as _;

use super::error::ConfigError;
use super::schema::{Shape, shape, suggestion};
use super::settings::{KeyPath, Origin, Settings, dotted};

/// Reads a whole document. `origin` returns the origin of a line.
pub(super) fn read_document(
    text: &str,
    origin: &dyn Fn(usize) -> Origin,
    settings: &mut Settings,
) -> Result<(), ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ends_of_lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let origin = |offset: usize| origin(1 + ends_of_lines.partition_point(|end| *end < offset));
    let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        origin: origin(error.span().map_or(0, |span| span.start)),
        problem: error.message().to_owned(),
    })?;
    let mut layer = Layer {
        origin: &origin,
        settings,
    };
    layer.table(&mut KeyPath::new(), document.into_inner())
}

/// Reads the value of a key from a variable or a flag: strings verbatim, other values as TOML.
pub(super) fn read_text(
    mut path: KeyPath,
    text: &str,
    origin: &Origin,
    settings: &mut Settings,
) -> Result<(), ConfigError> {
    let Some(shape) = shape(&path) else {
        return Err(unknown(&path, origin.clone()));
    };
    let string = || Value::String(text.to_owned());
    if shape == Shape::Text {
        settings.set(path, string(), origin.clone());
        return Ok(());
    }
    match DeValue::parse(text) {
        Ok(value) => {
            let mut layer = Layer {
                origin: &|_| origin.clone(),
                settings,
            };
            layer.value(&mut path, value, origin.clone())
        }
        Err(error) if shape.is_table() => Err(ConfigError::Syntax {
            origin: origin.clone(),
            problem: error.message().to_owned(),
        }),
        // Stored as a string, so that the error can say what was expected.
        Err(_) => {
            settings.set(path, string(), origin.clone());
            Ok(())
        }
    }
}

pub(super) fn unknown(path: &[String], origin: Origin) -> ConfigError {
    ConfigError::UnknownKey {
        key: dotted(path),
        origin,
        suggestion: suggestion(path),
    }
}

struct Layer<'a> {
    /// Returns the origin of a byte of the text.
    origin: &'a dyn Fn(usize) -> Origin,
    settings: &'a mut Settings,
}

impl Layer<'_> {
    fn table(&mut self, path: &mut KeyPath, table: DeTable<'_>) -> Result<(), ConfigError> {
        for (key, value) in table {
            let origin = (self.origin)(key.span().start);
            path.push(key.into_inner().into_owned());
            self.value(path, value, origin)?;
            path.pop();
        }
        Ok(())
    }

    fn value(&mut self, path: &mut KeyPath, value: Spanned<DeValue<'_>>, origin: Origin) -> Result<(), ConfigError> {
        let Some(shape) = shape(path) else {
            return Err(unknown(path, origin));
        };
        self.check_case(path, &origin)?;
        let invalid = |problem: String, origin: Origin| ConfigError::InvalidValue {
            key: dotted(path),
            origin,
            problem,
        };
        if shape.is_table() {
            return match value.into_inner() {
                DeValue::Table(table) if !table.is_empty() => self.table(path, table),
                DeValue::Table(_) => {
                    let empty = Value::Table(toml::Table::new());
                    self.settings.set(path.clone(), empty, origin);
                    Ok(())
                }
                other => {
                    let problem = format!("a table was wanted, not a value ({})", other.type_str());
                    Err(invalid(problem, origin))
                }
            };
        }
        match Value::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => {
                self.settings.set(path.clone(), value, origin);
                Ok(())
            }
            Err(error) => Err(invalid(error.message().to_owned(), origin)),
        }
    }

    /// Rejects `OpenAI` next to `openai`, which would silently be a second provider.
    fn check_case(&self, path: &[String], origin: &Origin) -> Result<(), ConfigError> {
        let Some((name, table)) = path.split_last() else {
            return Ok(());
        };
        if shape(table) != Some(Shape::Named) {
            return Ok(());
        }
        let names = self.settings.names_below(table);
        let other = names
            .iter()
            .find(|other| *other != name && other.eq_ignore_ascii_case(name));
        other.map_or(Ok(()), |other| {
            Err(ConfigError::InvalidValue {
                key: dotted(path),
                origin: origin.clone(),
                problem: format!("differs from the existing `{other}` only in case"),
            })
        })
    }
}
