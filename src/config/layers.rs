//! The layers of values, and their combination. Checks that each key exists.

use std::slice;

use toml::de::DeTable;
use toml::{Spanned, Table, Value};

use super::error::ConfigError;
use super::origin::{KeyPath, Origin, dotted};
use super::schema::{Shape, shape, suggestion};

/// The layers; a later one wins.
#[derive(Default)]
pub(super) struct Layers {
    layers: Vec<Layer>,
    merged: Table,
}

/// The values of one source.
struct Layer {
    values: Table,
    /// The source. In a file, it has the line of its first key.
    origin: Origin,
    /// The text of a file, to find the lines of keys.
    text: String,
}

impl Layers {
    /// Adds a whole document.
    pub(super) fn add_document(&mut self, text: &str, origin: Origin) -> Result<(), ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let values = text.parse::<Table>().map_err(|error| ConfigError::Syntax {
            origin: at_line(&origin, text, error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
        })?;
        let text = text.to_owned();
        self.add(Layer { values, origin, text })
    }

    /// Adds the value of a key from a variable or a flag: strings verbatim, other values as TOML.
    pub(super) fn add_text(&mut self, path: &[String], text: &str, origin: Origin) -> Result<(), ConfigError> {
        let Some(shape) = shape(path) else {
            return Err(unknown(path, origin));
        };
        let value = match text.parse::<Value>() {
            Ok(value) if shape != Shape::Text => value,
            Err(error) if shape.is_table() => {
                let problem = error.message().to_owned();
                return Err(ConfigError::Syntax { origin, problem });
            }
            // A wrong value is stored as a string, so that the error can name the expected value.
            Ok(_) | Err(_) => Value::String(text.to_owned()),
        };
        let names = path.iter().rev();
        let values = names.fold(value, |value, name| {
            Value::Table([(name.clone(), value)].into_iter().collect())
        });
        let Value::Table(values) = values else {
            return Ok(());
        };
        let text = String::new();
        self.add(Layer { values, origin, text })
    }

    fn add(&mut self, layer: Layer) -> Result<(), ConfigError> {
        self.check(&layer, &layer.values, &mut KeyPath::new())?;
        merge(&mut self.merged, &layer.values);
        self.layers.push(layer);
        Ok(())
    }

    fn check(&self, layer: &Layer, table: &Table, path: &mut KeyPath) -> Result<(), ConfigError> {
        for (name, value) in table {
            // `OpenAI` next to `openai` would silently be a second provider.
            let is_named = shape(path) == Some(Shape::Named);
            let mut others = table.keys().map(String::as_str).chain(self.names_below(path));
            let other = others.find(|other| is_named && other != name && other.eq_ignore_ascii_case(name));
            path.push(name.clone());
            let Some(shape) = shape(path) else {
                return Err(unknown(path, layer.origin_of(path)));
            };
            let problem = match (other, value) {
                (Some(other), _) => Some(format!("differs from the existing `{other}` only in case")),
                (None, Value::Table(below)) if shape.is_table() => {
                    self.check(layer, below, path)?;
                    None
                }
                (None, value) => {
                    let words = || format!("a table was wanted, not a value ({})", value.type_str());
                    shape.is_table().then(words)
                }
            };
            if let Some(problem) = problem {
                return Err(ConfigError::InvalidValue {
                    key: dotted(path),
                    origin: layer.origin_of(path),
                    problem,
                });
            }
            path.pop();
        }
        Ok(())
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, path: &[String]) -> Option<&Value> {
        find(&self.merged, path)
    }

    /// Returns the values of a table.
    pub(super) fn table(&self, path: &[String]) -> Option<&Table> {
        table_of(&self.merged, path)
    }

    /// Lists every key that has a value, in order.
    pub(super) fn keys(&self) -> Vec<(KeyPath, &Value)> {
        let mut keys = Vec::new();
        add_keys(&self.merged, &[], &mut keys);
        keys
    }

    /// Lists the names directly below a table, in order.
    pub(super) fn names_below(&self, table: &[String]) -> Vec<&str> {
        let names = self.table(table).into_iter().flat_map(Table::keys);
        names.map(String::as_str).collect()
    }

    /// Returns where a key was set; for a missing key, where the first key of its table was set.
    pub(super) fn origin(&self, path: &[String]) -> Origin {
        let mut path = path.to_vec();
        while !path.is_empty() && self.get(&path).is_none() {
            path.pop();
        }
        while let Some(Value::Table(below)) = self.get(&path)
            && let Some(name) = below.keys().next()
        {
            path.push(name.clone());
        }
        let layer = self.layers.iter().rfind(|layer| find(&layer.values, &path).is_some());
        layer.map_or(Origin::Default, |layer| layer.origin_of(&path))
    }
}

impl Layer {
    /// Returns where the layer has the key.
    fn origin_of(&self, path: &[String]) -> Origin {
        let document = DeTable::parse(&self.text).ok();
        let mut table = document.as_ref().map(Spanned::get_ref);
        let mut offset = 0;
        for name in path {
            let found = table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == name));
            let Some((key, value)) = found else { break };
            offset = key.span().start;
            table = value.get_ref().as_table();
        }
        at_line(&self.origin, &self.text, offset)
    }
}

/// The error about a key that does not exist.
pub(super) fn unknown(path: &[String], origin: Origin) -> ConfigError {
    ConfigError::UnknownKey {
        key: dotted(path),
        origin,
        suggestion: suggestion(path),
    }
}

/// Returns the origin of a byte of a text.
fn at_line(origin: &Origin, text: &str, offset: usize) -> Origin {
    match origin {
        Origin::File { path, .. } => Origin::File {
            path: path.clone(),
            line: 1 + text.match_indices('\n').take_while(|(at, _)| *at < offset).count(),
        },
        other => other.clone(),
    }
}

fn merge(into: &mut Table, values: &Table) {
    for (name, value) in values {
        if let (Some(Value::Table(below)), Value::Table(values)) = (into.get_mut(name), value) {
            merge(below, values);
        } else {
            into.insert(name.clone(), value.clone());
        }
    }
}

fn table_of<'a>(table: &'a Table, path: &[String]) -> Option<&'a Table> {
    path.iter().try_fold(table, |table, name| table.get(name)?.as_table())
}

fn find<'a>(table: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (key, tables) = path.split_last()?;
    table_of(table, tables)?.get(key)
}

fn add_keys<'a>(table: &'a Table, path: &[String], keys: &mut Vec<(KeyPath, &'a Value)>) {
    for (name, value) in table {
        let path = [path, slice::from_ref(name)].concat();
        match value {
            Value::Table(below) => add_keys(below, &path, keys),
            value => keys.push((path, value)),
        }
    }
}
